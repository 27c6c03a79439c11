// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/role"
)

// The exit statuses of a starter.
const (
	exitDone   = 0 // the activation ended, well or not, and was told
	exitSpoken = 1 // the startd said something that is no message of this version
	exitUsage  = 2 // the command line was wrong
	exitLeft   = 3 // the sandbox could not be removed
)

// Main is a whole starter: it reads orders from stdin, writes reports to stdout
// and complaints to stderr, and returns its exit status. The end of ctx is an
// order to end at once. It has the process for itself.
func Main(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer, h Host) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "condor_starter: %q: unexpected argument; a startd starts it and speaks to it through standard input and output\n", args[0])
		return exitUsage
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return protocol.IsLean(entry) || role.Is(entry) })
	return converse(ctx, env, stdin, stdout, stderr, h)
}

// converse runs one activation over the two streams, and where the plan wants it for
// startds that come after the first.
func converse(ctx context.Context, env []string, stdin io.Reader, stdout, stderr io.Writer, h Host) (status int) {
	out := &outbox{to: stdout, there: true, hello: protocol.StarterHello{Program: protocol.Program, Proc: h.Census.Self(), State: protocol.Waiting}}
	c := &conversation{host: h, out: out, orders: make(chan protocol.Order, 4), over: make(chan struct{})}
	defer c.close()
	bad := make(chan error, 1)
	_ = out.greet(stdout) // who does not read it is gone, which stdin tells
	go func() {
		// It ends with the stream: at the latest with the process.
		bad <- c.first(stdin, stdout)
	}()
	a := newActivation(h, env, out.report)
	a.talk = c
	defer func() { a.logEnd(status) }()
	if err := a.run(ctx, c.orders); err != nil {
		fmt.Fprintf(stderr, "condor_starter: %v\n", err)
		return exitLeft
	}
	select {
	case err := <-bad:
		if err != nil {
			fmt.Fprintf(stderr, "condor_starter: %v\n", err)
			return exitSpoken
		}
	default:
	}
	return exitDone
}

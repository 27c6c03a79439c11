// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/role"
)

// The exit statuses of a starter.
const (
	exitDone   = 0 // the activation ended, well or not, and was told
	exitSpoken = 1 // the startd said something that is no order
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

// converse runs one activation over the two streams.
func converse(ctx context.Context, env []string, stdin io.Reader, stdout, stderr io.Writer, h Host) (status int) {
	orders := make(chan protocol.Order, 4)
	over := make(chan struct{})
	defer close(over)
	bad := make(chan error, 1)
	out := &reporter{to: stdout}
	go func() {
		// It ends with the stream: at the latest with the process.
		defer close(orders)
		bad <- readOrders(stdin, func(o protocol.Order) bool {
			if o.Op != protocol.OpPlan {
				out.report(protocol.Report{Op: protocol.OpTaken, Order: o.Op, At: time.Now()})
			}
			if o.Op == protocol.OpPing {
				return true
			}
			select {
			case orders <- o:
				return true
			case <-over:
				return false
			}
		})
	}()
	a := newActivation(h, env, out.report)
	defer func() { a.logEnd(status) }()
	if err := a.run(ctx, orders); err != nil {
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

// readOrders calls each with every order until the stream ends or each has
// enough. A line that is no order ends it with an error.
func readOrders(r io.Reader, each func(protocol.Order) bool) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 16<<10), protocol.MaxLine)
	for in.Scan() {
		var o protocol.Order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if !each(o) {
			return nil
		}
	}
	return in.Err()
}

// reporter writes reports, one line each. When nobody reads any more it is
// silent: the record on disk tells the rest.
type reporter struct {
	mu   sync.Mutex
	to   io.Writer
	dead bool
}

func (r *reporter) report(rep protocol.Report) {
	line, err := json.Marshal(rep)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.dead {
		return
	}
	if _, err := r.to.Write(append(line, '\n')); err != nil {
		r.dead = true
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command condor_starter runs one job for a startd, which speaks to it through
// its standard input and output; see lib/starter.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/execpoint/execpoint/lib/starter"
)

func main() {
	h, err := newHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "condor_starter: %v\n", err)
		os.Exit(1)
	}
	// A caught signal is back at its default in the job; an ignored one is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP, os.Interrupt)
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGQUIT)
	os.Exit(starter.Main(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr, h))
}

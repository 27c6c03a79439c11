// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package asstarter turns the calling process into a starter: it chooses the
// platform and hands over to lib/starter. condor_ep, condor_startd and programs of
// others become one by their first argument (Become). It must be called before the process has done anything else.
//
// It is apart from platform/linux/system because a starter is started for each
// job: it must not carry what detects a machine.
package asstarter

import (
	"context"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// exitNoHost says that this machine cannot be a starter's.
const exitNoHost = 1

// Become is the whole life of the process, and does not return, where its first
// argument says that it is to be a starter.
func Become() {
	if len(os.Args) > 1 && os.Args[1] == protocol.Command {
		os.Exit(Main(os.Args[2:]))
	}
}

// Host is what a starter needs of this machine, for a program that is one without a
// startd. As Become it must be called before the process has done anything else.
func Host() (starter.Host, error) {
	h, _, _, err := newHost()
	return h, err
}

// Main is the whole life of a starter; the caller exits with what it returns.
func Main(args []string) int {
	h, stdin, stdout, err := newHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "condor_starter: %v\n", err)
		return exitNoHost
	}
	return starter.Main(context.Background(), args, os.Environ(), stdin, stdout, os.Stderr, h)
}

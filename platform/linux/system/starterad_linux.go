// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/plugins"
)

// StarterAd prints what a starter can do on this machine, an attribute a line, and
// returns the exit status: condor_starter -classad.
func StarterAd(stdout, stderr io.Writer) int {
	refuse := func(err error) int {
		fmt.Fprintf(stderr, "condor_starter: %v\n", err)
		return 1
	}
	sys, err := Visit()
	if err != nil {
		return refuse(err)
	}
	root, err := RootFile("")
	if err != nil {
		return refuse(err)
	}
	ctx := context.Background()
	s, err := Configuration{File: root}.starter(ctx)
	if err != nil {
		return refuse(err)
	}
	ad, err := run.StarterAd(ctx, s, version, sys.Programs(s), plugins.Runner(sys.Spawner, nil, daemon.Scrub(os.Environ())))
	if ad == nil {
		return refuse(err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "condor_starter: %v\n", err)
	}
	fmt.Fprint(stdout, ad.Text(classad.Old))
	return 0
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter"
)

// starterProgram is the program that runs a job, with its whole argument
// vector: what STARTER names, else this program as a starter. It is looked for
// before any job is begun.
func starterProgram(snap *config.Snapshot, self string) (path string, args []string, err error) {
	set, ok := snap.Lookup("STARTER")
	if !ok || set.Value == "" || set.Origin.Kind == config.Default {
		return self, []string{"condor_ep", starter.Command}, nil
	}
	info, err := os.Stat(set.Value)
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
		err = errors.New("not a program that can be executed")
	}
	if err != nil {
		return "", nil, errs.E("run", errs.Invalid, "STARTER", fmt.Errorf("%v: STARTER = %s: %w", set.Origin, set.Value, err))
	}
	return set.Value, []string{set.Value}, nil
}

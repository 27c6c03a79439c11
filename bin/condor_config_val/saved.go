// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/execpoint/execpoint/lib/config"
)

// fromSnapshot answers from what a running Execution Point wrote, as HTCondor's
// tool does when it asks a daemon.
func (r *run) fromSnapshot() int {
	if r.write != "" || r.macro || r.listSources || r.trace || r.hasCondition || r.rootGiven {
		return r.fail("-snapshot answers names and -dump; all else needs the files")
	}
	data, err := r.readFile(r.snapshot)
	if err != nil {
		return r.fail("cannot read the snapshot: " + err.Error())
	}
	saved, err := config.ReadSaved(bytes.NewReader(data))
	if err != nil {
		return r.fail(r.snapshot + ": " + err.Error())
	}
	if r.dump {
		r.DumpSaved(saved, r.snapshot, r.names)
		return exitOK
	}
	if len(r.names) == 0 {
		fmt.Fprint(r.stderr, usage())
		return exitFailed
	}
	defined, err := r.Saved(saved, r.names)
	switch {
	case err != nil:
		return r.fail(err.Error())
	case !defined:
		return exitFailed
	}
	return exitOK
}

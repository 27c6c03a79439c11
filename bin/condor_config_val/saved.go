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
	if r.write.file != "" || r.what.macro || r.what.sources || r.what.trace || r.what.hasCondition || r.read.rootGiven {
		return r.fail("-snapshot answers names and -dump; all else needs the files")
	}
	data, err := r.readFile(r.read.snapshot)
	if err != nil {
		return r.fail("cannot read the snapshot: " + err.Error())
	}
	saved, err := config.ReadSaved(bytes.NewReader(data))
	if err != nil {
		return r.fail(r.read.snapshot + ": " + err.Error())
	}
	if r.what.dump {
		r.DumpSaved(saved, r.read.snapshot, r.names)
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

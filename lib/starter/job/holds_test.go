// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// The words for both sides of a transfer; those of everything else are held
// against the recordings by the tests of condor_starter with real processes.
func TestTransferHolds(t *testing.T) {
	t.Parallel()
	h := Holds{Slot: "slot1@node1.example.org", Errno: hosttest.Errno}
	reading := &transfer.Failure{Path: "/a/b", Total: 3, Err: fs.ErrNotExist}
	writing := &transfer.Failure{Path: "/c/d", Total: 1, Writing: true, Err: fs.ErrPermission}
	for _, c := range []struct {
		got        *protocol.Hold
		code, subc int
		reason     string
	}{
		{h.Input(reading), 13, 2, "Transfer input files failure at access point node1 while sending files to execution point slot1@node1.example.org. Details: 3 total failures: first failure: reading from file /a/b: (errno 2) No such file or directory"},
		{h.Input(writing), 13, 13, "Transfer input files failure at execution point slot1@node1.example.org while receiving files from access point node1. Details: writing to file /c/d: (errno 13) Permission denied"},
		{h.Output(reading), 12, 2, "Transfer output files failure at execution point slot1@node1.example.org while sending files to access point node1. Details: 3 total failures: first failure: reading from file /a/b: (errno 2) No such file or directory"},
		{h.Output(writing), 12, 13, "Transfer output files failure at access point node1 while receiving files from execution point slot1@node1.example.org. Details: writing to file /c/d: (errno 13) Permission denied"},
		{h.Input(errors.New("odd")), 13, 0, "Transfer input files failure at access point node1 while sending files to execution point slot1@node1.example.org. Details: odd"},
	} {
		if c.got.Code != c.code || c.got.Subcode != c.subc || c.got.Reason != c.reason {
			t.Errorf("%+v\nwant %d/%d %s", c.got, c.code, c.subc, c.reason)
		}
	}
}

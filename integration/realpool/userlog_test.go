// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package realpool

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/eventlog"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	const (
		submit  = "000 (003.000.000) 2026-11-20 22:00:00 Job submitted from host: <127.0.0.1>"
		execute = "001 (003.012.000) 2026-11-20 22:00:01 Job executing on host: <127.0.0.1>\n\tSlotName: slot1_1"
		held    = "012 (1234.000.000) 2026-11-20 22:00:02 Job was held.\n\t...\n\tCode 1 Subcode 0"
	)
	for _, tt := range []struct {
		log  string
		want []Event
	}{
		{"", nil},
		{submit + "\n", nil},
		{submit + "\n..", nil},
		{submit + "\n...\n", []Event{{eventlog.CodeSubmit, 3, 0, submit, len(submit) + 5}}},
		{submit + "\n...\n" + execute + "\n...\n001 (003", []Event{
			{eventlog.CodeSubmit, 3, 0, submit, len(submit) + 5},
			{eventlog.CodeExecute, 3, 12, execute, len(submit) + len(execute) + 10},
		}},
		{"no event\n...\n" + held + "\n...\n", []Event{{eventlog.CodeHeld, 1234, 0, held, len(held) + 18}}},
	} {
		if diff := cmp.Diff(tt.want, slices.Collect(Events(tt.log))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tt.log, diff)
		}
	}
	for e := range Events(submit + "\n...\n" + execute + "\n...\n") {
		if e.Code != eventlog.CodeSubmit {
			t.Fatalf("went on to %v", e)
		}
		break
	}
}

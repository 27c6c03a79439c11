// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/command"
)

// What changes something is asked by the command that needs ADMINISTRATOR, and so
// is what nobody knows.
func TestCommandOf(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]string{
		OpStatus: "READ", OpExplain: "READ", OpDrain: "ADMINISTRATOR", OpResume: "ADMINISTRATOR", OpVacate: "ADMINISTRATOR", "": "ADMINISTRATOR", "reboot": "ADMINISTRATOR",
	} {
		number, known := CommandOf(op)
		row, ok := command.Startd.Row(number)
		if got := row.Level.String(); got != want || !ok {
			t.Errorf("%q is asked by %s, which needs %s, want %s", op, row.Name, got, want)
		}
		if known != (op != "" && op != "reboot") {
			t.Errorf("%q is known: %t", op, known)
		}
	}
}

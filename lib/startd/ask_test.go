// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/observe"
)

// Who may only look cannot change anything by the command for looking.
func TestEachQuestionHasItsCommand(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]int{
		observe.OpStatus: command.ExecpointLook, observe.OpExplain: command.ExecpointLook,
		observe.OpDrain: command.ExecpointChange, observe.OpResume: command.ExecpointChange, observe.OpVacate: command.ExecpointChange,
		"": 0, "reboot": 0,
	} {
		for _, number := range []int{command.ExecpointLook, command.ExecpointChange} {
			if got := belongs(number, op); got != (number == want) {
				t.Errorf("%s takes the question %q: %t", command.Name(number), op, got)
			}
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"testing"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status         ExitStatus
		text, json     string
		ended, success bool
	}{
		{ExitStatus{}, "has not ended", `{"exited":false,"code":0}`, false, false},
		{ExitStatus{Exited: true}, "exited with status 0", `{"exited":true,"code":0}`, true, true},
		{ExitStatus{Exited: true, Code: 137}, "exited with status 137", `{"exited":true,"code":137}`, true, false},
		{ExitStatus{Signal: 9}, "died on signal 9", `{"exited":false,"code":0,"signal":9}`, true, false},
		{ExitStatus{Signal: 11, Core: true}, "died on signal 11 (core dumped)", `{"exited":false,"code":0,"signal":11,"core":true}`, true, false},
	} {
		text, err := json.Marshal(c.status)
		if err != nil || string(text) != c.json || c.status.String() != c.text || c.status.Ended() != c.ended || c.status.Success() != c.success {
			t.Errorf("%+v: %q, %s (%v), ended %v, success %v", c.status, c.status, text, err, c.status.Ended(), c.status.Success())
		}
	}
}

func TestProcID(t *testing.T) {
	t.Parallel()
	if p := (ProcID{PID: 12, Start: 345}); p.String() != "12@345" || p.IsZero() || !(ProcID{}).IsZero() {
		t.Errorf("%v, zero %v", p, p.IsZero())
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// What a starter does can be read in its log: reports, orders and what went
// wrong, and no word of a log that cannot be written keeps it from going on.
func TestLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	var asked LogPlan
	a := newActivation(Host{OpenLog: func(p LogPlan) (*slog.Logger, error) {
		asked = p
		return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo})), nil
	}}, nil, func(Report) {})
	a.plan = &Plan{Activation: "slot1_1#3", SlotName: "slot1_1", Log: &LogPlan{Path: "/log/StarterLog.slot1_1"}}
	a.openLog()
	if asked.Path != "/log/StarterLog.slot1_1" {
		t.Fatalf("the log opened is %q", asked.Path)
	}
	a.job = &job{cmd: "/scratch/a.out"}
	a.logOrder(Order{Op: OpSoftKill, Manner: MannerVacate, Reason: "PREEMPT is true", Code: 1011})
	for _, r := range []Report{
		{Op: OpSandbox, Dir: "/execute/dir_7"},
		{Op: OpRunning, Proc: &host.ProcID{PID: 812, Start: 5}},
		{Op: OpUsage, Usage: &host.Usage{}},
		{Op: OpTransferOutDone, Files: 2, Bytes: 17},
		{Op: OpHeld, Hold: &Hold{Code: 12, Subcode: 2, Reason: "no such file"}},
		{Op: OpEnded, Record: &ExitRecord{Status: host.ExitStatus{Signal: 15}, Evicted: true, Reason: "PREEMPT is true", Code: 1011, Problems: []string{"odd thing"}}},
	} {
		a.logReport(r)
	}
	for _, want := range []string{
		`msg="** condor_starter STARTING UP" activation=slot1_1#3 slot=slot1_1`,
		`msg=ordered what=softkill manner=vacate asked="" reason="PREEMPT is true" code=1011`,
		`msg="scratch directory made" dir=/execute/dir_7`,
		`msg="job is running" cmd=/scratch/a.out pid=812@5`,
		`msg=transfer-out-done files=2 bytes=17`,
		`level=WARN msg="job is to be held" code=12 subcode=2 reason="no such file"`,
		`level=WARN msg=problem what="odd thing"`,
		`msg="activation ended" job="died on signal 15" code=1011 subcode=0 reason="PREEMPT is true"`,
	} {
		if !strings.Contains(strings.ReplaceAll(text.String(), "  ", " "), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if strings.Contains(text.String(), "usage") {
		t.Error("usage is in a log that shows no details")
	}
	if t.Failed() {
		t.Log(text.String())
	}

	silent := newActivation(Host{OpenLog: func(LogPlan) (*slog.Logger, error) { return nil, errors.New("full") }}, nil, func(Report) {})
	silent.plan = &Plan{Log: &LogPlan{}}
	silent.openLog()
	silent.logReport(Report{Op: OpReady})
	if len(silent.record.Problems) != 1 {
		t.Errorf("problems: %q", silent.record.Problems)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// What a starter does can be read in its log: reports, orders and what went
// wrong, and no word of a log that cannot be written keeps it from going on.
func TestLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	var asked protocol.LogPlan
	machine := hosttest.New()
	a := newActivation(Host{Census: machine, OpenLog: func(p protocol.LogPlan) (*slog.Logger, time.Time, error) {
		asked = p
		return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo})), time.Date(2026, 11, 23, 9, 8, 7, 0, time.UTC), nil
	}}, nil, func(protocol.Report) {})
	a.plan = &protocol.Plan{
		Activation: "slot1_1#3", SlotName: "slot1_1", Log: &protocol.LogPlan{Path: "/log/StarterLog.slot1_1"},
		Shadow: &protocol.ShadowSide{Version: "$CondorVersion: 25.14.0 $"},
	}
	a.openLog()
	if asked.Path != "/log/StarterLog.slot1_1" {
		t.Fatalf("the log opened is %q", asked.Path)
	}
	ad, err := classad.ParseAd("ClusterId = 12\nProcId = 3\nJobUniverse = 5\nShadowIpAddr = \"<192.0.2.7:4000>\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	a.job = &job.Job{Cmd: "/scratch/a.out", Args: []string{"60", "two words"}}
	a.logJob(ad)
	a.logExec()
	machine.Install("/scratch/a.out", func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true, Code: 4} })
	ready, err := runner.All(runner.Machine{Spawner: machine})[0].Prepare(t.Context(), runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	if a.family, err = ready.Start(runner.Program{Path: "/scratch/a.out"}); err != nil {
		t.Fatal(err)
	}
	<-a.family.Done()
	pid := a.family.Main().PID
	a.logExit(a.family.Status())
	a.logOrder(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerVacate, Reason: "PREEMPT is true", Code: 1011}})
	for _, r := range []protocol.Report{
		protocol.Sandbox{Dir: "/execute/dir_7"},
		protocol.Running{Proc: host.ProcID{PID: 812, Start: 5}},
		protocol.Usage{},
		protocol.TransferOutDone{Files: 2, Bytes: 17},
		protocol.Held{Hold: protocol.Hold{Code: 12, Subcode: 2, Reason: "no such file"}},
		protocol.Ended{Record: protocol.ExitRecord{Status: host.ExitStatus{Signal: 15}, Evicted: true, Reason: "PREEMPT is true", Code: 1011, Problems: []string{"odd thing"}}},
	} {
		a.logReport(r)
	}
	a.logEnd(3)
	for _, want := range []string{
		`msg="** condor_starter (CONDOR_STARTER) STARTING UP" activation=slot1_1#3 slot=slot1_1`,
		`msg="** $CondorVersion: 25.14.0 $"`,
		fmt.Sprintf(`msg="** PID = %d RealUID = %d"`, machine.Self().PID, os.Getuid()),
		`msg="** Log last touched 11/23 09:08:07"`,
		`msg="Communicating with shadow <192.0.2.7:4000>"`,
		`msg="Starting a VANILLA universe job with ID: 12.3"`,
		`msg="About to exec /scratch/a.out 60 two' 'words"`,
		fmt.Sprintf(`msg="Process exited, pid=%d, status=4"`, pid),
		fmt.Sprintf(`msg="**** condor_starter (condor_STARTER) pid %d EXITING WITH STATUS 3"`, machine.Self().PID),
		`msg=ordered what=softkill manner=vacate asked="" reason="PREEMPT is true" code=1011`,
		`msg="scratch directory made" dir=/execute/dir_7`,
		`msg="Create_Process succeeded, pid=812"`,
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

	silent := newActivation(Host{OpenLog: func(protocol.LogPlan) (*slog.Logger, time.Time, error) { return nil, time.Time{}, errors.New("full") }}, nil, func(protocol.Report) {})
	silent.plan = &protocol.Plan{Log: &protocol.LogPlan{}}
	silent.openLog()
	silent.logReport(protocol.Continued{})
	silent.logEnd(0)
	if len(silent.record.Problems) != 1 {
		t.Errorf("problems: %q", silent.record.Problems)
	}
}

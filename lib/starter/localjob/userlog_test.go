// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// logged makes a job whose ad has those lines, in a sandbox, with its log opened.
func logged(t *testing.T, ad string) (*Job, error) {
	t.Helper()
	box, err := sandbox.Create(sandbox.Spec{Execute: t.TempDir(), Starter: host.ProcID{PID: 1000, Start: 1}, As: func(f func() error) error { return f() }, Mode: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	j := New(Config{
		Plan:   &protocol.Plan{SlotFullName: "slot1@h", MachineAd: "MyAddress = \"<1.2.3.4:5>\"\n", Settings: &protocol.Settings{}},
		AsUser: func(f func() error) error { return f() }, Errno: hosttest.Errno, Log: slog.New(slog.DiscardHandler), Report: func(protocol.Report) {},
	})
	of, err := j.Read(parse(t, "Cmd = \"/bin/p\"\nShouldTransferFiles = \"NO\"\n"+ad), box.Scratch(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Bring(t.Context(), &job.Place{Job: of, Box: box, AsUser: j.AsUser})
	return j, err
}

func codes(t *testing.T, path string) (all []eventlog.Code) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := eventlog.NewReader(file, eventlog.ReaderOptions{})
	for rec, err := r.Next(); err == nil; rec, err = r.Next() {
		if rec.Cluster != 7 || rec.Proc != 2 {
			t.Errorf("an event of %d.%d", rec.Cluster, rec.Proc)
		}
		all = append(all, rec.Event.Code())
	}
	return all
}

// What becomes of a job stands in its log once, in this order.
//
// row: S0-320
func TestUserLog(t *testing.T) {
	t.Parallel()
	ended := host.ExitStatus{Exited: true}
	for _, c := range []struct {
		name string
		play func(j *Job)
		want []eventlog.Code
	}{
		{"ends", func(j *Job) {
			j.Starting(nil)
			j.Changed(job.State{Moment: job.Runs})
			j.Changed(job.State{Moment: job.Exited, Status: ended})
			j.Send(t.Context(), job.Ending{State: job.State{Status: ended, Usage: host.Usage{UserCPU: time.Hour}}})
		}, []eventlog.Code{eventlog.CodeExecute, eventlog.CodeTerminated}},
		{"is suspended", func(j *Job) {
			j.Starting(nil)
			j.Changed(job.State{Moment: job.Suspended})
			j.Changed(job.State{Moment: job.Suspended})
			j.Changed(job.State{Moment: job.Runs})
			j.Changed(job.State{Moment: job.Runs})
		}, []eventlog.Code{eventlog.CodeExecute, eventlog.CodeSuspended, eventlog.CodeUnsuspended}},
		{"leaves", func(j *Job) {
			j.Starting(nil)
			j.Send(t.Context(), job.Ending{State: job.State{Status: ended, Evicted: &job.Eviction{}}})
		}, []eventlog.Code{eventlog.CodeExecute, eventlog.CodeEvicted}},
		{"cannot run", func(j *Job) {
			j.Held(protocol.Hold{Code: 6, Reason: "no such program"})
			j.Held(protocol.Hold{Code: 6, Reason: "no such program"})
		}, []eventlog.Code{eventlog.CodeRemoteError}},
	} {
		dir := t.TempDir()
		j, err := logged(t, "Iwd = \""+dir+"\"\nStarterUserLog = \"log\"\nClusterId = 7\nProcId = 2\n")
		if err != nil {
			t.Fatal(err)
		}
		c.play(j)
		if diff := cmp.Diff(c.want, codes(t, filepath.Join(dir, "log"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A relative log is below the job's directory, which is the scratch directory or below
// it if the job names none. A log that is no file holds the job and nothing else.
//
// row: S0-319, S0-318
func TestUserLogPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := logged(t, "StarterUserLog = \"log\"\n")
	if want := filepath.Join(j.place.Box.Scratch(), "log"); err != nil || j.log.path != want {
		t.Errorf("%v; the log is %s, want %s", err, j.log.path, want)
	}
	for _, lines := range []string{"StarterUserLog = \"none/log\"\n", "StarterUserLog = \".\"\n", "StarterUserLog = \".\"\nStarterUserLogUseXML = true\n"} {
		_, err := logged(t, "Iwd = \""+dir+"\"\n"+lines)
		if held, ok := err.(*job.Held); !ok || !strings.Contains(held.Hold.Reason, "StarterUserLog") {
			t.Errorf("%s: %v", lines, err)
		}
	}
	if j, err := logged(t, "Iwd = \""+dir+"\"\n"); err != nil || j.log.path != "" {
		t.Errorf("a log that nobody wants: %q, %v", j.log.path, err)
	}
}

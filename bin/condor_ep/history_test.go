// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Without a job it is said that there is none, and where it was looked; programs have
// their empty list.
func TestHistoryOfNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.dir, "none_history")
	p.write(t, "ep.conf", "STARTD_HISTORY = "+file+"\n")
	p.write(t, "one", "ClusterId = 1\nProcId = 0\n*** Offset = 0 ClusterId = 1 ProcId = 0 Owner = \"x\" CompletionDate = 1782000000\n")
	const said = "condor_ep history: no job has been recorded; looked in "
	for _, tt := range []struct {
		args        []string
		out, errOut string
	}{
		{[]string{"-config", "ep.conf"}, "", said + file + "\n"},
		{[]string{"-config", "ep.conf", "-long"}, "", said + file + "\n"},
		{[]string{"-config", "ep.conf", "-json"}, "[\n]\n", ""},
		{[]string{"-config", "ep.conf", "-jsonl"}, "", ""},
		{[]string{"-file", "one", "-constraint", "ClusterId > 1"}, "", "condor_ep history: no recorded job meets the constraint; looked in one\n"},
	} {
		if status, stdout, stderr := p.ep(t, append([]string{"history"}, tt.args...)...); status != exitOK || stdout != tt.out || stderr != tt.errOut {
			t.Errorf("%q: status %d, %q, %q", tt.args, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := p.ep(t, "history"); status != exitOK || stdout != "" || !strings.HasPrefix(stderr, "condor_ep history: no job has been recorded") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

// An EP keeps the ads of its jobs, and they can be read.
//
// row: S4-019
func TestHistory(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\ncase $1 in kill) kill -9 $$;; esac\nexit $1\n")
	p.write(t, "job.sub", small+"executable = job.sh\narguments = $(how)\nqueue how in (0, 3, kill)\n")
	file := filepath.Join(p.dir, "startd_history")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTD_HISTORY = "+file+"\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitSomeFailed {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	raw := p.read(t, "startd_history")
	if strings.Count(raw, "\n*** Offset = ") != 3 || !strings.HasSuffix(raw, "\n") {
		t.Errorf("history:\n%s", raw)
	}
	status, stdout, stderr := p.ep(t, "history", "-config", "ep.conf", "-jsonl")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	var got []map[string]any
	for line := range strings.Lines(stdout) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	if len(got) != 3 {
		t.Fatalf("%d jobs:\n%s", len(got), stdout)
	}
	// -json is one list, as condor_history writes it, also of no jobs.
	var list []map[string]any
	if _, stdout, _ := p.ep(t, "history", "-config", "ep.conf", "-json"); json.Unmarshal([]byte(stdout), &list) != nil || !cmp.Equal(list, got) ||
		!strings.HasPrefix(stdout, "[\n{") || !strings.HasSuffix(stdout, "}\n]\n") {
		t.Errorf("-json: %s", stdout)
	}
	if _, stdout, _ := p.ep(t, "history", "-config", "ep.conf", "-json", "-constraint", "false"); stdout != "[\n]\n" {
		t.Errorf("-json of none: %q", stdout)
	}
	p.refused(t, exitUsage, "exclude one another", "history", "-file", file, "-json", "-long")
	pick := func(m map[string]any) string {
		b, err := json.Marshal([]any{m["ProcId"], m["JobStatus"], m["JobState"], m["ExitBySignal"], m["ExitCode"], m["ExitSignal"], m["BadputCausedByDraining"], m["MyType"]})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := []string{
		`[2,4,"Exited",true,null,9,false,"Job"]`,
		`[1,4,"Exited",false,3,null,false,"Job"]`,
		`[0,4,"Exited",false,0,null,false,"Job"]`,
	}
	if d := cmp.Diff(want, []string{pick(got[0]), pick(got[1]), pick(got[2])}); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"RemoteHost", "PublicClaimId", "CompletionDate", "JobCurrentStartDate", "JobDuration", "RemoteWallClockTime",
		"CondorScratchDir", "JobPid", "CpusProvisioned", "MemoryProvisioned", "DiskProvisioned", "RemoteUserCpu", "ResidentSetSize", "GlobalJobId"} {
		if got[0][name] == nil {
			t.Errorf("no %s", name)
		}
	}
	if id, _ := got[0]["PublicClaimId"].(string); !strings.HasSuffix(id, "#...") {
		t.Errorf("the claim id is shown: %q", id)
	}
	_, stdout, _ = p.ep(t, "history", "-file", file, "-limit", "1", "-constraint", "ExitCode == 3")
	if lines := strings.Split(stdout, "\n"); len(lines) != 3 || !strings.Contains(lines[1], ".1 ") || !strings.Contains(lines[1], "status 3") {
		t.Errorf("%q", lines)
	}
	_, stdout, _ = p.ep(t, "history", "-file", file, "-long", "-limit", "1")
	if !strings.Contains(stdout, "\nExitSignal = 9\n") {
		t.Errorf("%s", stdout)
	}
	p.refused(t, exitUsage, "no such file", "history", "-file", file+".none", "-json")
	p.refused(t, exitUsage, "-constraint:", "history", "-file", file, "-constraint", "1 +")
	p.refused(t, exitUsage, "-limit", "history", "-limit", "-1")
	p.write(t, "broken", raw+"half a rec")
	if status, stdout, stderr := p.ep(t, "history", "-file", "broken"); status != exitSomeFailed || strings.Count(stdout, "\n") != 4 || !strings.Contains(stderr, "without its last line") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	p.nothingLeft(t)
}

// Jobs of less than a second are told apart; RemoteWallClockTime has whole ones.
func TestHistoryOfShortJobs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const banner = "*** Offset = 0 ClusterId = 7 ProcId = 0 Owner = \"ann\" CompletionDate = 1\n"
	p.write(t, "short", "ClusterId = 7\nProcId = 0\nRemoteWallClockTime = 0\nJobDuration = 0.31\n"+banner+
		"ClusterId = 7\nProcId = 1\nRemoteWallClockTime = 40\nJobDuration = 0.31\n"+banner+
		"ClusterId = 7\nProcId = 2\nRemoteWallClockTime = 2\n"+banner)
	_, stdout, stderr := p.ep(t, "history", "-file", "short")
	for _, want := range []string{"0.3 s", "40 s", "2.0 s"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s\n%s%s", want, stdout, stderr)
		}
	}
}

// Where several histories are found, their jobs are shown in one order, the newest
// first, and -limit counts all of them.
func TestHistoriesTogether(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	record := func(cluster, at int) string {
		at += 1782000000
		return fmt.Sprintf("ClusterId = %d\nProcId = 0\nCompletionDate = %d\n*** Offset = 0 ClusterId = %d ProcId = 0 Owner = \"x\" CompletionDate = %d\n", cluster, at, cluster, at)
	}
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	texts := []string{record(1, 10) + record(1, 40), record(2, 20) + record(2, 30)}
	for n, text := range texts {
		if status, stdout, stderr := p.ep(t, "run", "-keep", "job.sub"); status != exitOK {
			t.Fatalf("status %d\n%s%s", status, stdout, stderr)
		}
		found, _ := filepath.Glob(filepath.Join(p.tmp, fmt.Sprintf("execpoint-run-%d-*", n+1), "log", "startd_history"))
		if len(found) != 1 {
			t.Fatalf("histories of run %d: %q", n+1, found)
		}
		if err := os.WriteFile(found[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		limit string
		want  []int
	}{{"0", []int{40, 30, 20, 10}}, {"1", []int{40}}, {"3", []int{40, 30, 20}}} {
		status, stdout, stderr := p.ep(t, "history", "-jsonl", "-limit", tt.limit)
		var got []int
		for line := range strings.Lines(stdout) {
			var ad struct{ CompletionDate int }
			if err := json.Unmarshal([]byte(line), &ad); err != nil {
				t.Fatal(err)
			}
			got = append(got, ad.CompletionDate-1782000000)
		}
		if d := cmp.Diff(tt.want, got); status != exitOK || d != "" {
			t.Errorf("-limit %s: status %d, %s\n%s%s", tt.limit, status, d, stdout, stderr)
		}
	}
}

// A job that was made to leave is kept with the reason, which its user is told.
func TestHistoryOfEvicted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"-quick", "-graceful"} { // a graceful drain has nothing to wait for
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			file := filepath.Join(p.dir, "startd_history")
			pr, output := p.running(t, "STARTD_HISTORY = "+file+"\n")
			p.accepted(t, "request id 1", "drain", how, "-exit-on-completion")
			if stdout, stderr := output(); pr.status != exitSomeFailed || !strings.Contains(stdout, ": Startd was draining") {
				t.Errorf("status %d\n%s%s", pr.status, stdout, stderr)
			}
			_, stdout, stderr := p.ep(t, "history", "-file", file, "-long")
			for _, want := range []string{"VacateReason = \"Startd was draining\"", "VacateReasonCode = 1014", "BadputCausedByDraining = true", "BadputCausedByPreemption = false"} {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %s\n%s%s", want, stdout, stderr)
				}
			}
		})
	}
}

// The log of the EP's own doings, as in the recorded run policy-history-02.
func TestEPEventLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.dir, "EpLog")
	pr, output := p.running(t, "STARTD_EVENTLOG = "+file+"\n")
	p.accepted(t, "vacating", "vacate", "-fast", "slot1_1")
	waitFor(t, "the job runs again", func() bool { return strings.Count(p.read(t, "job.log"), "Job executing on host") == 2 })
	pr.signal(t, syscall.SIGHUP)
	waitFor(t, "the configuration is taken over", func() bool { return strings.Contains(p.log(), "configuration taken over") })
	pr.interrupt(t, p, 2)
	output()
	var got []string
	for _, ev := range strings.Split(p.read(t, "EpLog"), "...\n") {
		if head, _, ok := strings.Cut(ev, "\n"); ok {
			f := strings.Fields(head)
			got = append(got, f[0]+" "+f[1]+" "+f[4])
		}
	}
	// The part that is claimed anew is slot1_2 if the starter of the first is
	// not gone yet.
	second := "(001.001.000)"
	if len(got) > 6 && strings.Contains(got[6], "(001.002.000)") {
		second = "(001.002.000)"
	}
	want := []string{
		"100 (000.000.000) EP_STARTUP", "101 (000.000.000) EP_READY",
		"104 (001.000.000) EP_REQUEST_CLAIM", "106 (001.001.000) EP_ACTIVATE_CLAIM", "108 (001.001.000) EP_VACATE_CLAIM",
		"104 (001.000.000) EP_REQUEST_CLAIM", "106 " + second + " EP_ACTIVATE_CLAIM",
		"102 (000.000.000) EP_RECONFIG", "108 " + second + " EP_VACATE_CLAIM", "103 (000.000.000) EP_SHUTDOWN",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, text := range []string{"  JobId = \"1.0\"\n  NewSlots = \"slot1_1\"\n  RemoteUser = ", "  Code = 1010\n", "  StarterPid = ", "  NumSlots = 1\n"} {
		if !strings.Contains(p.read(t, "EpLog"), text) {
			t.Errorf("no %q in\n%s", text, p.read(t, "EpLog"))
		}
	}
}

// What a full disk cut off does not exit with 0. /dev/full is such a disk.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full")
	}
	t.Cleanup(func() { _ = full.Close() })
	p := newPlace(t)
	p.write(t, "one.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"history"}, exitUsage}, {[]string{"-help"}, exitUsage}, {[]string{"help", "run"}, exitUsage}, {[]string{"classad", "eval", "1"}, exitUsage},
		{[]string{"status"}, exitSomeFailed}, // nothing runs: that is said elsewhere
		{[]string{"run", "one.sub"}, exitOK},
	} {
		c, _, stderr := p.cmd(t, tt.args...)
		c.Stdout = full
		_ = c.Run() // the status says it
		if got := c.ProcessState.ExitCode(); got != tt.want || tt.want == exitUsage && !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%v: status %d, want %d\n%s", tt.args, got, tt.want, stderr)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/explain"
)

const deskMachine = `{"name": "desk.example.org", "cpus": 8, "memory_mb": 16000, "disk_kb": 80000000}`

// TestExplainTried explains what a configuration would do, nothing running.
func TestExplainTried(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	machine := p.write(t, "desk.json", deskMachine)
	desktop := p.write(t, "desk.conf", "# the owner's\nuse POLICY : Desktop\n")
	split := p.write(t, "split.conf", "NUM_SLOTS_TYPE_1 = 4\nSLOT_TYPE_1 = 25%\nSTART = TARGET.Owner == \"ann\" && KeyboardIdle > 60\n")
	night := p.write(t, "night.conf", "START = TARGET.RequestMemory < 2000 && SlotID == 2\nNUM_SLOTS_TYPE_1 = 2\n")
	never := p.write(t, "never.conf", "START = false\n")
	bad := p.write(t, "bad.conf", "NUM_CPUS = some\n")
	big := p.write(t, "big.ad", "RequestCpus = 1\nRequestMemory = 32000\nRequestDisk = 1\nOwner = \"bob\"\nRequirements = TARGET.HasFileTransfer && TARGET.HasDocker\n")
	small := p.write(t, "small.ad", "RequestCpus = 1\nRequestMemory = 100\nRequestDisk = 1\nOwner = \"ann\"\n")
	sub := p.write(t, "job.sub", "executable = /bin/true\nrequest_memory = 100\nqueue\n")
	for _, tt := range []struct {
		args []string
		want []string // in this order
		not  string
	}{
		{[]string{"-config", desktop, "-machine", machine, "-set", "KeyboardIdle = 34", "-set", "LoadAvg = 0.0"}, []string{
			"slot1 is Owner/Idle", "slot1 takes no job because its owner has it: IS_OWNER is TRUE",
			"START would be TRUE if KeyboardIdle > 900; it is 34 now, in 14 min 27 s if nobody types", "set at  use POLICY:DESKTOP (" + desktop + ":2)",
			"uses    $(StartIdleTime)", "read    MY.KeyboardIdle = 34"}, ""},
		{[]string{"-config", desktop, "-machine", machine, "-set", "KeyboardIdle = 1000", "-set", "LoadAvg = 0.0", "slot1"}, []string{
			"slot1 is Unclaimed/Idle", "slot1 takes any job that fits: START is TRUE", "IS_OWNER would be TRUE if "}, ""},
		{[]string{"-config", split, "-machine", machine, "-set", "KeyboardIdle = 34", "-job", big}, []string{
			"no slot takes the job now", "4 slots (slot1, slot2, slot3, slot4)",
			"START would be TRUE if all of these were so:", `TARGET.Owner == "ann"; it is "bob" now`, "in 27 s if nobody types",
			"the job's RequestMemory is 32000, the slot's Memory is 4000", "HasDocker is not in the slot's ad"}, "HasFileTransfer"},
		{[]string{"-config", split, "-machine", machine, "-set", "KeyboardIdle = 34"}, []string{
			"slot1 takes no job", `TARGET.Owner == "ann"; that depends on the job`, "the same holds for slot2", "the same holds for slot4"}, ""},
		{[]string{"-config", night, "-machine", machine, "-job", small}, []string{
			"1 of 2 slots would take the job now", "slot1\n    START would be TRUE if SlotID == 2; it is 1 now [" + night + ":1]", "slot2\n    would take the job now"}, ""},
		{[]string{"-config", night, "-machine", machine, "-job", small, "slot2"}, []string{"slot2 would let this job in: START is TRUE"}, "slot1"},
		{[]string{"-config", never, "-machine", machine}, []string{"slot1 takes no job", "START is FALSE: the constant FALSE; nothing changes it", never + ":1"}, ""},
		{[]string{"-config", p.write(t, "any.conf", "START = true\n"), "-job", sub}, []string{"1 of 1 slot would take the job now"}, ""},
	} {
		var stdout, stderr bytes.Buffer
		if got := tool(append([]string{"explain"}, tt.args...), &stdout, &stderr); got != exitOK || stderr.Len() > 0 {
			t.Errorf("explain %v: exit status %d: %s", tt.args, got, &stderr)
		}
		rest := stdout.String()
		for _, w := range tt.want {
			_, after, ok := strings.Cut(rest, w)
			if !ok {
				t.Errorf("explain %v: no %q in\n%s", tt.args, w, &stdout)
			}
			rest = after
		}
		if tt.not != "" && strings.Contains(stdout.String(), tt.not) {
			t.Errorf("explain %v: %q in\n%s", tt.args, tt.not, &stdout)
		}
	}
	for _, tt := range []struct {
		args []string
		say  string
	}{
		{[]string{"slot1", "slot2"}, "want one slot (slot1_1) or job (3.0)"},
		{[]string{"-machine", machine, "-name", "node7"}, "-machine and -set try what an Execution Point would do, -name and -pool ask one that runs"},
		{[]string{"-set", "A = 1", "-pool", "p"}, "-machine and -set try"},
		{[]string{"-config", bad, "-machine", machine}, bad + ":1:"},
		{[]string{"-config", never, "-machine", machine, "slot7"}, "there would be no slot slot7"},
		{[]string{"-config", never, "-machine", machine, "-job", p.dir + "/none.ad"}, "none.ad: no such file"},
		{[]string{"-config", never, "-machine", machine, "-set", "=5"}, "is not NAME=EXPRESSION"},
		{[]string{"-config", never, "-machine", machine, "-job", p.write(t, "none.sub", "executable = x\n")}, "none.sub"},
	} {
		var stdout, stderr bytes.Buffer
		if got := tool(append([]string{"explain"}, tt.args...), &stdout, &stderr); got != exitUsage || !strings.Contains(stderr.String(), tt.say) {
			t.Errorf("explain %v: exit status %d, %s; want %q", tt.args, got, &stderr, tt.say)
		}
	}
	var stdout, stderr bytes.Buffer
	if got := tool([]string{"explain", "-json", "-config", desktop, "-machine", machine, "-set", "KeyboardIdle = 34", "-set", "LoadAvg = 0.0"}, &stdout, &stderr); got != exitOK {
		t.Fatalf("exit status %d: %s", got, &stderr)
	}
	var r explain.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	i := len(r.Exprs) - 1
	if r.Slot != "slot1" || r.State != "Owner" || i < 0 || r.Exprs[i].Name != "START" || r.Exprs[i].Residual == nil ||
		r.Exprs[i].Residual.Forecast.Seconds != 867 || r.Exprs[i].Residual.Changes[0].To != "901" {
		t.Errorf("got %+v", r)
	}
}

// What a job calls things neither moves the cursor nor makes lines of its own.
func TestExplainForeignTexts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	machine := p.write(t, "m.json", `{"cpus": 4, "memory_mb": 8000, "disk_kb": 1000000}`)
	conf := p.write(t, "ep.conf", "START = TARGET.Owner == \"ann\"\n")
	job := p.write(t, "job.ad", `{"RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 1, "Owner": "mal\u001b[2J\nslot1 is Claimed/Busy\u009b31m"}`)
	for _, slot := range [][]string{nil, {"slot1"}} {
		var stdout, stderr bytes.Buffer
		if got := tool(append([]string{"explain", "-config", conf, "-machine", machine, "-job", job}, slot...), &stdout, &stderr); got != exitOK {
			t.Fatalf("exit status %d: %s", got, &stderr)
		}
		text := stdout.String()
		if strings.ContainsAny(text, "\x1b\u009b") || strings.Contains(text, "\nslot1 is Claimed") || !strings.Contains(text, `\x1b[2J`) {
			t.Errorf("%q", text)
		}
	}
}

// A running Execution Point answers about a job that might be submitted.
func TestExplainWouldBeJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", stubborn)
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	p.write(t, "ep.conf", "START = Owner =!= \"mallory\"\n")
	p.write(t, "next.ad", "RequestCpus = 1\nRequestMemory = 100\nRequestDisk = 1\nOwner = \"mallory\"\n")
	p.write(t, "huge.ad", "RequestCpus = 100000\nRequestMemory = 100\nRequestDisk = 1\nOwner = \"ann\"\n")
	pr, output := p.start(t, 1, "run", "-config", "ep.conf", "job.sub")
	_, all, _ := p.ep(t, "explain")
	if !strings.Contains(all, "slot1 is ") || !strings.Contains(all, "slot1_1 takes no other job while it runs 1.0") {
		t.Errorf("of all slots it is said\n%s", all)
	}
	for file, want := range map[string][]string{
		"next.ad": {"no slot takes the job now", "slot1", `START would be TRUE if Owner =!= "mallory"`, "ep.conf:1]"},
		"huge.ad": {"no slot takes the job now, and none ever could", "the job's RequestCpus is 100000, the slot's Cpus is "},
	} {
		status, stdout, stderr := p.ep(t, "explain", "-job", file)
		if status != exitOK {
			t.Errorf("explain -job %s: status %d: %s", file, status, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("explain -job %s lacks %q:\n%s", file, w, stdout)
			}
		}
	}
	pr.interrupt(t, p, 2)
	output()
	p.nothingLeft(t)
}

// An answer may be anything: what explains nothing ends no program.
func TestExplainOfNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir, err := os.MkdirTemp("", "ctl") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, ".execpoint_a.ctl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = c.Write([]byte("{\"status\":null,\"explanations\":[null]}\n"))
			_ = c.Close()
		}
	}()
	p.write(t, "ep.conf", "RUN = "+dir+"\n")
	for _, args := range [][]string{{"explain", "-config", "ep.conf"}, {"explain", "-config", "ep.conf", "-json"}, {"status", "-config", "ep.conf"}} {
		if status, stdout, stderr := p.ep(t, args...); status != exitOK || stdout != "" || stderr != "" {
			t.Errorf("%q: status %d, %q\n%s", args, status, stdout, stderr)
		}
	}
}

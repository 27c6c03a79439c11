// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck runs check on configurations with and without mistakes.
func TestCheck(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	good := p.write(t, "good.conf", "START = KeyboardIdle > 15 * $(MINUTE)\nuse POLICY : Desktop\n")
	warn := p.write(t, "warn.conf", "SUSPEND = KeyboardIdle < 60\n")
	bad := p.write(t, "bad.conf", "START = (KeyboardIdle > 60\nnonsense here\nPOLLING_INTERVAL = often\n")
	const cron = "STARTD_CRON_JOBLIST = probe\nSTARTD_CRON_probe_PERIOD = 5m\nSTARTD_CRON_probe_EXECUTABLE = "
	unread := p.write(t, "unread.conf", "USER_JOB_WRAPPER = /usr/bin/env\nUSE_PID_NAMESPACE_INIT = False\nSCHEDD_INTERVAL = 5\nDISABLE_EXECUTE_DIRECTORY_ENCRYPTION = False\n")
	starter := p.write(t, "starter.conf", "if $(IsStarter)\n  STARTER_UPDATE_INTERVAL = soon\nendif\nSTARTER.ENABLE_CHIRP = perhaps\n")
	wrapper := p.write(t, "wrapper", "#!/bin/sh\n")
	safe := p.write(t, "safe.conf", cron+wrapper+"\n")
	loose := p.write(t, "loose", "#!/bin/sh\n")
	unsafe := p.write(t, "unsafe.conf", cron+loose+"\n")
	node := p.write(t, "node.conf", "use FEATURE : GPUs\nSLOT_TYPE_1 = cpus=1, mem=50%, disk=50%, GPUs=2\nNUM_SLOTS_TYPE_1 = 1\n"+
		"MACHINE_RESOURCE_INVENTORY_Cogs = /opt/count_cogs -all\nSLOT_TYPE_2 = cpus=1, mem=25%, disk=25%, cogs=1 : Teeth > 3\nNUM_SLOTS_TYPE_2 = 1\n"+
		"START = $(UWCS_START)\nUWCS_START = KeyboardIdle > 60\n")
	monitor := p.write(t, "monitor.conf", "use FEATURE : StartdCronPeriodic(x, 5m, $(LIBEXEC)/no_such_program)\n")
	old := p.write(t, "old.conf", "UWCS_START = KeyboardIdle > 60\n")
	one := p.write(t, "one.json", `{"cpus":4,"memory_mb":4000,"disk_kb":1000000,"resources":{"GPUs":["a"]}}`)
	two := p.write(t, "two.json", `{"cpus":4,"memory_mb":4000,"disk_kb":1000000,"resources":{"GPUs":["a","b"]}}`)
	for path, mode := range map[string]os.FileMode{wrapper: 0o755, loose: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   []string // in the output, in this order
	}{
		{[]string{good}, 0, nil},
		{[]string{safe}, 0, nil},
		{[]string{warn}, 1, []string{warn + ":1:1: warning EP033: SUSPEND is never looked at", "\n    instead  WANT_SUSPEND = True\n"}},
		{[]string{"-warnings-ok", warn}, 0, []string{"EP033"}},
		{[]string{bad}, 1, []string{bad + ":1:27: error EP022: START does not parse", "instead  close every parenthesis: 1 is opened and 0 are closed", bad + ":2:", "EP001", bad + ":3:1: error EP020: POLLING_INTERVAL"}},
		{[]string{"-warnings-ok", warn, bad, good}, 1, []string{"EP033", "EP022"}},
		{[]string{node}, 0, nil}, // nobody has counted the GPUs, and their monitor need not be installed
		{[]string{"-machine", two, node}, 0, nil},
		{[]string{"-machine", one, node}, 1, []string{node + ":2:1: error EP050: SLOT_TYPE_1 cannot be built: Not enough GPUs"}},
		{[]string{"-machine", old, node}, 2, nil},
		{[]string{monitor}, 1, []string{"EP060", "no_such_program"}},
		{[]string{unread}, 1, []string{unread + ":1:1: warning EP017: USER_JOB_WRAPPER has no effect", "START", unread + ":2:1: warning EP017: USE_PID_NAMESPACE_INIT"}},
		{[]string{old}, 1, []string{"EP011"}},
		{[]string{starter}, 1, []string{starter + ":2:3: error EP020: STARTER_UPDATE_INTERVAL", starter + ":4:1: error EP020: STARTER.ENABLE_CHIRP"}},
		{[]string{unsafe}, 1, []string{"EP062", "they can write to " + loose}},
		{[]string{filepath.Join(p.dir, "none.conf")}, 2, nil},
		{[]string{filepath.Join(p.dir, "none.conf"), bad}, 2, []string{"EP022"}},
		{[]string{p.dir}, 2, nil},
		{[]string{"-no-such-option"}, 2, nil},
	} {
		var stdout, stderr bytes.Buffer
		if got := tool(append([]string{"check"}, tt.args...), &stdout, &stderr); got != tt.status {
			t.Errorf("check %v: exit status %d, want %d\n%s%s", tt.args, got, tt.status, &stdout, &stderr)
		}
		if tt.status == 2 != (stderr.Len() > 0) {
			t.Errorf("check %v: stderr is %q", tt.args, &stderr)
		}
		rest := stdout.String()
		if tt.want == nil && rest != "" {
			t.Errorf("check %v: printed %s", tt.args, rest)
		}
		for _, want := range tt.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("check %v: no %q in\n%s", tt.args, want, &stdout)
				break
			}
			rest = after
		}
	}
}

// TestCheckJSON reads findings back as objects.
func TestCheckJSON(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	conf := p.write(t, "bad.conf", "# a comment\n\nPREEMPT = EnteredCurrentActivity > 600\nuse POLICY : Preempt_If(Nothing)\n")
	var stdout, stderr bytes.Buffer
	if got := tool([]string{"check", "-json", conf}, &stdout, &stderr); got != 1 || stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %s", got, &stderr)
	}
	type finding struct {
		Code, Severity, File, Template, Knob, Value, Message, Explanation, Instead string
		Line, Column                                                               int
	}
	var list []finding
	for line := range strings.Lines(stdout.String()) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if f.Message == "" || f.Explanation == "" || f.Instead == "" || f.File != conf {
			t.Errorf("incomplete: %s", line)
		}
		list = append(list, f)
	}
	if len(list) != 1 || list[0].Code != "EP008" || list[0].Line != 4 || list[0].Column != 1 || list[0].Template != "POLICY:Preempt_If" {
		t.Errorf("found %+v", list)
	}
}

// TestShippedExamples have nothing wrong with them.
func TestShippedExamples(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir(filepath.Join("..", "..", "examples"), func(path string, d os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".conf") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlace(t)
		for _, dir := range []string{"execute", "execute.original"} { // as condor_master's or the package's start makes them
			if err := os.Mkdir(filepath.Join(p.dir, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		copied := p.write(t, "example.conf", strings.ReplaceAll(string(text), "$(LOCAL_DIR)", p.dir)) // wherever the sources lie
		var stdout, stderr bytes.Buffer
		if got := tool([]string{"check", copied}, &stdout, &stderr); got != 0 || stdout.Len()+stderr.Len() > 0 {
			t.Errorf("%s: exit status %d\n%s%s", file, got, &stdout, &stderr)
		}
	}
}

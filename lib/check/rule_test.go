// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

var update = flag.Bool("update", false, "write docs/checks.md and the expected findings")

// someFiles are the files of the machine that tests check for. Everything
// below /usr exists.
type someFiles map[string]FileFacts

func (f someFiles) Facts(path string) (FileFacts, error) {
	if facts, ok := f[path]; ok {
		return facts, nil
	}
	return FileFacts{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
}

func theFiles() someFiles {
	return someFiles{
		"/etc/hostname": {}, "/tmp/probe": {Executable: true, OthersMay: "/tmp/probe"}, "/tmp/shared.conf": {OthersMay: "/tmp/shared.conf"},
		"/usr/libexec/health": {Executable: true}, "/usr/libexec": {Dir: true},
		// what the templates run
		"/usr/libexec/condor_gpu_utilization": {Executable: true}, "/usr/libexec/common-cloud-attributes-aws.py": {Executable: true},
		"/usr/libexec/common-cloud-attributes-google.py": {Executable: true},
	}
}

// fourCores is a machine with 4 cores and 16 GiB.
func fourCores(t *testing.T) *machine.Inventory {
	t.Helper()
	inv, _ := machine.Scan(context.Background(), time.Unix(1e9, 0))
	inv.Hostname, inv.FullHostname, inv.Arch, inv.OpSys = "host", "host.example.org", "X86_64", "LINUX"
	inv.DetectedCores, inv.PhysicalCores, inv.UsableCores = 4, 4, 4
	inv.DetectedMemoryMiB, inv.PhysicalMemoryMiB, inv.UsableMemoryMiB = 16000, 16000, 16000
	inv.SwapKiB, inv.Execute.FreeKiB, inv.Execute.TotalKiB = 20<<20, 100<<20, 100<<20
	inv.Learn("test", "Hostname", "FullHostname", "Arch", "OpSys", "DetectedCores", "PhysicalCores", "UsableCores", "DetectedMemoryMiB",
		"PhysicalMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return inv
}

// checked checks a text as the file /etc/condor/condor_config.
func checked(t *testing.T, text string) []Finding {
	t.Helper()
	const root = "/etc/condor/condor_config"
	read := func(path string) ([]byte, error) {
		switch path {
		case root:
			return []byte(text), nil
		case "/tmp/shared.conf":
			return []byte("# nothing\n"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	inv := fourCores(t)
	facts := machine.ConfigFacts(inv)
	facts["TILDE"], facts["USERNAME"] = "/var/lib/condor", "condor"
	s, partial, list := Load(config.Options{
		Root: root, Facts: facts, Subsystem: "STARTD", ReadFile: read, ReadDir: func(string) ([]string, error) { return nil, fs.ErrNotExist }, Seed: 1,
	})
	if s != nil {
		list = append(list, Snapshot(Subject{Config: s, Partial: partial, Inventory: inv, Source: read, Files: theFiles()})...)
	}
	return Sorted(list)
}

// TestRules runs the example of each rule: it has that finding, and where the
// rule is not about reading, nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	var last Code
	for _, r := range Rules() {
		if r.Code <= last || r.Title == "" || r.Why == "" || r.Instead == "" || r.Example == "" {
			t.Errorf("%s: the row is not complete, or not in order", r.Code)
		}
		last = r.Code
		list := checked(t, r.Example)
		if !slices.ContainsFunc(list, func(f Finding) bool { return f.Code == r.Code && f.Severity == r.Severity }) {
			t.Errorf("%s: the example has no such finding, but %v", r.Code, list)
		}
		for _, f := range list {
			if f.Code != r.Code {
				t.Errorf("%s: the example also has %v", r.Code, f)
			}
			if f.Message == "" || f.Instead == "" || f.File == "" {
				t.Errorf("%s: incomplete: %#v", r.Code, f)
			}
		}
	}
}

// TestDocumentIsCurrent compares the page with the table.
func TestDocumentIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "checks.md")
	want := Document()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/checks.md is not what go generate ./lib/check makes (%v)", err)
	}
}

// TestNothingFalse checks the defaults and every template alone: nobody made
// a mistake there.
func TestNothingFalse(t *testing.T) {
	t.Parallel()
	args := map[string]string{
		"FEATURE:MONITOR": "(health, Periodic, 300, /usr/libexec/health, SUM:health)", "FEATURE:ONESHOTCRONHOOK": "(STARTD_CRON, health, /usr/libexec/health)",
		"FEATURE:PERIODICCRONHOOK": "(STARTD_CRON, health, 5m, /usr/libexec/health)", "FEATURE:CONTINUOUSCRONHOOK": "(STARTD_CRON, health, /usr/libexec/health)",
		"FEATURE:STARTDCRONONESHOT": "(health, /usr/libexec/health)", "FEATURE:STARTDCRONPERIODIC": "(health, 5m, /usr/libexec/health)",
		"FEATURE:STARTDCRONCONTINUOUS": "(health, /usr/libexec/health)", "FEATURE:SCHEDDCRONONESHOT": "(health, /usr/libexec/health)",
		"FEATURE:SCHEDDCRONPERIODIC": "(health, 5m, /usr/libexec/health)", "FEATURE:SCHEDDCRONCONTINUOUS": "(health, /usr/libexec/health)",
		"FEATURE:POLICY_HOURS_TO_START": "(8, 17, 1, 5)", "POLICY:DESKTOP_IDLE": "(8, 12+5)", "POLICY:DESKTOP_HOURS": "(8, 17, 1, 5)",
		"POLICY:LIMIT_JOB_RUNTIMES": "(2*3600)", "POLICY:PREEMPT_IF": "(TooHot)", "POLICY:WANT_HOLD_IF": "(TooHot, 5, it is too hot)",
		"POLICY:PREEMPT_IF_RUNTIME_EXCEEDS": "(3600)", "POLICY:HOLD_IF_RUNTIME_EXCEEDS": "(24*3600)", "FEATURE:PARTITIONABLESLOT": "(2, cpus=50%, 75%)",
		"FEATURE:STATICSLOTS": "(1, 2)",
	}
	texts := []string{""}
	for name := range config.Templates() {
		category, template, _ := strings.Cut(name, ":")
		use := "use " + category + " : " + template
		before := "TooHot = TARGET.JobUniverse == 5 && LoadAvg > 20\n"
		texts = append(texts, before+use+args[strings.ToUpper(name)]+"\n")
		if category == "POLICY" || template == "GPUs" || template == "PartitionableSlot" || template == "StaticSlots" {
			texts = append(texts, before+"use POLICY : Desktop\n"+use+args[strings.ToUpper(name)]+"\n")
		}
		switch strings.ToUpper(name) {
		case "FEATURE:PARTITIONABLESLOT", "FEATURE:STATICSLOTS", "POLICY:DESKTOP_IDLE", "POLICY:LIMIT_JOB_RUNTIMES", "POLICY:HOLD_IF_RUNTIME_EXCEEDS", "FEATURE:GPUS":
			texts = append(texts, use+"\n")
		}
	}
	for _, text := range texts {
		for _, f := range checked(t, text) {
			t.Errorf("%s\n%v", text, f)
		}
	}
}

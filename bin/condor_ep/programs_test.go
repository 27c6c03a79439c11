// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
)

// probe scans the programs of this machine with a configuration, as for a starter
// that runs jobs of every kind.
func probe(t *testing.T, ctx context.Context, text string) (*machine.Inventory, []error) {
	t.Helper()
	p, err := thishost.Visit()
	if err != nil {
		t.Fatal(err)
	}
	snap, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	prober := p.Prober()
	prober.Runs = func(machine.Kind) bool { return true }
	return machine.Scan(ctx, time.Now(), machine.Programs(prober, snap))
}

// script writes a program of a shell.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	syscall.ForkLock.RLock() // no child may hold it open for writing
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The Java of this machine is advertised with what it says itself.
func TestJavaOfThisMachine(t *testing.T) {
	t.Parallel()
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("there is no Java here: ", err)
	}
	said, err := exec.Command(java, "-version").CombinedOutput()
	if err != nil {
		t.Skip("the Java here does not work: ", err)
	}
	inv, problems := probe(t, t.Context(), "DOCKER =\nSINGULARITY =\nJAVA = "+java)
	if problems != nil {
		t.Error(problems)
	}
	version, _ := inv.Attrs.EvalString("JavaVersion", nil)
	vendor, _ := inv.Attrs.EvalString("JavaVendor", nil)
	has, _ := inv.Attrs.EvalBool("HasJava", nil)
	if !has || version == "" || vendor == "" || !strings.Contains(string(said), `"`+version+`"`) {
		t.Errorf("%s\nof\n%s", inv.Attrs.Text(classad.Old), said)
	}
}

// The Docker of this machine is advertised if it has a server, and otherwise
// the reason is known.
func TestDockerOfThisMachine(t *testing.T) {
	t.Parallel()
	docker, err := exec.LookPath("docker")
	if err != nil {
		t.Skip("there is no Docker here: ", err)
	}
	works := exec.Command(docker, "info").Run() == nil
	inv, problems := probe(t, t.Context(), "JAVA =\nSINGULARITY =\nDOCKER_PERFORM_TEST = false\nDOCKER = "+docker)
	has, _ := inv.Attrs.EvalBool("HasDocker", nil)
	if has != works || works == (problems != nil) {
		t.Errorf("works %v, problems %v, advertised\n%s", works, problems, inv.Attrs.Text(classad.Old))
	}
}

// What runs containers is tried where starters run their jobs, and the slots of
// this Execution Point show nothing of it: its starters run none.
func TestRuntimesInSlots(t *testing.T) {
	t.Parallel()
	docker := script(t, `case "$1" in
-v) echo "Docker version 27.1.1, build 6312585" ;;
info) echo "Client:" ;;
load) echo "open $3: no such file or directory" >&2; exit 1 ;;
*) exit 9 ;;
esac
`)
	dead := script(t, "case $1 in -v) echo Docker version 27.1.1, build 6312585 ;; *) echo no server >&2; exit 1 ;; esac\n")
	apptainer := script(t, `case "$1" in
--version) echo "apptainer version 1.3.6" ;;
exec) echo 1; exit 37 ;;
esac
`)
	broken := script(t, "case $1 in --version) echo apptainer version 1.3.6 ;; *) echo 'FATAL:   no user namespaces here' >&2; exit 255 ;; esac\n")
	java := script(t, "echo '    java.version = 99.1'\n")
	for _, tt := range []struct {
		name, config string
		shows        []string // of a starter that runs them
		warns        string   // to whom it does not
	}{
		{"all work", "DOCKER = " + docker + "\nSINGULARITY = " + apptainer + "\nJAVA = " + java, []string{
			"HasDocker = true", `DockerVersion = "Docker version 27.1.1, build 6312585"`, "HasSingularity = true", "HasJava = true",
			`SingularityVersion = "apptainer version 1.3.6"`, "HasSIF = true", "HasSandboxImage = true", "HasContainer = true", "HasPidNamespaces = true"}, "DOCKER"},
		{"neither works", "JAVA =\nDOCKER = " + dead + "\nSINGULARITY = " + broken, []string{
			"HasSingularity = false", `SingularityOfflineReason = "Both SIF and Sandbox tests on startup failed : FATAL:   no user namespaces here"`}, "SINGULARITY"},
		{"none is there", "JAVA =\nDOCKER =\nSINGULARITY = ", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, _ := probe(t, t.Context(), tt.config)
			able := "\n" + inv.Attrs.Text(classad.Old)
			for _, line := range tt.shows {
				if !strings.Contains(able, "\n"+line+"\n") {
					t.Errorf("no line %s in\n%s", line, able)
				}
			}
			conf := filepath.Join(t.TempDir(), "ep.conf")
			if err := os.WriteFile(conf, []byte("STARTD_DETECT_GPUS = false\n"+tt.config+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if status := cmdSlots([]string{"-config", conf, "-long"}, nil, &out, &errs); status != 0 {
				t.Fatalf("status %d: %s", status, &errs)
			}
			list := ""
			for line := range strings.Lines(out.String()) {
				name, value, _ := strings.Cut(line, " = ")
				if name == "StarterAbilityList" {
					list = value
					continue
				}
				for _, prefix := range machine.ProbedAttributes() {
					if strings.HasPrefix(name, prefix) {
						t.Errorf("advertised: %s", line)
					}
				}
			}
			if strings.Contains(list, "HasJava") || strings.Contains(list, "HasDocker") ||
				strings.Contains(list, "HasSingularity") || strings.Contains(list, "HasContainer") {
				t.Errorf("abilities %s", list)
			}
			if !strings.Contains(errs.String(), tt.warns) || tt.shows == nil && errs.Len() > 0 {
				t.Errorf("warnings: %s", &errs)
			}
		})
	}
}

// A program that hangs is ended when its time is over, with its children.
func TestHungProgram(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	if err := syscall.Mkfifo(pids, 0o600); err != nil {
		t.Fatal(err)
	}
	docker := script(t, fmt.Sprintf("sleep 1000 &\necho $$ $! > %s\nwait\n", pids))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pids) // until the script has written all of it
		told <- string(text)
		cancel() // now it hangs
	}()
	inv, problems := probe(t, ctx, "JAVA =\nSINGULARITY =\nDOCKER = "+docker)
	if inv.Attrs.Len() != 0 || !errors.Is(errors.Join(problems...), context.Canceled) {
		t.Errorf("%v\n%s", problems, inv.Attrs.Text(classad.Old))
	}
	words := strings.Fields(<-told)
	if len(words) != 2 {
		t.Fatalf("processes %q", words)
	}
	for _, pid := range words {
		// Whoever has taken it over may not have looked at its end yet.
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s is left: %s", pid, stat)
		}
	}
}

// What a program prints without end, or as no text, does no harm.
func TestLoudProgram(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"head -c 3000000 /dev/zero; exit 0", "head -c 3000000 /dev/zero >&2; exit 0", "yes | head -c 3000000", "kill -9 $$", "exit 3",
	} {
		path := script(t, text)
		inv, problems := probe(t, t.Context(), fmt.Sprintf("JAVA = %s\nDOCKER = %s\nSINGULARITY =", path, path))
		if inv.Attrs.Len() != 0 || len(problems) != 1 || !errs.Is(problems[0], errs.Broken) {
			t.Errorf("%s: %.300v\n%.300s", text, problems, inv.Attrs.Text(classad.Old))
		}
	}
}

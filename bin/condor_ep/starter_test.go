// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// ownStarter writes a program that notes its process and name, and becomes a
// starter.
func (p place) ownStarter(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p.write(t, name, "#!/bin/sh\necho \"$$ $0\" >>"+filepath.Join(p.dir, "spawned")+"\nexec "+self+" "+protocol.Command+"\n")
}

// The program that STARTER names runs the jobs.
//
// row: S4-020
func TestStarterProgram(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	mine := p.ownStarter(t, "my_starter")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue 2\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTER = "+mine+"\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if got := p.read(t, "spawned"); strings.Count(got, mine+"\n") < 2 {
		t.Errorf("spawned: %q", got)
	}
	for name, text := range map[string]string{"none": "", "plain": "no program"} {
		path := filepath.Join(p.dir, name)
		if text != "" {
			p.write(t, name, text)
		}
		p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTER = "+path+"\n")
		p.refused(t, exitUsage, "ep.conf:2: STARTER = "+path+": ", "run", "-config", "ep.conf", "job.sub")
	}
	p.nothingLeft(t)
}

// Another STARTER counts for the jobs that begin after a reconfig; one that
// cannot be executed leaves the old configuration in force.
//
// row: S4-020
func TestStarterOfANewConfiguration(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first, second := p.ownStarter(t, "first"), p.ownStarter(t, "second")
	p.write(t, "job.sh", "#!/bin/sh\necho \"$1 $PPID.\" >>"+p.dir+"/runs\nwhile [ ! -e "+p.dir+"/finish$1 ]; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\narguments = $(Process)\nqueue 2\n")
	conf := func(starter string) { p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTER = "+starter+"\n") }
	conf(first)
	pr, output := p.start(t, 0, "run", "-config", "ep.conf", "job.sub")
	hangup := func(starter, said string) {
		t.Helper()
		conf(starter)
		pr.signal(t, syscall.SIGHUP)
		waitFor(t, said, func() bool { return strings.Contains(p.log(), said) })
	}
	waitFor(t, "the first job runs", contains(filepath.Join(p.dir, "runs"), ".\n"))
	hangup(filepath.Join(p.dir, "none"), "the old one stays")
	if strings.Contains(p.read(t, "spawned"), second) {
		t.Fatal("the second program is there already")
	}
	hangup(second, "configuration taken over")
	p.write(t, "finish0", "")
	waitFor(t, "the second job runs", func() bool { return strings.Count(p.read(t, "runs"), ".\n") == 2 })
	spawned := "\n" + p.read(t, "spawned")
	for i, program := range []string{first, second} {
		line := strings.Split(p.read(t, "runs"), "\n")[i]
		if want := "\n" + strings.TrimSuffix(line[2:], ".") + " " + program + "\n"; !strings.Contains(spawned, want) {
			t.Errorf("job %s is not of %s:%s", line, program, spawned)
		}
	}
	p.write(t, "finish1", "")
	if stdout, stderr := output(); pr.status != exitOK {
		t.Errorf("status %d\n%s%s", pr.status, stdout, stderr)
	}
	p.nothingLeft(t)
}

// A STARTER that speaks another version of the protocol, as after an upgrade, gets no
// job; the log names both versions, and what to look at.
func TestStarterOfAnotherVersion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	newer := p.write(t, "newer", "#!/bin/sh\necho '{\"v\":9,\"kind\":\"hello\",\"body\":{\"program\":\"execpoint-9.9\"}}'\ncat >>"+filepath.Join(p.dir, "given")+"\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTER = "+newer+"\n")
	pr, output := p.start(t, 0, "run", "-config", "ep.conf", "job.sub")
	const said = "speaks version 9"
	waitFor(t, said, func() bool { return strings.Contains(p.log(), said) })
	for _, want := range []string{"execpoint-9.9", "version 1 (" + protocol.Program, newer + " is no starter for this startd; is STARTER the one that came with it?"} {
		if log := p.log(); !strings.Contains(log, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	pr.signal(t, syscall.SIGTERM)
	pr.signal(t, syscall.SIGTERM)
	stdout, stderr := output()
	if given := p.read(t, "given"); given != "" {
		t.Errorf("it was given %q\n%s%s", given, stdout, stderr)
	}
	p.nothingLeft(t)
}

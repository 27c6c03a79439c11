// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/starter"
)

// The program that STARTER names runs the jobs.
//
// row: S4-020
func TestStarterProgram(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spawned := filepath.Join(p.dir, "spawned")
	mine := p.write(t, "my_starter", "#!/bin/sh\necho \"$0\" >>"+spawned+"\nexec "+self+" "+starter.Command+"\n")
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/submit"
)

// standardInput is what a submit file is called that is read from there, as
// condor_submit has it.
const standardInput = "-"

// sourceName is what a submit file is called where people read of it.
func sourceName(path string) string {
	if path == standardInput {
		return "<stdin>"
	}
	return path
}

// readSubmit reads a submit file, or no more of standard input than one may have.
func readSubmit(path string) ([]byte, error) {
	if path == standardInput {
		return io.ReadAll(io.LimitReader(os.Stdin, submit.MaxText+1))
	}
	return os.ReadFile(path)
}

// readJobs makes job ads of a submit file, with the warnings that it earned. writable
// says whether a file could be written; nil does not ask.
func readJobs(path string, writable func(string) error, cluster int, who string, env []string, snap *config.Snapshot, inv *machine.Inventory) ([]*classad.Ad, []string, error) {
	text, err := readSubmit(path)
	if err != nil {
		return nil, nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	owner, domain, _ := strings.Cut(who, "@")
	d, err := submit.Parse(sourceName(path), string(text), submit.Options{
		Cluster: cluster, Now: time.Now(), Owner: owner, Domain: domain, Host: inv.FullHostname, Cwd: cwd, Env: env,
		Arch: inv.Arch, OpSys: inv.OpSys, DirFS: func(dir string) fs.FS { return os.DirFS(dir) }, Config: snap.String, Writable: writable, Alone: true,
	})
	if err != nil {
		return nil, nil, err
	}
	ads, err := d.Jobs()
	if err != nil {
		return nil, nil, err
	}
	var warnings []string
	for _, w := range d.Warnings() {
		warnings = append(warnings, warningText(w))
	}
	return ads, warnings, nil
}

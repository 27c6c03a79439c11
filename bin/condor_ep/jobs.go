// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/submit"
)

// readJobs makes job ads of a submit file, with the warnings that it earned.
func readJobs(path string, cluster int, who string, env []string, snap *config.Snapshot, inv *machine.Inventory) ([]*classad.Ad, []string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	owner, domain, _ := strings.Cut(who, "@")
	d, err := submit.Parse(path, string(text), submit.Options{
		Cluster: cluster, Now: time.Now(), Owner: owner, Domain: domain, Host: inv.FullHostname, Cwd: cwd, Env: env,
		Arch: inv.Arch, OpSys: inv.OpSys, DirFS: func(dir string) fs.FS { return os.DirFS(dir) }, Config: snap.String, Alone: true,
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

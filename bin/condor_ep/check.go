// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/check"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/findings"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// cmdCheck checks the configuration of this machine, or each file as one.
func cmdCheck(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("check", stdout, stderr)
	asJSON := fs.Bool("json", false, "")
	warningsOK := fs.Bool("warnings-ok", false, "")
	described := fs.String("machine", "", "")
	local := fs.String("local-name", "", "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	roots := fs.Args()
	if len(roots) == 0 {
		root, err := system.RootFile("")
		if err != nil {
			printError(stderr, "condor_ep check", err)
			return exitUsage
		}
		roots = []string{root}
	}
	m, err := checkedMachine(*described)
	if err != nil {
		printError(stderr, "condor_ep check", err)
		return exitUsage
	}
	status := exitOK
	for _, root := range roots {
		list, err := checkRoot(root, *local, m)
		if err != nil {
			printError(stderr, "condor_ep check", err)
			status = exitUsage
			continue
		}
		if err := findings.Print(stdout, list, *asJSON); err != nil {
			fmt.Fprintf(stderr, "condor_ep check: %v\n", err)
			return exitUsage
		}
		if status == exitOK && findings.Counts(list, *warningsOK) {
			status = exitSomeFailed
		}
	}
	return status
}

// checkedMachine is the machine of a file, or this one, as far as it can be looked at.
func checkedMachine(described string) (findings.Machine, error) {
	if described != "" {
		d, err := readMachine(described)
		if err != nil {
			return findings.Machine{}, err
		}
		return findings.Described(d, time.Now()), nil
	}
	m := findings.Machine{Files: system.Files{}, Now: time.Now()}
	if p, err := thishost.Visit(); err == nil {
		m.Scanners = p.Scanners()
		m.Volume = func(snap *config.Snapshot) machine.Scanner {
			execute := snap.String("EXECUTE")
			if _, err := os.Stat(execute); err != nil {
				execute = os.TempDir() // the daemon makes the directory, or says that it cannot
			}
			return p.Volume(execute, snap)
		}
	}
	return m, nil
}

// checkRoot checks one configuration. The error is about a root that cannot
// be read at all.
func checkRoot(root, localName string, m findings.Machine) ([]check.Finding, error) {
	o, err := system.Configuration{File: root, LocalName: localName}.Options(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	if o.Root != "" {
		if _, err := os.ReadFile(o.Root); err != nil {
			return nil, err
		}
	}
	return m.Of(context.Background(), o), nil
}

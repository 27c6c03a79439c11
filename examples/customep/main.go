// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command customep is an Execution Point of one's own, built on the packages of
// execpoint: it adds a resource that no other knows, boards on a bench, and a
// policy in its own code, and runs the jobs of a submit file or joins a pool.
//
//	customep run FILE.sub      run these jobs here, without a pool
//	customep pool CONFIG       be an Execution Point of the pool of this configuration
//
// BENCH names the directory with a file for each board, which holds its firmware.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/startd"
	"github.com/execpoint/execpoint/lib/submit"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// policy counts before the configuration and builds on it: whoever wants no
// board has no business here.
var policy = config.Text{Name: "customep", Text: `
START = ($(START)) && TARGET.RequestBoards >= 1
STARTD_ATTRS = $(STARTD_ATTRS), Bench
Bench = "customep"
`}

func main() {
	asstarter.Become() // the program is its own starter
	status, err := serve(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "customep:", err)
	}
	os.Exit(status)
}

func serve(args []string) (status int, err error) {
	sys, err := system.New(machine.ScannerFunc("boards", boards))
	switch {
	case err != nil:
		return 1, err
	case len(args) == 2 && args[0] == "run":
		return runJobs(sys, args[1])
	case len(args) == 2 && args[0] == "pool":
		return startd.Run(context.Background(), sys.Daemon(system.Configuration{File: args[1], Texts: []config.Text{policy}}))
	}
	return 1, errors.New("want run FILE.sub, or pool CONFIG")
}

// boards finds the boards of the bench and what is on them.
func boards(inv *machine.Inventory) error {
	bench := os.Getenv("BENCH")
	files, err := os.ReadDir(bench)
	found := machine.Resource{Name: "Boards", IDs: []string{}, Attrs: classad.NewAd()}
	for _, f := range files {
		firmware, err := os.ReadFile(filepath.Join(bench, f.Name()))
		if err != nil {
			return err
		}
		board := classad.NewAd()
		board.SetString("Firmware", strings.TrimSpace(string(firmware)))
		found.Attrs.SetValue(f.Name(), classad.AdValue(board))
		found.IDs = append(found.IDs, f.Name())
	}
	inv.AddResource(bench, found)
	return err
}

// runJobs runs the jobs of a submit file and tells what becomes of them.
func runJobs(sys *system.System, path string) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "customep-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // root's jobs run as nobody, in a directory below
		return 1, err
	}
	o, _, err := sys.Run(ctx, system.Configuration{Dir: dir, Texts: []config.Text{policy}})
	if err != nil {
		return 1, err
	}
	if o.Jobs, err = jobs(path, &o); err != nil {
		return 1, err
	}
	o.Changed = func(c local.Change) { fmt.Printf("job %v %s on %s\n", c.Job, c.What, c.Slot) }
	result, err := run.Run(ctx, o)
	if err != nil || result.Counts.Done < result.Counts.Total || result.Counts.Failed > 0 {
		return 1, err
	}
	return 0, nil
}

// jobs reads a submit file.
func jobs(path string, o *run.Options) ([]*classad.Ad, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	owner, domain, _ := strings.Cut(o.User, "@")
	d, err := submit.Parse(path, string(text), submit.Options{
		Cluster: 1, Now: time.Now(), Owner: owner, Domain: domain, Host: o.Inventory.FullHostname, Cwd: cwd, Env: os.Environ(),
		Arch: o.Inventory.Arch, OpSys: o.Inventory.OpSys, DirFS: func(dir string) fs.FS { return os.DirFS(dir) }, Config: o.Config.String,
	})
	if err != nil {
		return nil, err
	}
	return d.Jobs()
}

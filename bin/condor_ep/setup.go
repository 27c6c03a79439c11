// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/tool/prepare"
	"github.com/execpoint/execpoint/lib/tool/scenario"
)

// setup is what a run needs before it begins, step by step. Each step says what it waits
// for if that takes long.
type setup struct {
	runFlags
	p      *thishost.Platform
	begin  *beginning
	stderr io.Writer

	base  string // where runs are recorded
	inv   *machine.Inventory
	found []error // what could not be found out of the machine, for the log
	snap  *config.Snapshot
	by    prepare.Submitter
	who   string // "user@domain", whose the jobs are

	dir       *run.Dir
	keepDir   bool
	removed   []string // what earlier runs had left
	execute   string
	elsewhere []machine.SlotExecute

	jobs  []*classad.Ad
	notes []string // what a person is told before the jobs begin, besides warnings of the configuration
	host  run.Host
	logs  runLogs

	undo []func() error // what has to be taken back, in the order it was done
}

// runLogs are the logs of a run.
type runLogs struct {
	*slog.Logger
	level    *slog.LevelVar
	starters *os.File
}

// close takes back what the steps have done, the last first.
func (s *setup) close() error {
	var all []error
	for _, undo := range slices.Backward(s.undo) {
		all = append(all, undo())
	}
	return errors.Join(all...)
}

// read reads the configuration; what it does not say about places is below dir.
func (s *setup) read(ctx context.Context, dir string) (snap *config.Snapshot, err error) {
	s.begin.during("the configuration", func() { snap, err = loadConfigBy(s.begin.command(ctx), s.config, s.local, dir, s.inv) })
	return snap, err
}

// configure looks at the machine, reads the configuration and finds out whose the jobs
// are.
func (s *setup) configure(ctx context.Context) (err error) {
	if s.base, err = s.p.RunBase(); err != nil {
		return err
	}
	s.inv, s.found = machine.Scan(ctx, time.Now(), s.begin.watched(s.p.Scanners())...)
	// Nobody's machine depends on this run: all that is wrong is told.
	if s.snap, err = scenario.Sound(s.read(ctx, os.TempDir())); err != nil {
		return err
	}
	s.begin.during("whose directory the submit file is in", func() { s.by, err = submitterOf(s.p, s.snap, s.job) })
	if err != nil {
		return err
	}
	if s.who, err = currentUser(s.snap, s.inv); err != nil {
		return err
	}
	if s.by.User != nil {
		_, domain, _ := strings.Cut(s.who, "@")
		s.who = s.by.User.Name + "@" + domain
	}
	return nil
}

// directory clears away what earlier runs left, and makes the directory of this one,
// below which is what the configuration does not place elsewhere.
func (s *setup) directory(ctx context.Context) (err error) {
	s.begin.during("what earlier runs left to be cleared away, below "+s.base, func() {
		s.removed, err = run.SweepDirs(s.p.Private(), s.base, s.p.Census.Alive, s.p.Sweep)
	})
	if err != nil {
		fmt.Fprintf(s.stderr, "warning: leftovers of earlier runs: %v\n", err)
	}
	owner := run.Owner{Proc: s.p.Census.Self(), Keep: s.keep}
	if s.dir, err = run.NewDir(s.p.Private(), s.base, os.TempDir(), owner); err != nil {
		return err
	}
	// A run that never began leaves nothing behind; one that ended leaves
	// what was asked for.
	s.undo = append(s.undo, func() error {
		if s.keepDir {
			return nil
		}
		return s.dir.Remove()
	})
	if _, err := s.inv.Prefer(s.snap); err != nil {
		return err
	}
	if s.snap, err = s.read(ctx, s.dir.Files); err != nil {
		return err
	}
	// LOCAL_DIR is a directory of our own unless the configuration sets it.
	if err := run.CheckPlaces(s.snap, true); err != nil {
		return err
	}
	s.execute = s.snap.String("EXECUTE")
	if s.elsewhere, err = machine.SlotExecutes(s.snap); err != nil {
		return err
	}
	owner.Execute = s.execute
	for _, x := range s.elsewhere {
		owner.Elsewhere = append(owner.Elsewhere, x.Path)
	}
	return s.dir.WriteOwner(owner)
}

// submitted reads the jobs, and lets their users into the directories of the run.
func (s *setup) submitted(context.Context) (err error) {
	var warnings []string
	s.begin.during("the submit file "+sourceName(s.job)+" and the files that it names", func() {
		err = s.by.As(func() (err error) {
			s.jobs, warnings, err = readJobs(s.job, s.p.Writable, s.dir.Number, s.who, s.by.Env(os.Environ()), s.snap, s.inv)
			return err
		})
	})
	if err != nil {
		return err
	}
	told, err := s.by.Told(s.snap, s.jobs)
	if err != nil {
		return err
	}
	s.notes = append(s.notes, warnings...)
	if told != "" {
		s.notes = append(s.notes, told)
	}
	s.begin.during("the directory "+s.execute+" (EXECUTE)", func() { err = run.CheckExecute(s.execute) })
	if err != nil {
		return err
	}
	return s.by.LetIn(s.snap, s.dir, s.execute)
}

// machine looks at what the jobs and the configuration ask of the machine.
func (s *setup) machine(ctx context.Context) (err error) {
	if s.host, err = s.p.Host(s.execute, s.snap); err != nil {
		return err
	}
	s.begin.during("the directories of SLOT<N>_EXECUTE", func() { s.elsewhere = run.CheckSlotExecutes(s.elsewhere, s.host.Errno) })
	for _, e := range s.inv.Apply(ctx, time.Now(), s.begin.watched([]machine.Scanner{s.p.Volume(s.execute, s.snap), machine.ConfigScanner(s.snap)})...) {
		if errs.Is(e, errs.Invalid) {
			return e
		}
		s.found = append(s.found, e)
	}
	if s.wantsPrograms() {
		s.begin.during("Java, Docker and Singularity to say what they can", func() {
			s.found = append(s.found, s.inv.Apply(ctx, time.Now(), s.p.Programs(s.snap))...)
		})
	}
	return nil
}

// wantsPrograms reports whether programs have to be asked what they can.
func (s *setup) wantsPrograms() bool { return prepare.WantsPrograms(s.jobs, s.snap) }

// open opens the logs, keeps others from the directories of sandboxes, and looks who
// else uses the machine.
func (s *setup) open(ctx context.Context) (err error) {
	if _, _, err := s.starter(s.snap); err != nil {
		return err
	}
	s.logs.level = new(slog.LevelVar)
	s.logs.level.Set(logLevel(s.snap))
	log, starters, closeLogs, err := openLogs(s.snap, s.logs.level)
	if err != nil {
		return err
	}
	s.logs.Logger, s.logs.starters = log, starters
	s.undo = append(s.undo, closeLogs)
	var occupied *run.Occupied
	s.begin.during("the locks on the directories of sandboxes", func() {
		occupied, err = occupy(ctx, s.p, s.dir, s.execute, s.elsewhere, s.inv.FullHostname, log)
	})
	if err != nil {
		return err
	}
	holding, letGo := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { occupied.Keep(holding) })
	s.undo = append(s.undo, func() error {
		letGo()
		keeper.Wait()
		return occupied.Release()
	})
	for _, r := range s.removed {
		log.Info("removed what an earlier run left", "dir", r)
	}
	for _, e := range s.found {
		log.Warn("machine", "err", e)
	}
	s.begin.during("the list of processes", func() { s.notes = append(s.notes, besides(s.p, s.dir.Number)...) })
	return nil
}

// starter is the program that runs jobs.
func (s *setup) starter(snap *config.Snapshot) (path string, args []string, err error) {
	return run.StarterProgram(snap, s.p.Self, []string{"condor_ep", protocol.Command})
}

// options are those of the run, but for what is told of it.
func (s *setup) options() run.Options {
	o := run.Options{
		Config: s.snap, Inventory: s.inv, Host: s.host, Version: version, Name: "condor_ep run", Log: s.logs.Logger,
		Places:        run.Places{Execute: s.execute, SlotExecutes: s.elsewhere, Dir: s.dir.Files, Programs: filepath.Dir(s.p.Self)},
		ControlSocket: run.ControlSocket{Socket: s.dir.Socket()},
		Starters:      run.Starters{Self: s.p.Self, Starter: s.starter, StarterEnv: os.Environ(), StarterLog: s.logs.starters, Standby: 1},
		OwnJobs:       run.OwnJobs{Jobs: s.jobs, User: s.who, RunAs: s.by.User, Keep: s.keep},
		Reloading: run.Reloading{
			Reload: reloads(orFromEnv(s.config)),
			Load: func(ctx context.Context) (*config.Snapshot, error) {
				return loadConfigWithin(ctx, nil, s.config, s.local, s.dir.Files, s.inv)
			},
			Reconfigured: func(snap *config.Snapshot) { s.logs.level.Set(logLevel(snap)) },
		},
	}
	o.StarterPath, o.StarterArgs, _ = s.starter(s.snap) // open has asked for the error
	if s.wantsPrograms() {
		o.Probe = s.p.Programs
	}
	return o
}

// kept leaves the directory of the run in place where that was asked for, with the
// configuration in it, and returns it.
func (s *setup) kept() (dir string, err error) {
	if s.keepDir = s.keep; !s.keepDir {
		return "", nil
	}
	return s.dir.Files, saveConfig(s.snap, filepath.Join(s.dir.Files, "config.snapshot"))
}

// submitterOf finds out whose the jobs of a submit file are.
func submitterOf(p *thishost.Platform, snap *config.Snapshot, file string) (prepare.Submitter, error) {
	find, files := p.Others()
	_, owners := p.Credentials()
	return prepare.SubmitterOf(prepare.Users{Find: find, Files: files, Owners: owners}, snap, file, file == standardInput)
}

// besides tells of what else gives all of this machine to its jobs.
func besides(p *thishost.Platform, number int) []string {
	_, owners := p.Credentials()
	return prepare.Machine{
		Runs:  func() ([]run.Dir, []run.Owner, error) { return recordedRuns(p) },
		Alive: p.Census.Alive, Running: p.Running, UserName: owners.UserName,
	}.Others(number)
}

// occupy keeps startds from directories of sandboxes that are not below our own
// one. Other runs may use them beside us: each clears away only what its own
// starters left.
func occupy(ctx context.Context, p *thishost.Platform, dir *run.Dir, execute string, elsewhere []machine.SlotExecute, name string, log *slog.Logger) (*run.Occupied, error) {
	paths := []string{execute}
	for _, x := range elsewhere {
		if x.Unusable == "" {
			paths = append(paths, x.Path)
		}
	}
	var places []run.Place
	for _, path := range paths {
		if path != dir.Execute() && !slices.ContainsFunc(places, func(p run.Place) bool { return p.Value == path }) {
			places = append(places, run.ExecutePlace("EXECUTE", path))
		}
	}
	return run.Occupy(ctx, run.Occupation{
		Lock: p.Lock, Share: host.Together, Log: log,
		Me: host.Holder{Program: "condor_ep run", Machine: name, Proc: p.Census.Self(), Since: time.Now()},
	}, places...)
}

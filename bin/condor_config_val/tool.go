// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

// Exit statuses.
const (
	exitOK       = 0
	exitFailed   = 1
	exitNotSaved = 2
)

// system is what the tool needs of the machine.
type system struct {
	stdout, stderr io.Writer
	env            []string
	tilde          string
	windows        bool
	readFile       func(path string) ([]byte, error)
	readDir        func(path string) ([]string, error)
	runCommand     func(command string) ([]byte, error)
	writeFile      func(path string, data []byte) error
	open           func(path string) (directory bool, err error)
	registry       func(name string) (string, bool)

	// facts returns what the language knows of the machine, and whether that
	// changed by what the configuration says; snap is nil at first.
	facts func(snap *config.Snapshot) (facts map[string]string, changed bool)
}

// run is one run of the tool.
type run struct {
	system
	*options
	settings.Printer
	snap *config.Snapshot
}

// tool runs the command line and returns the exit status.
func tool(args []string, sys system) int {
	return (&run{system: sys}).main(args)
}

func (r *run) main(args []string) int {
	o, err := parse(args, func(s string) { fmt.Fprintln(r.stderr, s) })
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(r.stderr, wrong.message)
		if !wrong.brief {
			fmt.Fprint(r.stderr, usage())
		}
		return exitFailed
	case o.help:
		// HTCondor's tool exits with 1 here, against its own manual, which has 0
		// for success.
		fmt.Fprint(r.stdout, usage())
		return exitOK
	}
	r.options = o
	r.Printer = o.show
	r.Out, r.Err = r.stdout, r.stderr
	switch {
	case o.version:
		return commands.PrintVersion(r.stdout)
	case o.daemon.pool != "" && o.daemon.name == "":
		return r.fail("Error: you must specify -name with -pool")
	case o.daemon.change != "":
		return r.fail("-" + o.daemon.change + " changes what a daemon is set to, which is not supported; HTCondor's condor_config_val does it, of daemons of this project too")
	case o.daemon.asked:
		return r.fromDaemon()
	case o.read.snapshot != "":
		return r.fromSnapshot()
	}
	return r.fromFiles()
}

func (r *run) fail(message string) int {
	fmt.Fprintln(r.stderr, message)
	return exitFailed
}

// fromFiles answers from the configuration files.
func (r *run) fromFiles() int {
	if done, status := r.load(); done {
		return status
	}
	if r.what.sources {
		r.Sources(r.snap)
	}
	if r.what.hasCondition {
		r.Condition(r.snap, r.what.condition)
		return exitOK
	}
	if r.write.file != "" {
		if err := r.writeConfiguration(); err != nil {
			fmt.Fprintln(r.stderr, err)
			return exitNotSaved
		}
	}
	switch {
	case r.what.dump:
		r.Dump(r.snap, r.names)
		return exitOK
	case len(r.names) == 0 && (r.what.sources || r.write.file != ""):
		return exitOK
	case len(r.names) == 0:
		fmt.Fprint(r.stderr, usage())
		return exitFailed
	}
	return r.printNames()
}

// load reads the configuration; done says that there is nothing more to do.
func (r *run) load() (done bool, status int) {
	switch {
	case r.what.owner:
		facts, _ := r.facts(nil)
		fmt.Fprintln(r.stdout, facts["USERNAME"])
		return true, exitOK
	case r.what.home && r.tilde != "":
		fmt.Fprintln(r.stdout, r.tilde)
		return true, exitOK
	case r.what.home:
		return true, r.fail("Error: Specified -tilde but can't find condor's home directory")
	}
	o := config.Options{
		Root: r.read.root, Env: r.env, Subsystem: r.read.subsystem, LocalName: r.read.localName, Seed: rand.Uint64(), Windows: r.windows,
		ReadFile: r.readFile, ReadDir: r.readDir, RunCommand: r.runCommand, WriteFile: r.writeFile,
	}
	if r.what.trace {
		o.Trace = r.Tracer(r.names, r.what.dump)
	}
	if !r.read.rootGiven {
		root, _, err := config.FindRoot(config.Places{Env: r.env, Tilde: r.tilde, Windows: r.windows, Registry: r.registry, Open: r.open})
		if err != nil {
			r.ReportAll(err)
			return true, exitFailed
		}
		o.Root = root
	} else if strings.EqualFold(o.Root, "ONLY_ENV") {
		o.Root = ""
	}
	snap, ok := r.Load(o, r.facts)
	r.snap = snap
	return !ok, exitFailed // of one that cannot be read
}

// writeConfiguration writes the file of -writeconfig, or the summary.
func (r *run) writeConfiguration() error {
	if r.write.file == "-" {
		return settings.Write(r.stdout, r.snap, r.write.how)
	}
	var b bytes.Buffer
	if err := settings.Write(&b, r.snap, r.write.how); err != nil {
		return err
	}
	if err := r.writeFile(r.write.file, b.Bytes()); err != nil {
		return fmt.Errorf("failed to create configuration file %s: %w", r.write.file, err)
	}
	return nil
}

// printNames answers for each name, template or text.
func (r *run) printNames() int {
	as := settings.Names
	switch {
	case r.what.macroPath:
		as = settings.Paths
	case r.what.macro:
		as = settings.Macros
	}
	if !r.Names(r.snap, r.names, as) {
		return exitFailed
	}
	return exitOK
}

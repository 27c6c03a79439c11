// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
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
	snap     *config.Snapshot
	reported config.Problems // as printed to stderr
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
	switch {
	case o.version:
		return commands.PrintVersion(r.stdout)
	case o.pool != "" && o.name == "":
		return r.fail("Error: you must specify -name with -pool")
	case o.change != "":
		return r.fail("-" + o.change + " changes what a daemon is set to, which is not supported; HTCondor's condor_config_val does it, of daemons of this project too")
	case o.remote:
		return r.fromDaemon()
	case o.snapshot != "":
		return r.fromSnapshot()
	}
	return r.fromFiles()
}

func (r *run) fail(message string) int {
	fmt.Fprintln(r.stderr, message)
	return exitFailed
}

// report prints a problem.
func (r *run) report(p *config.Problem) {
	r.reported = append(r.reported, p)
	fmt.Fprintln(r.stderr, p.Error())
}

// reportAll prints the problems of an error and reports whether one of them
// leaves no value behind.
func (r *run) reportAll(err error) (fatal bool) {
	var many config.Problems
	var one *config.Problem
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = config.Problems{one}
	case err != nil:
		many = config.Problems{&config.Problem{Message: err.Error()}}
	}
	for _, p := range many {
		r.report(p)
		fatal = fatal || p.Class == config.Endless || p.Class == config.TooMuch
	}
	return fatal
}

// fromFiles answers from the configuration files.
func (r *run) fromFiles() int {
	if done, status := r.load(); done {
		return status
	}
	if r.listSources {
		r.printSources()
	}
	if r.hasCondition {
		return r.checkIf()
	}
	if r.write != "" {
		if err := r.writeConfiguration(); err != nil {
			fmt.Fprintln(r.stderr, err)
			return exitNotSaved
		}
	}
	switch {
	case r.dump:
		return r.printDump()
	case len(r.names) == 0 && (r.listSources || r.write != ""):
		return exitOK
	case len(r.names) == 0:
		fmt.Fprint(r.stderr, usage())
		return exitFailed
	}
	return r.printNames()
}

// load reads the configuration; done says that there is nothing more to do.
func (r *run) load() (done bool, status int) {
	facts, _ := r.facts(nil)
	switch {
	case r.owner:
		fmt.Fprintln(r.stdout, facts["USERNAME"])
		return true, exitOK
	case r.condorHome && r.tilde != "":
		fmt.Fprintln(r.stdout, r.tilde)
		return true, exitOK
	case r.condorHome:
		return true, r.fail("Error: Specified -tilde but can't find condor's home directory")
	}
	o := config.Options{
		Root: r.root, Env: r.env, Facts: facts, Subsystem: r.subsystem, LocalName: r.localName, Seed: rand.Uint64(), Windows: r.windows,
		ReadFile: r.readFile, ReadDir: r.readDir, RunCommand: r.runCommand, WriteFile: r.writeFile, Trace: r.tracer(),
	}
	if !r.rootGiven {
		root, _, err := config.FindRoot(config.Places{Env: r.env, Tilde: r.tilde, Windows: r.windows, Registry: r.registry, Open: r.open})
		if err != nil {
			r.reportAll(err)
			return true, exitFailed
		}
		o.Root = root
	} else if strings.EqualFold(o.Root, "ONLY_ENV") {
		o.Root = ""
	}
	snap, err := config.Load(o)
	if err == nil {
		if facts, changed := r.facts(snap); changed {
			o.Facts, o.Trace = facts, nil
			snap, err = config.Load(o)
		}
	}
	if err != nil {
		r.refused(o.Root, err)
		return true, exitFailed
	}
	for _, p := range snap.Met() {
		if p.Class != config.Suspicious && p.Class != config.SetTwice { // HTCondor's tool says nothing of these, condor_ep check does
			r.report(p)
		}
	}
	r.snap = snap
	return false, exitOK
}

// refused prints why a configuration cannot be used.
func (r *run) refused(root string, err error) {
	r.reportAll(err)
	for _, p := range r.reported {
		if p.Severity != config.Error || p.Class == config.RootMissing {
			continue
		}
		line := p.EndLine
		if len(p.Within) > 0 {
			line = p.Within[0].EndLine
		}
		fmt.Fprintf(r.stderr, "Configuration Error Line %d while reading config source %s\n", line, root)
		return
	}
}

// tracer prints what is replaced, of the names asked for.
func (r *run) tracer() func(name, before string, at config.Origin) {
	if !r.trace {
		return nil
	}
	var patterns []*regexp.Regexp
	if r.dump {
		patterns = compile(r.names)
	}
	return func(name, before string, at config.Origin) {
		wanted := false
		for _, n := range r.names {
			wanted = wanted || strings.EqualFold(n, name)
		}
		for _, re := range patterns {
			wanted = wanted || re != nil && re.MatchString(name)
		}
		if wanted {
			fmt.Fprintf(r.stdout, " # trace: %s\n  # was: %s\n  # set at: %s\n", name, before, at.Location())
		}
	}
}

// compile reads patterns, compared without regard to case. One that is none
// is nil and matches nothing.
func compile(patterns []string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		if re, err := regexp.Compile("(?i)" + p); err == nil {
			out[i] = re
		}
	}
	return out
}

// printSources writes headings to stderr and names to stdout, so that the
// names can be piped on.
func (r *run) printSources() {
	sources := r.snap.Sources()
	fmt.Fprintln(r.stderr, "Configuration source:")
	if len(sources) == 0 {
		fmt.Fprintln(r.stdout, "\t")
		return
	}
	fmt.Fprintf(r.stdout, "\t%s\n", sources[0])
	if len(sources) == 1 {
		return
	}
	plural := "s"
	if len(sources) == 2 {
		plural = ""
	}
	fmt.Fprintf(r.stderr, "Local configuration source%s:\n", plural)
	for _, s := range sources[1:] {
		fmt.Fprintf(r.stdout, "\t%s\n", s)
	}
	fmt.Fprintln(r.stderr)
}

func (r *run) checkIf() int {
	result, why := r.snap.Condition(r.condition)
	if why != "" {
		fmt.Fprintf(r.stdout, "# not supported: %q %s\n", r.condition, why)
	} else {
		fmt.Fprintf(r.stdout, "# ok: %q \n%v\n", r.condition, result)
	}
	return exitOK
}

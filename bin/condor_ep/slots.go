// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/record"
	"github.com/execpoint/execpoint/lib/tool/slots"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// slotsFlags are the options of condor_ep slots.
type slotsFlags struct {
	config, machine string
	local           string // -local-name
	json, long      bool
	record          bool
}

// cmdSlots shows the slots that a configuration would make.
func cmdSlots(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var f slotsFlags
	fs := newFlags("slots", stdout, stderr)
	fs.StringVar(&f.config, "config", "", "")
	fs.StringVar(&f.local, "local-name", "", "")
	fs.StringVar(&f.machine, "machine", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.long, "long", false, "")
	fs.BoolVar(&f.record, "record", false, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	if fs.NArg() > 0 || f.json && f.long {
		return fs.Misuse("want -json or -long or neither, and no other words")
	}
	if f.record {
		if f.config != "" || f.machine != "" || f.json || f.long {
			return fs.Misuse("-record stands alone: a record has its own configuration and machine")
		}
		unanswered, err := answerSlots(stdin, stdout)
		return answered(unanswered, err, "condor_ep slots", stderr)
	}
	d, err := f.divide()
	if err != nil {
		printError(stderr, "condor_ep slots", err)
		return exitUsage
	}
	if f.config == "" && nowhere() {
		fmt.Fprintln(stderr, "condor_ep slots: this machine has no configuration: these are the slots of condor_ep run; -config FILE tries another")
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(stderr, "condor_ep slots: warning: %s\n", warningText(w))
	}
	status := exitOK
	for _, p := range d.Problems {
		word := ""
		switch {
		case p.Warning:
			word = "warning: "
		case p.Fatal:
			word = "the daemon would end with exit status 4: "
		}
		fmt.Fprintf(stderr, "condor_ep slots: %s%v\n", word, p)
		if !p.Warning {
			status = exitSomeFailed
		}
	}
	switch {
	case f.json:
		err = d.PrintJSON(stdout)
	case f.long:
		err = d.PrintLong(stdout)
	default:
		err = d.PrintTable(stdout)
	}
	if err != nil {
		printError(stderr, "condor_ep slots", err)
		return exitUsage
	}
	return status
}

// answerSlots answers the records of -record.
func answerSlots(stdin io.Reader, stdout io.Writer) (unanswered int, err error) {
	p, err := thishost.Visit()
	if err != nil {
		return 0, err
	}
	return record.Slots(stdin, stdout, record.Host{
		Hooks: p.Hooks, Volume: volumeOf(p), Beside: filepath.Dir(p.Self), Install: install, Now: time.Now, Location: time.Local,
	})
}

// install writes a program. A process that is begun meanwhile would hold it open for
// writing, and what is open for writing cannot be executed.
func install(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755)
}

// answered is the exit status of -record.
func answered(unanswered int, err error, who string, stderr io.Writer) int {
	switch {
	case err != nil:
		printError(stderr, who, err)
		return exitUsage
	case unanswered > 0:
		return exitSomeFailed
	}
	return exitOK
}

// nowhere reports whether nobody has configured anything on this machine. A
// CONDOR_CONFIG that names what is not there is another matter.
func nowhere() bool {
	_, err := system.RootFile("")
	return err != nil && os.Getenv(config.RootKnob) == ""
}

// divide reads what the options name, and divides the machine. Without a
// configuration it is that of condor_ep run.
func (f slotsFlags) divide() (*slots.Division, error) {
	root := f.config
	if root == "" && !nowhere() {
		var err error
		if root, err = system.RootFile(""); err != nil {
			return nil, err
		}
	}
	from := slots.Origin{Now: time.Now(), Location: time.Local, Load: func(inv *machine.Inventory) (*config.Snapshot, error) {
		return loadConfig(root, f.local, os.TempDir(), inv)
	}}
	if f.machine == "" {
		p, err := thishost.Visit()
		if err != nil {
			return nil, err
		}
		from.Scanners, from.Volume = p.Scanners(), volumeOf(p)
		from.Hooks, from.Beside = p.Hooks(os.TempDir()), filepath.Dir(p.Self)
		from.Programs = p.Programs
		return slots.Divide(context.Background(), from)
	}
	d, err := readMachine(f.machine)
	if err != nil {
		return nil, err
	}
	from.Found, from.Scanners = d.Found, []machine.Scanner{d}
	return slots.Divide(context.Background(), from)
}

// volumeOf looks at the file system of EXECUTE, or at the one where an installation
// would make that directory.
func volumeOf(p *thishost.Platform) func(*config.Snapshot) machine.Scanner {
	return func(snap *config.Snapshot) machine.Scanner {
		execute := snap.String("EXECUTE")
		if s, ok := snap.Lookup("EXECUTE"); !ok || s.IsDefault {
			if _, err := os.Stat(execute); err != nil {
				execute = os.TempDir() // an installation makes the directory
			}
		}
		return p.Volume(execute, snap)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/confio"
)

// Configuration says which configuration an Execution Point reads. The zero value
// reads none but the variables _CONDOR_… of the environment: all of the machine
// is one partitionable slot, and any job runs.
type Configuration struct {
	// File is the one that the configuration begins with, or a command ending in
	// "|"; "" for none.
	File string
	// Dir is LOCAL_DIR where the file does not say; "" leaves that to the file.
	Dir string
	// LocalName tells two daemons of one machine apart; "" for none.
	LocalName string
	// Texts are what the program itself sets. They count before file and
	// environment, and may build on what these say: START = ($(START)) && …
	Texts []config.Text
	// Env is the environment, nil for that of the process.
	Env []string
	// Command runs what the configuration names as a command; nil runs it.
	Command func(command string) ([]byte, error)
}

// RootFile is the file that the configuration of this machine begins with, as HTCondor
// looks for it, or the one that is given; "" where only the environment counts.
func RootFile(given string) (string, error) {
	places := config.Places{Env: os.Environ(), Windows: runtime.GOOS == "windows", Open: confio.IsDir}
	if given != "" {
		places.Env = []string{config.RootKnob + "=" + given} // it stands above the variable
	}
	if condor, err := user.Lookup("condor"); err == nil {
		places.Tilde = condor.HomeDir
	}
	root, _, err := config.FindRoot(places)
	if err != nil || root == "" || strings.HasSuffix(strings.TrimSpace(root), "|") {
		return root, err
	}
	return filepath.Abs(root)
}

// Reader returns what reads the configuration for a machine, as lib/startd wants
// it: later is what was set from afar, and counts before all else. With an error
// there is what could be read, nil for nothing.
func (s *System) Reader(c Configuration) func(ctx context.Context, inv *machine.Inventory, later []config.Text) (*config.Snapshot, error) {
	return c.Read
}

// Read is what Reader returns.
func (c Configuration) Read(ctx context.Context, inv *machine.Inventory, later []config.Text) (*config.Snapshot, error) {
	o, err := c.Options(ctx, inv)
	if err != nil {
		return nil, err
	}
	o.Later = slices.Concat(o.Later, later)
	snap, err := config.LoadPartly(o)
	if err != nil {
		return snap, err
	}
	if fatal, _ := snap.Sort(); fatal.Failed() {
		return snap, fatal // what is doubtful is told when it is taken over
	}
	return snap, nil
}

// Options say how it is read for a machine, nil for one that is not known yet.
func (c Configuration) Options(ctx context.Context, inv *machine.Inventory) (config.Options, error) {
	o := config.Options{
		Env: c.env(), Later: c.Texts, Facts: c.facts(inv), Subsystem: "STARTD", LocalName: c.LocalName, Windows: runtime.GOOS == "windows",
		ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: c.Command, Seed: rand.Uint64(),
	}
	if o.RunCommand == nil {
		o.RunCommand = confio.RunWith(ctx, daemon.Scrub(c.env()))
	}
	if o.Root = c.File; c.File != "" && !strings.HasSuffix(strings.TrimSpace(c.File), "|") {
		// CONFIG_ROOT must not depend on where a later reading stands.
		abs, err := filepath.Abs(c.File)
		if err != nil {
			return o, err
		}
		o.Root = abs
	}
	return o, nil
}

// env is the environment to read by.
func (c *Configuration) env() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// facts are what the configuration can name of this process and its machine.
func (c *Configuration) facts(inv *machine.Inventory) map[string]string {
	facts := make(map[string]string)
	if inv != nil {
		facts = machine.ConfigFacts(inv)
	}
	facts["PID"], facts["PPID"] = strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	if c.Dir != "" {
		facts["LOCAL_DIR"] = c.Dir
	}
	if me, err := user.Current(); err == nil {
		facts["USERNAME"], facts["TILDE"] = me.Username, me.HomeDir
	}
	if condor, err := user.Lookup("condor"); err == nil {
		facts["TILDE"] = condor.HomeDir
	}
	return facts
}

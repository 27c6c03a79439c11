// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/check"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/tool/slots"
	"github.com/execpoint/execpoint/platform/confio"
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
		root, err := machineRoot()
		if err != nil {
			printError(stderr, "condor_ep check", err)
			return exitUsage
		}
		roots = []string{root}
	}
	status, m := exitOK, checkedMachine{Inventory: inventory()}
	if *described != "" {
		d, err := readMachine(*described)
		if err != nil {
			printError(stderr, "condor_ep check", err)
			return exitUsage
		}
		m = checkedMachine{described: d}
		m.Inventory, _ = machine.Scan(context.Background(), time.Now(), d)
	}
	for _, root := range roots {
		list, err := checkRoot(root, *local, m)
		if err != nil {
			printError(stderr, "condor_ep check", err)
			status = exitUsage
			continue
		}
		if err := printFindings(stdout, list, *asJSON); err != nil {
			fmt.Fprintf(stderr, "condor_ep check: %v\n", err)
			return exitUsage
		}
		counts := func(f check.Finding) bool { return f.Severity == check.Error || !*warningsOK }
		if status == exitOK && slices.ContainsFunc(list, counts) {
			status = exitSomeFailed
		}
	}
	return status
}

func printFindings(w io.Writer, list []check.Finding, asJSON bool) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, f := range list {
		if asJSON {
			if err := out.Encode(f); err != nil {
				return err
			}
		} else if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	return nil
}

// machineRoot is the root file of this machine's configuration, "" if only
// the environment counts.
func machineRoot() (string, error) {
	p := config.Places{Env: os.Environ(), Windows: runtime.GOOS == "windows", Open: func(path string) (bool, error) {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer func() { _ = f.Close() }() // nothing was written
		info, err := f.Stat()
		return err == nil && info.IsDir(), err
	}}
	if u, err := user.Lookup("condor"); err == nil {
		p.Tilde = u.HomeDir
	}
	root, _, err := config.FindRoot(p)
	return root, err
}

// nowhere reports whether nobody has configured anything on this machine. A
// CONDOR_CONFIG that names what is not there is another matter.
func nowhere() bool {
	_, err := machineRoot()
	return err != nil && os.Getenv(config.RootKnob) == ""
}

// checkedMachine is what a configuration is checked for.
type checkedMachine struct {
	*machine.Inventory                // nil where it cannot be looked at
	described          *slots.Machine // nil for this machine
}

// found is what inventory programs would say of the machine, as far as it is
// known, and the resources of which it is not.
func (m checkedMachine) found(snap *config.Snapshot) (known []slot.Inventory, unknown []string) {
	if m.described != nil {
		known = m.described.Found
	}
	scripts, _ := hook.ScriptsFrom(snap)
	for _, s := range scripts {
		if !slices.ContainsFunc(known, func(i slot.Inventory) bool { return strings.EqualFold(i.Resource, s.Resource) }) {
			unknown = append(unknown, s.Resource)
		}
	}
	return known, unknown
}

// inventory is this machine; nil where it cannot be looked at.
func inventory() *machine.Inventory {
	p, err := thishost.Visit()
	if err != nil {
		return nil
	}
	// What a scanner could not find stays unknown, and is not checked.
	inv, _ := machine.Scan(context.Background(), time.Now(), p.Scanners()...)
	return inv
}

// checkRoot checks one configuration. The error is about a root that cannot
// be read at all.
func checkRoot(root, localName string, m checkedMachine) ([]check.Finding, error) {
	if root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		if _, err := os.ReadFile(abs); err != nil {
			return nil, err
		}
		root = abs
	}
	facts := map[string]string{"PID": strconv.Itoa(os.Getpid())}
	if m.Inventory != nil {
		for name, value := range machine.ConfigFacts(m.Inventory) {
			facts[name] = value
		}
	}
	if u, err := user.Current(); err == nil {
		facts["USERNAME"], facts["TILDE"] = u.Username, u.HomeDir
	}
	if u, err := user.Lookup("condor"); err == nil {
		facts["TILDE"] = u.HomeDir
	}
	snap, partial, list := check.Load(config.Options{
		Root: root, Env: os.Environ(), Facts: facts, Subsystem: "STARTD", LocalName: localName, Windows: runtime.GOOS == "windows",
		ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: confio.RunCommand, Seed: rand.Uint64(),
	})
	if snap != nil {
		s := check.Subject{Config: snap, Partial: partial, Inventory: m.divisible(snap), Source: os.ReadFile, Files: hostFiles{}}
		s.Found, s.Unknown = m.found(snap)
		if m.described != nil {
			s.Files = nil // its programs are not here
		}
		list = append(list, check.Snapshot(s)...)
	}
	return check.Sorted(list), nil
}

// divisible is what the configuration lets slots have of the machine; nil if
// that cannot be told.
func (m checkedMachine) divisible(snap *config.Snapshot) *machine.Inventory {
	if m.Inventory == nil {
		return nil
	}
	scanners, apply := []machine.Scanner{m.described}, []machine.Scanner{machine.ConfigScanner(snap)}
	if m.described == nil {
		p, err := thishost.Visit()
		if err != nil {
			return nil
		}
		execute := snap.String("EXECUTE")
		if _, err := os.Stat(execute); err != nil {
			execute = os.TempDir() // the daemon makes the directory, or says that it cannot
		}
		scanners, apply = p.Scanners(), append([]machine.Scanner{p.Volume(execute, snap)}, apply...)
	}
	one, _ := machine.Scan(context.Background(), time.Now(), scanners...)
	if _, err := one.Prefer(snap); err != nil {
		return nil // said as a finding about the knob
	}
	if problems := one.Apply(context.Background(), time.Now(), apply...); len(problems) > 0 && one.UsableCores == 0 {
		return nil
	}
	return one
}

// hostFiles tells about the files of this machine.
type hostFiles struct{}

// Facts follows links, as the daemon will.
func (hostFiles) Facts(path string) (check.FileFacts, error) {
	info, err := os.Stat(path)
	if err != nil {
		return check.FileFacts{}, err
	}
	facts := check.FileFacts{Dir: info.IsDir(), Executable: info.Mode()&0o111 != 0 || runtime.GOOS == "windows"}
	if runtime.GOOS == "windows" {
		return facts, nil // permissions there are not told by a mode
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return facts, nil
		}
		const others = 0o002
		guarded := info.IsDir() && info.Mode()&os.ModeSticky != 0
		if info.Mode().Perm()&others != 0 && !guarded {
			facts.OthersMay = at
			return facts, nil
		}
		if at == filepath.Dir(at) {
			return facts, nil
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/bin/internal/confio"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/check"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// Exit statuses of check, as the documentation promises them.
const (
	exitNothingFound = 0
	exitFound        = 1
)

// cmdCheck checks the configuration of this machine, or each file as one.
func cmdCheck(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("check", stderr)
	asJSON := fs.Bool("json", false, "")
	warningsOK := fs.Bool("warnings-ok", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
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
	status, inv := exitNothingFound, inventory()
	for _, root := range roots {
		list, err := checkRoot(root, inv)
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
		if status == exitNothingFound && slices.ContainsFunc(list, counts) {
			status = exitFound
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
func checkRoot(root string, inv *machine.Inventory) ([]check.Finding, error) {
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
	if inv != nil {
		for name, value := range machine.ConfigFacts(inv) {
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
		Root: root, Env: os.Environ(), Facts: facts, Subsystem: "STARTD", Windows: runtime.GOOS == "windows",
		ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: confio.RunCommand, Seed: rand.Uint64(),
	})
	if snap != nil {
		list = append(list, check.Snapshot(check.Subject{
			Config: snap, Partial: partial, Inventory: divisible(snap, inv), Source: os.ReadFile, Files: hostFiles{},
		})...)
	}
	return check.Sorted(list), nil
}

// divisible is what the configuration lets slots have of the machine; nil if
// that cannot be told.
func divisible(snap *config.Snapshot, inv *machine.Inventory) *machine.Inventory {
	if inv == nil {
		return nil
	}
	p, err := thishost.Visit()
	if err != nil {
		return nil
	}
	one, _ := machine.Scan(context.Background(), time.Now(), p.Scanners()...)
	if _, err := one.Prefer(snap); err != nil {
		return nil // said as a finding about the knob
	}
	execute := snap.String("EXECUTE")
	if _, err := os.Stat(execute); err != nil {
		execute = os.TempDir() // the daemon makes the directory, or says that it cannot
	}
	if problems := one.Apply(context.Background(), time.Now(), p.Volume(execute, snap), machine.ConfigScanner(snap)); len(problems) > 0 && one.UsableCores == 0 {
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/simulate"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/tool/record"
	"github.com/execpoint/execpoint/platform/confio"
)

// simulateFlags are the options of condor_ep simulate.
type simulateFlags struct {
	config, machine, compare, svg string
	json, record                  bool
	width                         int
	seed                          uint64
	seeded                        bool
}

// cmdSimulate plays a scenario in virtual time.
func cmdSimulate(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var f simulateFlags
	fs := newFlags("simulate", stdout, stderr)
	fs.StringVar(&f.config, "config", "", "")
	fs.StringVar(&f.machine, "machine", "", "")
	fs.StringVar(&f.compare, "compare", "", "")
	fs.StringVar(&f.svg, "svg", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.record, "record", false, "")
	fs.IntVar(&f.width, "width", 100, "")
	fs.Uint64Var(&f.seed, "seed", 0, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	fs.Visit(func(one *flag.Flag) { f.seeded = f.seeded || one.Name == "seed" })
	if f.record {
		if fs.NArg() > 0 || fs.NFlag() > 1 {
			return fs.Misuse("-record stands alone: a record has its own configuration")
		}
		unanswered, err := record.Moves(stdin, stdout)
		return recorded(unanswered, err, "condor_ep simulate", stderr)
	}
	if fs.NArg() != 1 {
		return fs.Misuse("want one scenario, got %d", fs.NArg())
	}
	if f.width < 20 || f.width > 10000 {
		return fs.Misuse("-width is from 20 to 10000, not %d", f.width)
	}
	status, err := f.simulate(fs.Arg(0), stdout)
	if err != nil {
		printError(stderr, "condor_ep simulate", err)
		return exitUsage
	}
	return status
}

// maxScenario is the length of the longest scenario that is read.
const maxScenario = 8 << 20

// simulate plays the scenario of a file, under one configuration or two, and
// prints what comes of it.
func (f simulateFlags) simulate(path string, stdout io.Writer) (int, error) {
	text, err := readLimited(path, maxScenario)
	if err != nil {
		return exitUsage, err
	}
	sc, err := simulate.Parse(path, text)
	if err != nil {
		return exitUsage, err
	}
	if f.seeded {
		sc.Seed = f.seed
	}
	if f.config != "" {
		sc.Config, sc.ConfigFile = nil, f.config
	} else {
		sc.ConfigFile = beside(path, sc.ConfigFile)
	}
	node, err := f.node(sc, path)
	if err != nil {
		return exitUsage, err
	}
	res, err := simulate.Run(sc, node)
	if err != nil {
		return exitUsage, err
	}
	status := exitOK
	if len(res.Notes) > 0 {
		status = exitSomeFailed
	}
	if f.svg != "" {
		if err := writeSVG(f.svg, res); err != nil {
			return exitUsage, err
		}
	}
	if f.compare == "" {
		return status, f.print(stdout, res)
	}
	other := *sc
	if sc.ConfigFile == "" {
		other.Config = nil
	}
	other.ConfigFile = f.compare
	changed, err := f.node(&other, path)
	if err != nil {
		return exitUsage, err
	}
	second, err := simulate.Run(&other, changed)
	if err != nil {
		return exitUsage, err
	}
	if len(second.Notes) > 0 {
		status = exitSomeFailed
	}
	names := [2]string{cmp.Or(sc.ConfigFile, path), f.compare}
	if names[0] == names[1] {
		first := " (the scenario's)"
		if f.config != "" {
			first = " (-config)"
		}
		names = [2]string{names[0] + first, names[1] + " (-compare)"}
	}
	return status, f.print(stdout, simulate.Compare(names, res, second))
}

// print writes a result or a comparison.
func (f simulateFlags) print(w io.Writer, what interface {
	WriteText(io.Writer, int) error
}) error {
	if !f.json {
		return what.WriteText(w, f.width)
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(what)
}

// node is the Execution Point of a scenario: its machine, and its configuration
// as a file in which the lines of the scenario stand where they are.
func (f simulateFlags) node(sc *simulate.Scenario, path string) (simulate.Node, error) {
	n := simulate.Node{Machine: sc.Machine}
	file := f.machine
	if file == "" {
		file = beside(path, sc.MachineFile)
	}
	if file != "" {
		d, err := readMachine(file)
		if err != nil {
			return n, err
		}
		host := d.Host
		if host == "" {
			host = sc.Machine.Host
		}
		n.Machine = simulate.Machine{Host: host, Cpus: d.Cpus, MemoryMiB: d.MemoryMiB, DiskKiB: d.DiskKiB, SwapKiB: d.SwapKiB, Source: file}
		n.Found = append([]slot.Inventory(nil), d.Found...)
	}
	include := ""
	if sc.ConfigFile != "" {
		if _, err := os.Stat(sc.ConfigFile); err != nil {
			return n, err
		}
		include = "include : " + sc.ConfigFile
	}
	n.Load = func(inv *machine.Inventory, lines string) (*config.Snapshot, error) {
		// The first line of a scenario cannot be one of configuration.
		text := include + "\n" + strings.TrimPrefix(lines, "\n")
		facts := machine.ConfigFacts(inv)
		facts["LOCAL_DIR"] = os.TempDir()
		return sound(config.Parse(path, text, config.Options{
			Subsystem: "STARTD", Facts: facts, ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: confio.RunCommand, Seed: sc.Seed,
		}))
	}
	return n, nil
}

// beside is a file that another one names: relative to that one's folder.
func beside(path, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
}

func writeSVG(path string, res *simulate.Result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(res.WriteSVG(f), f.Close())
}

// readLimited reads a text file of at most so many bytes.
func readLimited(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if int64(len(text)) > most {
		return "", fmt.Errorf("%s: longer than %d bytes", path, most)
	}
	return string(text), nil
}

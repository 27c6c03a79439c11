// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/simulate"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/tool/slots"
)

// MaxText is the length of the longest scenario that is read, in bytes.
const MaxText = 8 << 20

// Play is what is played, besides the scenario.
type Play struct {
	Config  string  // a file in place of all that the scenario configures; "" for none
	Machine string  // the description of a machine in place of the scenario's; "" for none
	Compare string  // a file to play the scenario with a second time; "" for none
	Seed    *uint64 // in place of the scenario's; nil for none

	// Options are how configurations are read: the files and commands that they name.
	Options config.Options
	Host    string // the name of a described machine that has none
}

// Outcome is what came of it.
type Outcome struct {
	First *simulate.Result

	// Shown is First, or the comparison of it with the second.
	Shown interface {
		WriteText(w io.Writer, columns int) error
	}

	Refused bool // something in the timeline was, of one of them
}

// Print writes an outcome: text for so many columns, or JSON. The error is the writer's.
func (o *Outcome) Print(w io.Writer, columns int, asJSON bool) error {
	if !asJSON {
		return o.Shown.WriteText(w, columns)
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(o.Shown)
}

// File plays the scenario of a file. The error is about one of the files.
func (p Play) File(path string) (*Outcome, error) {
	text, err := readLimited(path, MaxText)
	if err != nil {
		return nil, err
	}
	sc, err := simulate.Parse(path, text)
	if err != nil {
		return nil, err
	}
	if p.Seed != nil {
		sc.Seed = *p.Seed
	}
	if p.Config != "" {
		sc.Config, sc.ConfigFile = nil, p.Config
	} else {
		sc.ConfigFile = beside(path, sc.ConfigFile)
	}
	first, err := p.run(sc, path)
	if err != nil {
		return nil, err
	}
	o := &Outcome{First: first, Shown: first, Refused: len(first.Notes) > 0}
	if p.Compare == "" {
		return o, nil
	}
	// What the scenario says besides a file is part of it, and stays.
	other := *sc
	if sc.ConfigFile == "" {
		other.Config = nil
	}
	other.ConfigFile = p.Compare
	second, err := p.run(&other, path)
	if err != nil {
		return nil, err
	}
	o.Shown = simulate.Compare(p.names(cmp.Or(sc.ConfigFile, path)), first, second)
	o.Refused = o.Refused || len(second.Notes) > 0
	return o, nil
}

// names are what the two of a comparison are called; first is the file of the first.
func (p Play) names(first string) [2]string {
	switch {
	case first != p.Compare:
		return [2]string{first, p.Compare}
	case p.Config != "":
		return [2]string{first + " (-config)", p.Compare + " (-compare)"}
	}
	return [2]string{first + " (the scenario's)", p.Compare + " (-compare)"}
}

// run plays a scenario once.
func (p Play) run(sc *simulate.Scenario, path string) (*simulate.Result, error) {
	node, err := p.node(sc, path)
	if err != nil {
		return nil, err
	}
	return simulate.Run(sc, node)
}

// node is the Execution Point of a scenario: its machine, and its configuration
// as a file in which the lines of the scenario stand where they are.
func (p Play) node(sc *simulate.Scenario, path string) (simulate.Node, error) {
	n := simulate.Node{Machine: sc.Machine}
	if file := cmp.Or(p.Machine, beside(path, sc.MachineFile)); file != "" {
		d, err := slots.ReadMachine(file, p.Host)
		if err != nil {
			return n, err
		}
		n.Machine = simulate.Machine{Host: cmp.Or(d.Host, sc.Machine.Host), Cpus: d.Cpus, MemoryMiB: d.MemoryMiB, DiskKiB: d.DiskKiB, SwapKiB: d.SwapKiB, Source: file}
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
		o := p.Options
		o.Subsystem, o.Seed, o.Facts = "STARTD", sc.Seed, machine.ConfigFacts(inv)
		o.Facts["LOCAL_DIR"] = os.TempDir()
		// The first line of a scenario cannot be one of configuration.
		return Sound(config.Parse(path, include+"\n"+strings.TrimPrefix(lines, "\n"), o))
	}
	return n, nil
}

// Sound refuses a configuration with whatever is wrong: who tries a policy out wants to
// know at once that it is not what was written.
func Sound(s *config.Snapshot, err error) (*config.Snapshot, error) {
	if err != nil {
		return nil, err
	}
	if problems := s.Check(); problems.Failed() {
		return nil, problems
	}
	return s, nil
}

// beside is a file that another one names: relative to that one's folder.
func beside(path, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(path), name)
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Exit statuses of slots, as the documentation promises them. A bad command
// line, configuration or description of a machine is exitUsage.
const (
	exitDivided   = 0 // every slot can be made
	exitUndivided = 1 // some cannot
)

// slotsFlags are the options of condor_ep slots.
type slotsFlags struct {
	config, machine string
	json, long      bool
	record          bool
}

// cmdSlots shows the slots that a configuration would make.
func cmdSlots(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var f slotsFlags
	fs := newFlags("slots", stderr)
	fs.StringVar(&f.config, "config", "", "")
	fs.StringVar(&f.machine, "machine", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.long, "long", false, "")
	fs.BoolVar(&f.record, "record", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	if fs.NArg() > 0 || f.json && f.long {
		fmt.Fprintf(stderr, "condor_ep slots: want -json or -long or neither, and no other words\n\n%s", usage)
		return exitUsage
	}
	if f.record {
		if f.config != "" || f.machine != "" || f.json || f.long {
			fmt.Fprintf(stderr, "condor_ep slots: -record stands alone: a record has its own configuration and machine\n\n%s", usage)
			return exitUsage
		}
		status, err := answerSlots(stdin, stdout)
		if err != nil {
			printError(stderr, "condor_ep slots", err)
			return exitUsage
		}
		return status
	}
	d, err := f.divide()
	if err != nil {
		printError(stderr, "condor_ep slots", err)
		return exitUsage
	}
	status := exitDivided
	for _, p := range d.problems {
		word := ""
		switch {
		case p.Warning:
			word = "warning: "
		case p.Fatal:
			word = "the daemon would end with exit status 4: "
		}
		fmt.Fprintf(stderr, "condor_ep slots: %s%v\n", word, p)
		if !p.Warning {
			status = exitUndivided
		}
	}
	switch {
	case f.json:
		err = d.printJSON(stdout)
	case f.long:
		err = d.printLong(stdout)
	default:
		err = d.printTable(stdout)
	}
	if err != nil {
		printError(stderr, "condor_ep slots", err)
		return exitUsage
	}
	return status
}

// divide reads what the options name, and divides the machine.
func (f slotsFlags) divide() (*division, error) {
	root := f.config
	if root == "" {
		var err error
		if root, err = machineRoot(); err != nil {
			return nil, err
		}
	}
	load := func(inv *machine.Inventory) (*config.Snapshot, error) { return loadConfig(root, os.TempDir(), inv) }
	if f.machine == "" {
		p, err := newPlatform()
		if err != nil {
			return nil, err
		}
		return divide(load, nil, p.scanners(), p.volume)
	}
	d, err := readMachine(f.machine)
	if err != nil {
		return nil, err
	}
	return divide(load, d.found, []machine.Scanner{d}, nil)
}

// division is a machine divided as a configuration says.
type division struct {
	ledger   *slot.Ledger
	ads      *ad.Machine
	problems []slot.Problem
	now      clock.Instant
}

// divide goes the way of the daemon: what is there, what the owner says of it,
// the slots, their ads. volume looks at the file systems of EXECUTE; nil if the
// scanners told its size.
func divide(load func(*machine.Inventory) (*config.Snapshot, error), found []slot.Inventory, scanners []machine.Scanner,
	volume func(execute string, snap *config.Snapshot) machine.Scanner) (*division, error) {
	ctx, now := context.Background(), time.Now()
	// What a scanner could not find stays unknown, and matters only if slots
	// need it; then the configuration's scanner says so.
	inv, _ := machine.Scan(ctx, now, scanners...)
	snap, err := load(inv)
	if err != nil {
		return nil, err
	}
	changed, err := inv.Prefer(snap)
	if err != nil {
		return nil, err
	}
	if changed {
		if snap, err = load(inv); err != nil {
			return nil, err
		}
	}
	if volume != nil {
		execute := snap.String("EXECUTE")
		if s, ok := snap.Lookup("EXECUTE"); !ok || s.IsDefault {
			if _, err := os.Stat(execute); err != nil {
				execute = os.TempDir() // an installation makes the directory
			}
		}
		// A file system that cannot be measured has nothing to give.
		_ = inv.Apply(ctx, now, volume(execute, snap))
	}
	if problems := inv.Apply(ctx, now, machine.ConfigScanner(snap)); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	layout, err := slot.LayoutFrom(snap, inv, found...)
	if err != nil {
		return nil, err
	}
	d := &division{now: clock.Instant{Wall: now, Boot: time.Hour}}
	d.ledger, d.problems = slot.Build(layout, inv)
	exprs := make(map[int]*policy.Expressions)
	for s := range d.ledger.Slots() {
		if exprs[s.TypeID] == nil {
			// What does not parse is published as error.
			exprs[s.TypeID], _ = policy.ExpressionsFrom(snap, s.TypeID)
		}
	}
	d.ads, err = ad.New(ad.Source{Config: snap, Inventory: inv, Ledger: d.ledger, Policy: exprs, Location: time.Local}, d.now)
	if err != nil {
		return nil, err
	}
	for s := range d.ledger.Slots() {
		a, _ := d.ads.Slot(s.ID)
		owner := exprs[s.TypeID].Get(policy.IsOwner).Expr
		if owner == nil || !owner.Eval(&classad.Env{My: a.Ad(), Now: now, Location: time.Local}).IsTrue() {
			a.SetPair(policy.UnclaimedIdle, d.now)
		}
	}
	d.ads.Refresh(machine.Sample{At: d.now}, d.now)
	return d, nil
}

// each yields the published ad of every slot, in order.
func (d *division) each(yield func(*slot.Slot, *classad.Ad) bool) {
	for s := range d.ledger.Slots() {
		if a, ok := d.ads.Slot(s.ID); ok && !yield(s, a.Snapshot(d.now)) {
			return
		}
	}
}

func (d *division) printJSON(w io.Writer) error {
	b := []byte("[")
	for _, shown := range d.each {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '\n')
		b = shown.AppendJSON(b)
	}
	_, err := w.Write(append(b, "\n]\n"...))
	return err
}

func (d *division) printLong(w io.Writer) error {
	var b []byte
	for _, shown := range d.each {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = shown.AppendText(b, classad.Old)
	}
	_, err := w.Write(b)
	return err
}

func (d *division) printTable(w io.Writer) error {
	if d.ledger.Len() == 0 {
		_, err := fmt.Fprintln(w, "There would be no slot.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "NAME\tTYPE\tCPUS\tMEMORY\tDISK\tSWAP"
	for _, r := range d.ledger.Resources() {
		head += "\t" + strings.ToUpper(r.Name)
	}
	fmt.Fprintln(t, head)
	for s := range d.ledger.Slots() {
		kind := s.Kind.String()
		if s.Backfill {
			kind += " backfill"
		}
		row := fmt.Sprintf("%s\t%s\t%v\t%d MiB\t%d KiB\t%d KiB", s.Name(), kind, s.Free.Cpus, s.Free.MemoryMiB, s.Free.DiskKiB, s.Free.SwapKiB)
		for _, r := range d.ledger.Resources() {
			c, _ := s.Free.Find(r.Name)
			row += fmt.Sprintf("\t%d", c.Count)
			if len(c.Assets) > 0 {
				row += " (" + strings.Join(c.Assets, " ") + ")"
			}
		}
		if s.Broken != nil {
			row += "\tbroken: " + s.Broken.Reason
		}
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
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
	if f.config == "" && nowhere() {
		fmt.Fprintln(stderr, "condor_ep slots: this machine has no configuration: these are the slots of condor_ep run; -config FILE tries another")
	}
	for _, w := range d.warnings {
		fmt.Fprintf(stderr, "condor_ep slots: warning: %s\n", warningText(w))
	}
	status := exitOK
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
			status = exitSomeFailed
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

// divide reads what the options name, and divides the machine. Without a
// configuration it is that of condor_ep run.
func (f slotsFlags) divide() (*division, error) {
	root := f.config
	if root == "" && !nowhere() {
		var err error
		if root, err = machineRoot(); err != nil {
			return nil, err
		}
	}
	from := origin{load: func(inv *machine.Inventory) (*config.Snapshot, error) {
		return loadConfig(root, f.local, os.TempDir(), inv)
	}}
	if f.machine == "" {
		p, err := thishost.Visit()
		if err != nil {
			return nil, err
		}
		from.scanners, from.volume = p.Scanners(), p.Volume
		from.hooks, from.beside = p.Hooks(os.TempDir()), filepath.Dir(p.Self)
		from.programs = p.Programs
		return divide(from)
	}
	d, err := readMachine(f.machine)
	if err != nil {
		return nil, err
	}
	from.found, from.scanners = d.found, []machine.Scanner{d}
	return divide(from)
}

// origin is where a division comes from.
type origin struct {
	load     func(*machine.Inventory) (*config.Snapshot, error)
	scanners []machine.Scanner
	// volume looks at the file system of EXECUTE; nil if the scanners told its
	// size.
	volume func(execute string, snap *config.Snapshot) machine.Scanner

	// programs finds Java and containers by running them; nil does not look.
	programs func(*config.Snapshot) machine.Scanner

	// hooks runs inventory scripts, and beside is where the GPU discovery
	// program may be. Without hooks none is run and found is what they would
	// say.
	hooks  *hook.Runner
	beside string
	found  []slot.Inventory

	sample machine.Sample // how busy the machine is
}

// division is a machine divided as a configuration says.
type division struct {
	config   *config.Snapshot
	ledger   *slot.Ledger
	ads      *ad.Machine
	exprs    map[int]*policy.Expressions // by slot type
	owned    map[slot.ID]bool            // slots that are left to their owner
	problems []slot.Problem
	warnings []error // what does not keep the daemon from starting
	now      clock.Instant
}

// divide goes the way of the daemon: what is there, what the owner says of it,
// the slots, their ads.
func divide(o origin) (*division, error) {
	ctx, now := context.Background(), time.Now()
	// What a scanner could not find stays unknown. It ends the start only if
	// slots need it; then the configuration's scanner says so.
	inv, doubts := machine.Scan(ctx, now, o.scanners...)
	snap, err := o.load(inv)
	if err != nil {
		return nil, err
	}
	changed, err := inv.Prefer(snap)
	if err != nil {
		return nil, err
	}
	if changed {
		if snap, err = o.load(inv); err != nil {
			return nil, err
		}
	}
	if o.volume != nil {
		execute := snap.String("EXECUTE")
		if s, ok := snap.Lookup("EXECUTE"); !ok || s.IsDefault {
			if _, err := os.Stat(execute); err != nil {
				execute = os.TempDir() // an installation makes the directory
			}
		}
		// A file system that cannot be measured has nothing to give.
		doubts = append(doubts, inv.Apply(ctx, now, o.volume(execute, snap))...)
	}
	if problems := inv.Apply(ctx, now, machine.ConfigScanner(snap)); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if o.programs != nil {
		doubts = append(doubts, inv.Apply(ctx, now, o.programs(snap))...)
	}
	d := &division{warnings: doubts, config: snap, now: clock.Instant{Wall: now, Boot: time.Hour}, exprs: make(map[int]*policy.Expressions), owned: make(map[slot.ID]bool)}
	layout, err := d.layout(ctx, o, inv)
	if err != nil {
		return nil, err
	}
	_, doubtful := snap.Sort()
	for _, p := range doubtful {
		d.warnings = append(d.warnings, p)
	}
	d.ledger, d.problems = slot.Build(layout, inv)
	for s := range d.ledger.Slots() {
		if d.exprs[s.TypeID] == nil {
			d.exprs[s.TypeID], _ = policy.ExpressionsFrom(snap, s.TypeID)
		}
	}
	d.ads, err = ad.New(ad.Source{Config: snap, Inventory: inv, Ledger: d.ledger, Policy: d.exprs, Location: time.Local}, d.now.Add(-startup))
	if err != nil {
		return nil, err
	}
	d.owners()
	o.sample.At = d.now
	d.ads.Refresh(o.sample, d.now)
	return d, nil
}

// layout reads the division that the configuration wants, with what inventory
// scripts say of the machine.
func (d *division) layout(ctx context.Context, o origin, inv *machine.Inventory) (slot.Layout, error) {
	var f hook.Findings
	found := o.found
	if o.hooks != nil {
		f = o.hooks.Discover(ctx, d.config, hook.InventoryPatience, o.beside)
		found = f.Inventories
	} else {
		d.notRun(found)
	}
	layout, err := slot.LayoutFrom(d.config, inv, found...)
	if err == nil {
		err = f.Fatal(layout.Failure)
	}
	d.warnings = append(d.warnings, f.All()...)
	return layout, err
}

// notRun warns of inventory scripts for which the description of the machine
// has nothing to say.
func (d *division) notRun(found []slot.Inventory) {
	scripts, _ := hook.ScriptsFrom(d.config)
	for _, s := range scripts {
		described := slices.ContainsFunc(found, func(i slot.Inventory) bool { return strings.EqualFold(i.Resource, s.Resource) })
		if !described && s.Origin.Kind != config.Default {
			d.warnings = append(d.warnings, fmt.Errorf("%v: %s is not run for a described machine, which has no %s: describe them among its resources", s.Origin, s.Path, s.Resource))
		}
	}
}

// owners puts every slot into the state that IS_OWNER wants for it at present.
// What IS_OWNER does not make out counts as a machine in use, as the engine has
// it.
func (d *division) owners() {
	for s := range d.ledger.Slots() {
		a, _ := d.ads.Slot(s.ID)
		pair := policy.UnclaimedIdle
		if e := d.exprs[s.TypeID].Get(policy.IsOwner).Expr; e != nil {
			v := e.Eval(&classad.Env{My: a.Ad(), Now: d.now.Wall, Location: time.Local})
			switch n, ok := v.AsNumber(); {
			case !ok:
				pair = policy.OwnerIdle
				d.warnings = append(d.warnings, fmt.Errorf("%s: IS_OWNER = %s is %v, neither true nor false: the slot is left to its owner", s.Name(), e.Text(classad.Old), v))
			case n != 0:
				pair = policy.OwnerIdle
			}
		}
		d.owned[s.ID] = pair == policy.OwnerIdle
		a.SetPair(pair, d.now)
	}
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/slot"
)

// tried explains what slots would do with a configuration, on this machine as
// it is now or on a described one; nothing is started.
func (f *explainFlags) tried(stderr io.Writer) ([]*explain.Report, int) {
	list, err := f.try(stderr)
	if err != nil {
		printError(stderr, "condor_ep explain", err)
		return nil, exitUsage
	}
	return list, exitOK
}

func (f *explainFlags) try(stderr io.Writer) ([]*explain.Report, error) {
	d, err := slotsFlags{config: f.config, local: f.local, machine: f.machine}.divide()
	if err != nil {
		return nil, err
	}
	_, doubtful := d.config.Sort()
	for _, p := range doubtful {
		fmt.Fprintf(stderr, "condor_ep explain: warning: %s\n", warningText(p))
	}
	if f.machine == "" {
		if err := d.sample(); err != nil {
			return nil, err
		}
	}
	here, err := native()
	if err != nil {
		return nil, err
	}
	var job *classad.Ad
	if f.job != "" {
		if job, err = f.jobAd(); err != nil {
			return nil, err
		}
	}
	src := explain.Source{Lookup: d.config.Lookup, Now: d.now.Wall, Location: time.Local}
	var slots []explain.Slot
	for s := range d.ledger.Slots() {
		if f.subject != "" && s.Name() != f.subject {
			continue
		}
		slots = append(slots, f.slotOf(d, s, here))
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("there would be no slot %s; condor_ep slots lists them", f.subject)
	}
	if job != nil && f.subject == "" {
		r := &explain.Report{State: "not submitted", Slots: explain.Judge(src, job, slots)}
		r.Answer = explain.JobAnswer(r.Slots)
		return []*explain.Report{r}, nil
	}
	var list []*explain.Report
	for _, s := range slots {
		s.Job = job
		list = append(list, explain.OfSlot(src, s))
	}
	return explain.Together(list), nil
}

// sample measures this machine for the slots' ads.
func (d *division) sample() error {
	p, err := thishost.New()
	if err != nil {
		return err
	}
	h, err := p.Host(os.TempDir(), d.config)
	if err != nil {
		return err
	}
	s, err := h.Sampler.Sample(context.Background())
	if err != nil {
		return err
	}
	s.At = d.now
	d.ads.Refresh(s, d.now)
	return nil
}

// native is what a running Execution Point would say of itself, and what else
// of this machine a described one leaves open.
func native() (*classad.Ad, error) {
	inv, err := thisMachine()
	if err != nil {
		return nil, err
	}
	run.Advertise(inv, version)
	return inv.Attrs, nil
}

// slotOf is a slot of a division as its policy sees it now.
func (f *explainFlags) slotOf(d *division, s *slot.Slot, here *classad.Ad) explain.Slot {
	a, _ := d.ads.Slot(s.ID)
	my := classad.NewAd()
	my.SetParent(a.Ad())
	for name, e := range here.All() {
		if _, ok := my.Lookup(name); !ok {
			my.Set(name, e)
		}
	}
	for _, set := range f.set {
		my.Set(set.name, set.expr)
	}
	x := explain.Slot{Name: s.Name(), Pair: policy.OwnerIdle, Since: d.now.Wall, Ad: my, Policy: d.exprs[s.TypeID]}
	if s.Broken != nil {
		x.Broken = s.Broken.Reason
	}
	// A slot begins in Owner and goes on as its policy says.
	v := policy.View{Now: d.now, Pair: x.Pair, Slot: my, Exprs: x.Policy, Location: time.Local}
	x.Present = policy.Explain(&v)
	if x.Present.Moves() {
		x.Pair, x.Last, x.LastAt = x.Present.To, x.Present, d.now.Wall
		v.Pair = x.Pair
		x.Present = policy.Explain(&v)
	}
	my.SetString("State", x.Pair.State.String())
	my.SetString("Activity", x.Pair.Activity.String())
	return x
}

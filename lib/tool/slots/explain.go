// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Question is what Explain is asked.
type Question struct {
	Subject string      // the name of a slot; "" for all
	Job     *classad.Ad // a job to be judged; nil for none
	Set     *classad.Ad // attributes that the slots have in place of their own; nil for none

	// Native has attributes that the machine that looks knows of itself, and that a
	// described one leaves open; nil for none.
	Native *classad.Ad
}

// Explain says what the slots would do as they begin: why each is in its state, and
// what would have to change. With a job and no subject it is one report about the
// job, with all slots. The error is about a slot that would not be there.
func (d *Division) Explain(q Question) ([]*explain.Report, error) {
	src := explain.Source{Lookup: d.Config.Lookup, Now: d.Now.Wall, Location: d.place}
	var slots []explain.Slot
	for s := range d.Ledger.Slots() {
		if q.Subject != "" && s.Name() != q.Subject {
			continue
		}
		slots = append(slots, d.explained(s, q))
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("there would be no slot %s; condor_ep slots lists them", q.Subject)
	}
	if q.Job != nil && q.Subject == "" {
		r := &explain.Report{State: "not submitted", Slots: explain.Judge(src, q.Job, slots)}
		r.Answer = explain.JobAnswer(r.Slots)
		return []*explain.Report{r}, nil
	}
	var list []*explain.Report
	for _, s := range slots {
		s.Job = q.Job
		list = append(list, explain.OfSlot(src, s))
	}
	return explain.Together(list), nil
}

// explained is a slot as its policy sees it now.
func (d *Division) explained(s *slot.Slot, q Question) explain.Slot {
	a, _ := d.Ads.Slot(s.ID)
	my := classad.NewAd()
	my.SetParent(a.Ad())
	if q.Native != nil {
		for name, e := range q.Native.All() {
			if _, ok := my.Lookup(name); !ok {
				my.Set(name, e)
			}
		}
	}
	if q.Set != nil {
		for name, e := range q.Set.All() {
			my.Set(name, e)
		}
	}
	x := explain.Slot{Name: s.Name(), Pair: policy.OwnerIdle, Since: d.Now.Wall, Ad: my, Policy: d.Policy[s.TypeID]}
	if s.Broken != nil {
		x.Broken = s.Broken.Reason
	}
	// A slot begins in Owner and goes on as its policy says.
	v := policy.View{Now: d.Now, Pair: x.Pair, Slot: my, Exprs: x.Policy, Location: d.place}
	x.Present = policy.Explain(&v)
	if x.Present.Moves() {
		x.Pair, x.Last, x.LastAt = x.Present.To, x.Present, d.Now.Wall
		v.Pair = x.Pair
		x.Present = policy.Explain(&v)
	}
	my.SetString("State", x.Pair.State.String())
	my.SetString("Activity", x.Pair.Activity.String())
	return x
}

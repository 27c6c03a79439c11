// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"iter"
	"math"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// SlotView is what can be seen of a slot from outside.
type SlotView struct {
	ID       slot.ID
	Name     string // "slot1_1"
	FullName string // "slot1_1@host"
	Kind     slot.Kind
	Pair     policy.Pair
	// Entered is when the slot came into its state, Began into its activity.
	Entered, Began clock.Instant
	Total, Free    slot.Quantities
	Broken         *slot.BrokenReason

	// NextClaim is the id by which the slot can be claimed, by whoever is told
	// it. It is secret.
	NextClaim claim.ID
	// FurtherClaims are as many more as the slot's consumption policy has
	// (NUM_CLAIMS), each good for one claim. They are secret, and the engine's: they hold until its
	// next step.
	FurtherClaims []claim.ID

	Claimed    bool
	Claim      claim.ID
	Client     claim.Client
	Activation claim.ActivationID // "" without a starter
	Phase      claim.Phase
	Job        *classad.Ad // of the activation; not to be changed
	Starter    host.ProcID
	// StarterAddress is where the starter is reached, a sinful, "" if it has not
	// said so. GlobalJobID and JobID are those of Job, "" if it does not say.
	StarterAddress     string
	GlobalJobID, JobID string
	Usage              host.Usage
	DiskKiB            int64
	RunTime            time.Duration // of the job, without the time it was suspended

	open bool
}

// Claimable reports whether a claim may be asked for: the slot is sound, free,
// or can be divided further, and the EP goes on.
func (v *SlotView) Claimable() bool { return v.open }

// Views yields every slot, ascending by ID. The engine must not step
// meanwhile.
func (e *Engine) Views() iter.Seq[SlotView] {
	return func(yield func(SlotView) bool) {
		for _, sl := range e.slots.all {
			if !yield(e.viewOf(sl)) {
				return
			}
		}
	}
}

// SlotView returns the view of one slot.
func (e *Engine) SlotView(id slot.ID) (SlotView, bool) {
	sl, ok := e.slots.byID[id]
	if !ok {
		return SlotView{}, false
	}
	return e.viewOf(sl), true
}

func (e *Engine) viewOf(sl *slotState) SlotView {
	v := SlotView{
		ID: sl.s.ID, Name: sl.name, FullName: sl.full, Kind: sl.s.Kind, Pair: sl.pair, Entered: sl.entered, Began: sl.began,
		Total: sl.s.Total, Free: e.ledger.Open(sl.s), Broken: sl.s.Broken, NextClaim: sl.ids.first, FurtherClaims: sl.ids.further,
	}
	if c := sl.cur; c != nil {
		v.Claimed, v.Claim, v.Client = true, c.ID, c.Client
	}
	if a := sl.act; a != nil {
		v.Activation, v.Phase, v.Job, v.Starter, v.Usage, v.DiskKiB = a.ID, a.Phase, a.Job, a.proc, a.used.usage, a.used.diskKiB
		v.RunTime, v.StarterAddress = a.RunTime(e.now), a.address
		v.GlobalJobID, v.JobID = a.job.global, a.job.number
	}
	free := sl.pair.State == policy.Owner || sl.pair.State == policy.Unclaimed || sl.pair.State == policy.Backfill ||
		e.drain.start != nil && sl.pair.State == policy.Drained
	v.open = free && sl.s.Broken == nil && e.refusing(sl) == nil && !e.shutdown.begun && sl.s.Kind != slot.Dynamic && v.Free.Cpus > 0
	return v
}

// DaemonAd returns the ad of the EP as a whole. problems are those of
// slot.Build. The ad belongs to the caller.
func (e *Engine) DaemonAd(problems []slot.Problem) *classad.Ad { return e.ads.Daemon(problems, e.now) }

// RetirementLeft returns for how long the job in a slot may still not be
// hard-killed, 0 without a job.
func (e *Engine) RetirementLeft(id slot.ID) (time.Duration, bool) {
	sl, ok := e.slots.byID[id]
	if !ok {
		return 0, false
	}
	return policy.RetirementLeft(e.policyView(sl)), true
}

// SlotAd returns the ad of a slot, nil if there is none. It is the engine's
// own: read it before the next Step and do not change it.
func (e *Engine) SlotAd(id slot.ID) *classad.Ad {
	if sl, ok := e.slots.byID[id]; ok {
		return sl.ad.Ad()
	}
	return nil
}

// Explanation says why a slot is where it is and why it stays there.
type Explanation struct {
	Slot slot.ID
	Name string
	Pair policy.Pair
	// Last is the decision of the last move, at Since. Activation is the one it
	// was about, "" if none.
	Last       policy.Decision
	Since      clock.Instant
	Activation claim.ActivationID
	// Now is what the policy says at present, with its trace in any case. Job is
	// what it asked about, nil if the slot's claim has none.
	Now policy.Decision
	Job *classad.Ad // not to be changed
}

// Explain returns the last decision about a slot and what its policy says now.
// It changes nothing.
func (e *Engine) Explain(id slot.ID) (Explanation, bool) {
	sl, ok := e.slots.byID[id]
	if !ok {
		return Explanation{}, false
	}
	return Explanation{
		Slot: id, Name: sl.name, Pair: sl.pair, Last: sl.last.decision, Since: sl.last.at, Activation: sl.last.activation,
		Now: policy.Explain(e.policyView(sl)), Job: sl.job(),
	}, true
}

// CouldEverRun says why no slot could take the job even if the machine were
// idle, nil if one could.
func (e *Engine) CouldEverRun(job *classad.Ad) error {
	var plain slot.RequestModifiers
	req, err := plain.Request(job, e.boundless(), e.env())
	if err != nil {
		return err
	}
	return e.ledger.CouldEverFit(req)
}

// boundless is the ad of a slot which has more than enough of everything that
// this machine knows.
func (e *Engine) boundless() *classad.Ad {
	ad := classad.NewAd()
	names := []string{"Cpus", "Memory", "Disk", "Swap"}
	for s := range e.ledger.Slots() {
		for _, c := range s.Total.Custom {
			if _, ok := ad.Lookup(c.Name); !ok {
				names = append(names, c.Name)
				ad.SetInt(c.Name, math.MaxInt32)
			}
		}
	}
	ad.SetString("MachineResources", strings.Join(names, " "))
	return ad
}

// env is what an expression outside the policy may look at.
func (e *Engine) env() *classad.Env {
	return &classad.Env{Now: e.now.Wall, Location: e.cfg.Location, Rand: e.cfg.Rand}
}

// Mentions reports whether an expression of the policy names the attribute, so
// that a job which says it may be treated otherwise.
func (e *Engine) Mentions(attr string) bool {
	for _, x := range e.exprs.byType {
		if x.Mentions(attr) {
			return true
		}
	}
	return false
}

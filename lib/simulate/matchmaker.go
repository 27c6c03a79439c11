// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// negotiate matches idle jobs with slots.
func (p *accessPoint) negotiate() {
	if p.silent || p.w.life.over || len(p.idle) == 0 {
		return
	}
	taken := map[slot.ID]bool{}
	clear(p.refused)
	for _, q := range slices.Clone(p.idle) {
		if p.refused[q.sig] || q.state != waiting {
			continue
		}
		if h := p.spare(q); h != nil {
			p.unqueue(q)
			q.state = matched
			p.start(h, q)
			continue
		}
		v, priority, ok := p.match(q, taken)
		var evict []claim.ID
		if !ok {
			v, evict, ok = p.makeRoom(q, taken)
		}
		if !ok {
			p.refused[q.sig] = true
			continue
		}
		if p.oneEach || v.Kind != slot.Partitionable {
			taken[v.ID] = true
		}
		p.unqueue(q)
		p.ref++
		q.state, q.ref = matched, p.ref
		p.asked[p.ref] = q
		if informs, _ := p.w.snap.Bool("NEGOTIATOR_INFORM_STARTD"); informs && v.Kind != slot.Partitionable {
			p.w.step(ep.MatchTold{Slot: v.ID})
		}
		p.w.step(ep.ClaimRequested{Ref: own(p.ref), Slot: v.ID, Job: q.ad.Clone(), Client: claim.Client{User: q.user, Owner: q.user}, Lease: p.lease, Priority: priority, Evict: evict})
	}
}

// claim asks for a slot on behalf of the slot itself.
func (p *accessPoint) claim(q *queued, id slot.ID) {
	p.ref++
	q.ref = p.ref
	p.asked[p.ref] = q
	p.w.step(ep.ClaimRequested{Ref: own(p.ref), Slot: id, Job: q.ad.Clone(), Client: claim.Client{User: q.user, Owner: q.user}, Lease: p.lease})
}

// spare returns a claim that is kept for a next job.
func (p *accessPoint) spare(q *queued) *holding {
	var best *holding
	for _, h := range p.held {
		if h.job == nil && h.uses > 0 && !h.fetched && !h.closing && p.w.pair(h.slot) == policy.ClaimedIdle && p.fits(q, h.ad) && (best == nil || h.slot.Compare(best.slot) < 0) {
			best = h
		}
	}
	return best
}

func (p *accessPoint) fits(q *queued, ad *classad.Ad) bool {
	return classad.Match(q.ad, ad, p.env()).OK()
}

// match finds the slot for a job: one that is free, or else one whose claim a
// better rank or priority may preempt.
func (p *accessPoint) match(q *queued, taken map[slot.ID]bool) (found ep.SlotView, priority, ok bool) {
	preempts, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_PREEMPTION")
	var bestRank float64
	for v := range p.w.eng.Views() {
		if taken[v.ID] || !v.Claimable() && (!preempts || v.Kind == slot.Partitionable || v.Pair.State != policy.Claimed || v.Activation == "") {
			continue
		}
		byPriority := false
		if !v.Claimable() {
			if ok {
				continue
			}
			may := false
			if may, byPriority = p.preempts(q, &v); !may {
				continue
			}
		}
		m := classad.Match(q.ad, p.w.eng.SlotAd(v.ID), p.env())
		if m.OK() && (!ok || v.Claimable() && (!found.Claimable() || m.LeftRank > bestRank)) {
			found, ok, priority, bestRank = v, true, byPriority, m.LeftRank
		}
	}
	return found, priority, ok
}

// makeRoom finds a partitionable slot in which a job would fit if jobs that the
// machine ranks lower left it, and their claims, the least wanted first.
func (p *accessPoint) makeRoom(q *queued, taken map[slot.ID]bool) (found ep.SlotView, evict []claim.ID, ok bool) {
	may, _ := p.w.snap.Bool("ALLOW_PSLOT_PREEMPTION")
	if consider, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_PREEMPTION"); !may || !consider {
		return found, nil, false
	}
	type part struct {
		view ep.SlotView
		rank float64
	}
	env := p.env()
	cpus, _ := q.ad.EvalReal("RequestCpus", env)
	memory, _ := q.ad.EvalInt("RequestMemory", env)
	for parent := range p.w.eng.Views() {
		if parent.Kind != slot.Partitionable || taken[parent.ID] {
			continue
		}
		var parts []part
		for v := range p.w.eng.Views() {
			if v.ID.Parent() != parent.ID || v.Pair.State != policy.Claimed {
				continue
			}
			ad := p.w.eng.SlotAd(v.ID)
			mine := p.env()
			mine.Target = q.ad
			rank, _ := ad.EvalReal("Rank", mine)
			current, _ := ad.EvalReal("CurrentRank", nil)
			if early, _ := p.preempts(q, &v); early && rank > current {
				parts = append(parts, part{v, current})
			}
		}
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.rank, b.rank) })
		room := parent.Free
		for _, part := range parts {
			room = slot.Sum(room, part.view.Total)
			evict = append(evict, part.view.Claim)
			if room.Cpus >= cpus && room.MemoryMiB >= memory {
				return parent, evict, true
			}
		}
		evict = nil
	}
	return found, nil, false
}

// preempts says whether the matchmaker sends a job to a slot that is claimed.
func (p *accessPoint) preempts(q *queued, v *ep.SlotView) (may, byPriority bool) {
	early, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_EARLY_PREEMPTION")
	if left, known := p.left[v.ID]; !early && (!known || left > 0) {
		return false, false
	}
	ad := p.w.eng.SlotAd(v.ID)
	env := p.env()
	env.Target = q.ad
	rank, _ := ad.EvalReal("Rank", env)
	current, _ := ad.EvalReal("CurrentRank", nil)
	if rank > current {
		return true, false
	}
	mine, its := p.factor(q.user), p.factor(v.Client.User)
	if rank < current || q.user == v.Client.User || mine >= its {
		return false, false
	}
	want, err := p.w.snap.Expr("PREEMPTION_REQUIREMENTS")
	if err != nil || want == nil {
		return false, false
	}
	job := q.ad.Clone()
	job.SetReal("SubmitterUserPrio", mine)
	seen := ad.Clone()
	seen.SetReal("RemoteUserPrio", its)
	env.My, env.Target = seen, job
	return want.Eval(env).IsTrue(), true
}

// factor is the priority of a user; less is better.
func (p *accessPoint) factor(user string) float64 {
	name, _, _ := strings.Cut(user, "@")
	if f, ok := p.factors[name]; ok {
		return f
	}
	return 1000
}

// hear is the update that the matchmaker gets now and then.
func (p *accessPoint) hear() {
	clear(p.left)
	for v := range p.w.eng.Views() {
		if v.Activation != "" {
			p.left[v.ID], _ = p.w.eng.RetirementLeft(v.ID)
		}
	}
}

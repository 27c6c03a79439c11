// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/spelling"
)

// maxExplained bounds how many slots are explained at once, so that the engine
// is not kept and the answer fits a message.
const maxExplained = 500

// explain answers for a slot by name, for a job by its id, for a job that might
// be submitted, or, if nothing is named, for every slot.
func (n *node) explain(now clock.Instant, r observe.Request) ([]*explain.Report, error) {
	if r.Subject != "" || r.Job != "" {
		x, err := n.explainOne(now, r)
		return []*explain.Report{x}, err
	}
	var all []*explain.Report
	src := n.source(now)
	left := 0
	for v := range n.eng.Views() {
		if len(all) == maxExplained {
			left++
			continue
		}
		all = append(all, explain.OfSlot(src, n.slotOf(now, v)))
	}
	all = explain.Together(all)
	if left > 0 {
		last := all[len(all)-1]
		last.Notes = append(last.Notes, fmt.Sprintf("there %s %s more; ask for one by its name", spelling.Are(left), spelling.Count(left, "slot")))
	}
	return all, nil
}

func (n *node) explainOne(now clock.Instant, r observe.Request) (*explain.Report, error) {
	var job *classad.Ad
	if r.Job != "" {
		var err error
		if job, err = classad.ParseAd(r.Job, classad.Old); err != nil {
			return nil, fmt.Errorf("the job is not an ad: %w", err)
		}
	}
	if job != nil && r.Subject == "" {
		x := &explain.Report{State: "not submitted"}
		n.judge(now, job, x)
		return x, nil
	}
	if id, err := slot.ParseID(r.Subject); err == nil {
		v, ok := n.eng.SlotView(id)
		if !ok {
			return nil, fmt.Errorf("there is no slot %s; condor_ep status lists them", r.Subject)
		}
		s := n.slotOf(now, v)
		if s.Job == nil {
			s.Job = job
		}
		return explain.OfSlot(n.source(now), s), nil
	}
	cluster, proc, dot := strings.Cut(r.Subject, ".")
	c, err1 := strconv.Atoi(cluster)
	p, err2 := strconv.Atoi(proc)
	if !dot || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%q is neither a slot (slot1_1) nor a job (3.0)", r.Subject)
	}
	if n.serving() {
		for v := range n.eng.Views() {
			if v.JobID == r.Subject {
				return explain.OfSlot(n.source(now), n.slotOf(now, v)), nil
			}
		}
		return nil, fmt.Errorf("no slot here runs a job %s; condor_q says where it is, and -job FILE what the slots say to its ad", r.Subject)
	}
	st, ok := n.ap.Job(local.ID{Cluster: c, Proc: p})
	if !ok {
		return nil, fmt.Errorf("there is no job %s", r.Subject)
	}
	if !st.Slot.IsZero() {
		if v, ok := n.eng.SlotView(st.Slot); ok {
			return explain.OfSlot(n.source(now), n.slotOf(now, v)), nil
		}
	}
	x := &explain.Report{Job: st.ID.String(), State: st.Status.String(), Since: st.Since, Why: st.Waiting}
	// A job that waits is explained by the slots that could take it.
	if job, ok := n.ap.Ad(st.ID); ok && st.Status == local.Idle {
		n.judge(now, job, x)
	}
	return x, nil
}

// judge adds what the slots say of a job that waits or might.
func (n *node) judge(now clock.Instant, job *classad.Ad, x *explain.Report) {
	var slots []explain.Slot
	for v := range n.eng.Views() {
		if v.Kind == slot.Dynamic {
			continue
		}
		slots = append(slots, n.slotOf(now, v))
		x.Notes = append(x.Notes, fmt.Sprintf("%s is %v with %g cpus, %d MiB of memory and %d KiB of disk free",
			v.Name, v.Pair, v.Free.Cpus, v.Free.MemoryMiB, v.Free.DiskKiB))
	}
	x.Slots = explain.Judge(n.source(now), job, slots)
	x.Answer = explain.JobAnswer(x.Slots)
	if err := n.eng.CouldEverRun(job); err != nil {
		x.Answer += ", and none ever could: " + err.Error()
	}
}

// source is what one explanation is made from.
func (n *node) source(now clock.Instant) explain.Source {
	return explain.Source{Lookup: n.o.Config.Lookup, Now: now.Wall, Location: time.Local, Rand: n.random, Work: classad.NewBudget(explain.MostWork)}
}

// slotOf is a slot as the engine has it.
func (n *node) slotOf(now clock.Instant, v ep.SlotView) explain.Slot {
	s := explain.Slot{
		Name: v.Name, Pair: v.Pair, Since: v.Began.Wall, Ad: n.eng.SlotAd(v.ID), Policy: n.eng.PolicyOf(v.ID), Job: v.Job,
	}
	if v.Broken != nil {
		s.Broken = v.Broken.Reason
	}
	r, refused := n.eng.Refusal(v.ID)
	s.Refused = refusal(r, refused, now)
	if e, ok := n.eng.Explain(v.ID); ok {
		s.Last, s.LastAt, s.Present, s.Target = e.Last, e.Since.Wall, e.Now, e.Job
	}
	if id, ok := n.ap.JobOf(v.Activation); ok {
		s.JobID = id.String()
	} else if n.serving() {
		s.JobID = v.JobID
	}
	return s
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// secretBytes is how long the secret of a claim is.
const secretBytes = 20

// newEngine makes the engine with the secrets of this run.
func (n *node) newEngine(ledger *slot.Ledger, sample machine.Sample, now clock.Instant) (*ep.Engine, []ep.Effect, error) {
	return ep.New(ep.Config{
		Snapshot: n.o.Config, Inventory: n.o.Inventory, Ledger: ledger, Sample: sample,
		Benchmarks: len(n.bench.cron.Jobs) > 0,
		Address:    sinful(n.o.Inventory.FullHostname), Start: now.Wall.Unix(), Location: time.Local, Rand: n.random,
		NewSecret: func() claim.Secret {
			var b [secretBytes]byte
			n.o.Host.Rand(b[:])
			return claim.Secret(fmt.Sprintf("%x", b))
		},
	}, now)
}

// random gives random() in expressions a number in [0, 1).
func (n *node) random() float64 {
	var b [8]byte
	n.o.Host.Rand(b[:])
	var u uint64
	for _, x := range b {
		u = u<<8 | uint64(x)
	}
	return float64(u>>11) / (1 << 53)
}

// answer answers the control socket. Only the owner calls it.
func (n *node) answer(now clock.Instant, r observe.Request) observe.Response {
	switch r.Op {
	case observe.OpStatus:
		return observe.Response{Status: n.status()}
	case observe.OpExplain:
		x, err := n.explain(now, r.Subject)
		if err != nil {
			return observe.Response{Err: err.Error()}
		}
		return observe.Response{Explanation: x}
	}
	return observe.Response{Err: fmt.Sprintf("unknown question %q", r.Op)}
}

func (n *node) status() *observe.Status {
	c := n.ap.Counts()
	s := &observe.Status{
		Name: n.o.Inventory.FullHostname, PID: os.Getpid(), Version: n.o.Version, Started: n.started, Dir: n.o.Dir,
		Jobs: &observe.JobCount{Idle: c.Idle, Running: c.Running + c.Suspended, Held: c.Held, Done: c.Done, Total: c.Total},
	}
	for v := range n.eng.Views() {
		q := v.Free
		sl := observe.Slot{
			Name: v.Name, Type: v.Kind.String(), State: v.Pair.State.String(), Activity: v.Pair.Activity.String(), Since: v.Began.Wall,
			Cpus: q.Cpus, MemoryMiB: q.MemoryMiB, DiskKiB: q.DiskKiB,
		}
		if v.Broken != nil {
			sl.Broken = v.Broken.Reason
		}
		if id, ok := n.ap.JobOf(v.Activation); ok {
			sl.Job = id.String()
		}
		if v.Claimed {
			sl.User = v.Client.User
		}
		s.Slots = append(s.Slots, sl)
	}
	return s
}

// explain answers for a slot by name, or for a job by its id.
func (n *node) explain(now clock.Instant, subject string) (*observe.Explanation, error) {
	if id, err := slot.ParseID(subject); err == nil {
		for v := range n.eng.Views() {
			if v.ID == id {
				return n.explainSlot(v)
			}
		}
		return nil, fmt.Errorf("there is no slot %s; condor_ep status lists them", subject)
	}
	cluster, proc, dot := strings.Cut(subject, ".")
	c, err1 := strconv.Atoi(cluster)
	p, err2 := strconv.Atoi(proc)
	if !dot || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%q is neither a slot (slot1_1) nor a job (3.0)", subject)
	}
	st, ok := n.ap.Job(local.ID{Cluster: c, Proc: p})
	if !ok {
		return nil, fmt.Errorf("there is no job %s", subject)
	}
	if !st.Slot.IsZero() {
		if v, ok := n.eng.SlotView(st.Slot); ok {
			return n.explainSlot(v)
		}
	}
	x := &observe.Explanation{Job: st.ID.String(), State: st.Status.String(), Since: st.Since, Why: st.Waiting}
	// A job that waits is explained by the slots that could take it.
	if job, ok := n.ap.Ad(st.ID); ok && st.Status == local.Idle {
		for v := range n.eng.Views() {
			if v.Kind != slot.Dynamic {
				n.startOf(now, v, job, x)
			}
		}
	}
	return x, nil
}

// startOf adds what a slot and a waiting job say of each other at present.
func (n *node) startOf(now clock.Instant, v ep.SlotView, job *classad.Ad, x *observe.Explanation) {
	ad := n.eng.SlotAd(v.ID)
	x.Notes = append(x.Notes, fmt.Sprintf("%s is %v with %g cpus, %d MiB of memory and %d KiB of disk free",
		v.Name, v.Pair, v.Free.Cpus, v.Free.MemoryMiB, v.Free.DiskKiB))
	for _, side := range []struct {
		name, label string
		my, target  *classad.Ad
	}{
		{"Start", "START of " + v.Name, ad, job},
		{"WithinResourceLimits", "WithinResourceLimits of " + v.Name, ad, job},
		{"Requirements", "Requirements of the job", job, ad},
	} {
		e, ok := side.my.Lookup(side.name)
		if !ok {
			continue
		}
		ev := observe.Evaluated{Name: side.label, Text: e.Text(classad.Old)}
		env := newEnv(now)
		env.Target = side.target
		env.OnRead = func(r classad.Read) {
			if text := readText(r); !strings.EqualFold(r.Name, side.name) && !slices.Contains(ev.Reads, text) {
				ev.Reads = append(ev.Reads, text)
			}
		}
		ev.Value = strings.ToUpper(side.my.Eval(side.name, env).String())
		if set, ok := n.o.Config.Lookup(side.name); ok && side.my == ad {
			ev.Origin = set.Origin.String()
		}
		x.Exprs = append(x.Exprs, ev)
	}
}

func readText(r classad.Read) string {
	if r.Scope != "" {
		return r.Scope + "." + r.Name + " = " + r.Value.String()
	}
	return r.Name + " = " + r.Value.String()
}

func (n *node) explainSlot(v ep.SlotView) (*observe.Explanation, error) {
	e, ok := n.eng.Explain(v.ID)
	if !ok {
		return nil, fmt.Errorf("there is no slot %s", v.Name)
	}
	x := &observe.Explanation{
		Slot: v.Name, State: v.Pair.State.String(), Activity: v.Pair.Activity.String(), Since: v.Began.Wall, At: e.Since.Wall,
		Why: e.Last.Reason,
	}
	if e.Last.Moves() {
		x.From = e.Last.From.String()
	}
	if e.Last.Number != 0 {
		x.Number = strconv.Itoa(e.Last.Number)
	}
	if id, ok := n.ap.JobOf(v.Activation); ok {
		x.Job = id.String()
	}
	seen := make(map[string]bool)
	for _, list := range [][]policy.Trace{e.Last.Trace, e.Now.Trace} {
		for _, t := range list {
			ev := evaluated(t)
			if key := ev.Name + "\x00" + ev.Value; !seen[key] {
				seen[key] = true
				x.Exprs = append(x.Exprs, ev)
			}
		}
	}
	return x, nil
}

func evaluated(t policy.Trace) observe.Evaluated {
	ev := observe.Evaluated{Name: t.Name, Text: t.Text, Value: t.Taken, Origin: t.Origin.String()}
	for _, r := range t.Reads {
		ev.Reads = append(ev.Reads, readText(r))
	}
	return ev
}

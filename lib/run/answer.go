// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
)

// secretBytes is how long the secret of a claim is.
const secretBytes = 20

// newEngine makes the engine with the secrets of this run.
func (n *node) newEngine(ledger *slot.Ledger, sample machine.Sample, now clock.Instant) (*ep.Engine, []ep.Effect, error) {
	address, start := sinful(n.o.Inventory.FullHostname), now.Wall.Unix()
	secret := func() claim.Secret {
		var b [secretBytes]byte
		n.o.Host.Rand(b[:])
		return claim.Secret(fmt.Sprintf("%x", b))
	}
	if s := n.o.Serve; s != nil {
		address, start, secret = n.member.address, s.Start, s.NewSecret
	}
	return ep.New(ep.Config{
		Snapshot: n.o.Config, Inventory: n.o.Inventory, Ledger: ledger, Sample: sample,
		Benchmarks: len(n.bench.cron.Jobs) > 0, Backfill: n.back.settings.On, Fetches: n.serving(),
		Address: address, Start: start, Location: time.Local, Rand: n.random, NewSecret: secret, Place: n.o.executeOf, Shutdown: n.farewell(),
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
		return observe.Response{Status: n.status(now)}
	case observe.OpDrain:
		return n.drain(now, r)
	case observe.OpResume:
		return n.resume(now, r)
	case observe.OpVacate:
		return n.vacate(now, r)
	case observe.OpExplain:
		x, err := n.explain(now, r)
		if err != nil {
			return observe.Response{Err: err.Error()}
		}
		return observe.Response{Explanations: x}
	}
	return observe.Response{Err: fmt.Sprintf("unknown question %q", r.Op)}
}

func (n *node) status(now clock.Instant) *observe.Status {
	c := n.ap.Counts()
	s := &observe.Status{
		Name: n.o.Inventory.FullHostname, Program: "condor_startd", PID: os.Getpid(), Version: n.o.Version, Started: n.control.started, Dir: n.o.Dir,
		Draining: n.draining(now), Ending: n.leave.end,
	}
	if !n.serving() {
		s.Program = "condor_ep run"
		s.Jobs = &observe.JobCount{Idle: c.Idle, Running: c.Running + c.Suspended, Held: c.Held, Done: c.Done, Total: c.Total}
	}
	for _, u := range n.starter.settings.Load().contain.not {
		s.NotContained = append(s.NotContained, u.String())
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
		} else if n.serving() {
			sl.Job = v.JobID
		}
		if v.Claimed {
			sl.User = v.Client.User
		}
		s.Slots = append(s.Slots, sl)
	}
	return s
}

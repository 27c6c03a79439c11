// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// lease is what is left of the job's lease.
func (s *shadowJob) lease() time.Duration {
	length := time.Duration(0)
	if s.a.job != nil {
		length = shadow.LeaseLength(s.a.job.ad)
	}
	return shadow.Lease{Length: length, Contact: s.caller.Contact()}.Left(s.clock.Now())
}

// rejoined gets to know the shadow that took the job up again, before anything
// else is told.
func (s *shadowJob) rejoined(a *activation) {
	s.queue.add(func() {
		if err := s.share(context.Background()); err != nil {
			s.log.Warn("the shadow that came back shares no session", "err", err)
		}
	})
	s.queue.add(s.streams.rejoined)
	s.changed(a)
}

// visitors are those who come through the door.
type visitors struct{ s *shadowJob }

var (
	errBusy     = errors.New("the job is not at a point where it could be taken up")
	errReplaced = errors.New("another shadow has the job, which came after this one")
)

// shadows are those that have, or had, the job. The shadows of a schedd that
// was killed live on for a while and would take the job from those of its
// successor, which would take it back.
type shadows struct {
	present string // ShadowIpAddr
	former  map[string]bool
}

// replaced reports whether the shadow at address is one that another came after.
func (s *shadows) replaced(address string) bool { return address != "" && s.former[address] }

// take notes who has the job now.
func (s *shadows) take(address string) {
	if address == "" || address == s.present {
		return
	}
	if s.former == nil {
		s.former = map[string]bool{}
	}
	delete(s.former, address)
	if s.present != "" {
		s.former[s.present] = true
	}
	s.present = address
}

// Reconnect hands the conversation over to conn.
func (v visitors) Reconnect(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) error {
	const op = "starter.Reconnect"
	s := v.s
	s.mu.Lock()
	info := s.info
	s.mu.Unlock()
	if info == nil {
		return errs.E(op, errs.Conflict, s.a.plan.Activation, errBusy)
	}
	answer := make(chan error, 1)
	err := v.do(ctx, func() []duty {
		if p := s.a.life.phase; s.a.life.held || p <= preparing || p == over {
			answer <- errs.E(op, errs.Conflict, s.a.plan.Activation, errBusy)
			return nil
		}
		from, _ := ad.EvalString("ShadowIpAddr", nil)
		if s.shadows.replaced(from) && s.caller.Connected() {
			// One that is refused ends the claim, with the job of the other;
			// one that is not answered tries again, later and later.
			_ = conn.Close()
			answer <- errs.E(op, errs.Conflict, from, errReplaced)
			return nil
		}
		s.shadows.take(from)
		// An answer fits into what the system keeps for a connection: it is
		// written at once.
		if err := reach.ReplyReconnect(conn, info); err != nil {
			answer <- err
			return nil
		}
		answer <- nil
		return s.resume(conn, ad)
	})
	if err != nil {
		return err
	}
	return <-answer
}

// resume goes on with the conversation on conn.
func (s *shadowJob) resume(conn *cedar.Conn, ad *classad.Ad) []duty {
	a := s.a
	duties := a.life.parted() // if nobody has noticed yet
	a.perform(duties)
	s.anew.Store(true)
	s.caller.Replace(conn)
	if v, ok := ad.EvalString("ShadowVersion", nil); ok {
		s.caller.SetPeerVersion(v)
	}
	a.gone = s.caller.Lost()
	where := ad.Clone()
	s.queue.add(func() {
		if err := s.taught(where); err != nil {
			s.log.Warn("the shadow that came back does not say where files are", "err", err)
		}
	})
	s.log.Info("the shadow is back", "peer", s.caller.Peer())
	return a.life.rejoined()
}

// Vacate ends the job.
func (v visitors) Vacate(ctx context.Context, why string, code, subcode int, soft bool) error {
	leave := protocol.Leave{Manner: protocol.MannerVacate, Asked: "shadow", Reason: why, Code: code, Subcode: subcode}
	if reason.Holds(reason.Code(code), subcode) {
		leave.Manner = protocol.MannerHold
	}
	var o protocol.Order = protocol.HardKill{Leave: leave}
	if soft {
		o = protocol.SoftKill{Leave: leave}
	}
	return v.do(ctx, func() []duty { return v.s.a.life.ordered(o) })
}

// Running returns the job for those who look at it.
func (v visitors) Running() (reach.Target, bool) {
	s := v.s
	got := make(chan reach.Target, 1)
	is := false
	err := v.do(context.Background(), func() []duty {
		a := s.a
		is = a.life.phase == running && a.family != nil
		t := reach.Target{Machine: s.machine, Finished: a.life.phase > running, Suspended: a.life.suspended, User: a.plan.RunAs}
		if a.job != nil {
			t.Job, t.Env = a.job.ad, a.jobEnv
			t.Root, t.Scratch = a.box.Root(), a.box.Scratch()
			t.Stdout, t.Stderr = within(t.Scratch, a.job.stdout.path), within(t.Scratch, a.job.stderr.path)
			t.Spawn, t.As = a.spawner(), a.asUser
		}
		if is {
			t.PIDs = []int{a.family.Main().PID}
		}
		got <- t
		return nil
	})
	if err != nil {
		return reach.Target{Finished: true}, false
	}
	return <-got, is
}

// within is path relative to dir, "" if it is not below it.
func within(dir, path string) string {
	name, err := filepath.Rel(dir, path)
	if path == "" || err != nil || !filepath.IsLocal(name) {
		return ""
	}
	return name
}

// visitorMark names the variable by which a visitor's processes are told from
// the job's.
const visitorMark = "_CONDOR_VISITOR"

// spawner starts processes for visitors: as the job is run and under its limits,
// but as families of their own, for the job goes on when a visitor leaves. It is nil
// while there is no job to be beside.
func (a *activation) spawner() func(host.SpawnSpec) (host.Family, error) {
	job := a.family
	if job == nil {
		return nil
	}
	return func(spec host.SpawnSpec) (host.Family, error) {
		spec.Marker = visitorMark + "=" + strconv.FormatUint(rand.Uint64(), 36)
		spec.Env = append(slices.Clone(spec.Env), spec.Marker)
		return job.Beside(spec)
	}
}

// do has the activation's goroutine do something.
func (v visitors) do(ctx context.Context, what func() []duty) error {
	select {
	case v.s.a.calls <- what:
		return nil
	case <-v.s.a.over:
		return errs.E("starter.Visit", errs.NotFound, v.s.a.plan.Activation, errors.New("the job is over"))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

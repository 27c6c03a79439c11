// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// visitors are those who come to the starter's command socket.
type visitors struct {
	job     *Job
	shadows shadows

	renewing sync.Mutex // the job's proxy

	mu   sync.Mutex
	info *classad.Ad // what the starter says of itself; nil before it has
}

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

// introduced notes what the starter said of itself: from now on the job can be taken
// up again.
func (v *visitors) introduced(info *classad.Ad) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.info = info
}

// Reconnect hands the conversation over to conn.
func (v *visitors) Reconnect(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) error {
	const op = "starter.Reconnect"
	j := v.job
	v.mu.Lock()
	info := v.info
	v.mu.Unlock()
	if info == nil {
		return errs.E(op, errs.Conflict, j.Plan.Activation, errBusy)
	}
	var answer error
	err := j.do(ctx, func() {
		from, _ := ad.EvalString("ShadowIpAddr", nil)
		switch {
		case j.Activation.Busy():
			answer = errs.E(op, errs.Conflict, j.Plan.Activation, errBusy)
			return
		case v.shadows.replaced(from) && j.conv.caller.Connected():
			// One that is refused ends the claim, with the job of the other;
			// one that is not answered tries again, later and later.
			_ = conn.Close()
			answer = errs.E(op, errs.Conflict, from, errReplaced)
			return
		}
		v.shadows.take(from)
		// An answer fits into what the system keeps for a connection: it is
		// written at once.
		if answer = reach.ReplyReconnect(conn, info); answer == nil {
			j.Activation.TakeUp(func() <-chan struct{} { return j.resume(conn, ad) })
		}
	})
	if err != nil {
		return err
	}
	return answer
}

// do has the activation do something, and waits until it is done.
func (j *Job) do(ctx context.Context, what func()) error {
	done := make(chan struct{})
	if err := j.Activation.Do(ctx, func() { defer close(done); what() }); err != nil {
		return err
	}
	<-done
	return nil
}

// resume goes on with the conversation on conn.
func (j *Job) resume(conn *cedar.Conn, ad *classad.Ad) (lost <-chan struct{}) {
	j.mover.anew.Store(true)
	caller := j.conv.caller
	caller.Replace(conn)
	if v, ok := ad.EvalString("ShadowVersion", nil); ok {
		caller.SetPeerVersion(v)
	}
	where := ad.Clone()
	j.conv.queue.add(func() {
		if err := j.mover.updateFileServer(where); err != nil {
			j.conv.log.Warn("the shadow that came back does not say where files are", "err", err)
		}
	})
	j.conv.log.Info("the shadow is back", "peer", caller.Peer())
	return caller.Lost()
}

// Vacate ends the job.
func (v *visitors) Vacate(ctx context.Context, why string, code, subcode int, soft bool) error {
	leave := protocol.Leave{Manner: protocol.MannerVacate, Asked: "shadow", Reason: why, Code: code, Subcode: subcode}
	if reason.Holds(reason.Code(code), subcode) {
		leave.Manner = protocol.MannerHold
	}
	var o protocol.Order = protocol.HardKill{Leave: leave}
	if soft {
		o = protocol.SoftKill{Leave: leave}
	}
	return v.job.Activation.Do(ctx, func() { v.job.Activation.Order(o) })
}

// Running returns the job for those who look at it.
func (v *visitors) Running() (t reach.Target, is bool) {
	err := v.job.do(context.Background(), func() {
		t, is = v.job.Activation.Target()
		t.Machine = v.job.machine
	})
	if err != nil {
		return reach.Target{Finished: true}, false
	}
	return t, is
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// starts has what run does for an activation done by f, beside the owner: f
// gets the shadow's stream as another process would go on with it.
func (s *station) starts(f func(e ep.StartStarter, conn *cedar.Conn, claim claim.Secret)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starter = func(_ engine.Turn, e ep.StartStarter) {
		if !s.pool.HasShadow(e.Activation) {
			s.t.Errorf("%s has no shadow", e.Activation)
			return
		}
		go func() {
			sh, err := s.pool.Shadow(s.conns, e.Activation)
			if err != nil {
				s.event(ep.StarterFailed{Activation: e.Activation, Err: err})
				return
			}
			conn, err := cedar.Resume(sh.Conn, cedar.Limits{}, sh.Stream)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer conn.Close()
			s.event(ep.StarterStarted{Activation: e.Activation, Proc: host.ProcID{PID: 4711}})
			f(e, conn, sh.Claim)
		}()
	}
}

// event tells the engine what happened, unless the station is gone.
func (s *station) event(ev ep.Event) {
	_ = s.Do(s.conns, func(t engine.Turn) { t.Step(ev) })
}

// over ends an activation as a starter does.
func (s *station) over(act claim.ActivationID) {
	s.event(ep.JobEnded{Activation: act, Exit: ep.Exit{Status: host.ExitStatus{Exited: true}}})
	s.event(ep.StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}})
}

// recordedStarter speaks what the recorded starter said after its activation
// was accepted, on the stream that was handed on. It reports whether it came to
// the end of its job.
func recordedStarter(c *cedartest.Connection, conn *cedar.Conn) (done bool, err error) {
	begun := false
	for i, m := range c.Messages {
		switch {
		case strings.HasPrefix(m.Note, "activation accepted"):
			begun = true
		case !begun:
		case m.Event != "":
			return done, nil
		case m.From == cedartest.Server:
			conn.PutBytes(m.Plaintext)
			if err := conn.EndMessage(); err != nil {
				return done, fmt.Errorf("message %d: %w", i, err)
			}
		default:
			got, err := conn.Rest()
			if err == nil {
				err = conn.EndOfMessage()
			}
			if err != nil {
				return done, fmt.Errorf("message %d: %w", i, err)
			}
			if len(got) == 0 {
				return done, fmt.Errorf("message %d is empty", i)
			}
			done = strings.HasPrefix(m.Note, "job_exit") || strings.HasPrefix(m.Note, "ulog")
		}
	}
	return done, nil
}

// nobodyStarts ends each activation at once, without a word.
func nobodyStarts(s *station) func(ep.StartStarter, *cedar.Conn, claim.Secret) {
	return func(e ep.StartStarter, _ *cedar.Conn, _ claim.Secret) { s.over(e.Activation) }
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// conversation is that of a starter with the shadow of its job. Everything that is
// told goes through one queue, so that the shadow hears it in the order in which it
// happened.
type conversation struct {
	caller   *shadow.Caller // nil until the conversation has begun
	begun    chan struct{}  // closed when it has, or cannot
	queue    queue
	sessions *security.Sessions
	client   *security.Client // opens connections for files, and to the startd
	clock    clock.Clock
	log      *slog.Logger
	claim    shadow.Session // of the claim, as the shadow shares it
	met      time.Time      // when the shadow had told of the job
}

// open takes up the conversation over the connection that came with the plan.
func (v *conversation) open(c *Config) error {
	const op = "starter.shadow"
	defer close(v.begun)
	if c.Socket == nil {
		return errs.E(op, errs.Unsupported, c.Plan.Activation, errors.New("no connection can be handed to this starter"))
	}
	nc, err := c.Socket()
	if err != nil {
		return errs.E(op, errs.Broken, c.Plan.Activation, err)
	}
	conn, err := cedar.Resume(nc, cedar.Limits{}, c.Plan.Shadow.Stream)
	if err != nil {
		_ = nc.Close()
		return errs.E(op, errs.Broken, c.Plan.Activation, err)
	}
	v.caller = shadow.New(conn, shadow.Options{Timeout: c.Plan.Settings.Pool.Wire, Log: v.log, Clock: v.clock})
	return nil
}

// share asks the shadow for the sessions and keeps that for files, whose id it
// returns; "" where the shadow shares none.
func (v *conversation) share(ctx context.Context) (session string, err error) {
	shared, ok, err := v.caller.Sessions(ctx)
	if err != nil || !ok {
		return "", err
	}
	v.claim = shared.Reconnect
	t := shared.Transfer
	v.sessions.Forget(t.ID)
	if _, err := v.sessions.AddShared(t.ID, t.Info, t.Key); err != nil {
		return "", err
	}
	return t.ID, nil
}

// claimSession is the id of the session with which commands to the shadow are opened.
func (v *conversation) claimSession() (string, error) {
	c := v.claim
	if c.ID == "" {
		return "", errs.E("starter.shadow", errs.Unsupported, "", errors.New("the shadow shares no session with which it could be asked"))
	}
	v.sessions.Forget(c.ID)
	_, err := v.sessions.AddShared(c.ID, c.Info, c.Key)
	return c.ID, err
}

// begins tells that the job begins: the shadow writes event 001 and counts
// NumJobStarts. The job does not wait for the answer: what is told later comes
// later.
func (v *conversation) begins() {
	v.queue.add(func() {
		if err := v.caller.BeginExecution(context.Background()); err != nil {
			v.log.Warn("the shadow was not told that the job begins", "err", err)
		}
	})
}

// register tells the shadow how the job is.
func (v *conversation) register(ad *classad.Ad) {
	v.queue.add(func() {
		if err := v.caller.RegisterJob(context.Background(), ad); err != nil {
			v.log.Warn("an update did not reach the shadow", "err", err)
		}
	})
}

// executionExited ends the time that the shadow counts as execution. That of a job
// which goes on after its checkpoint begins anew with its next run.
func (v *conversation) executionExited() {
	if !v.caller.AtLeast(9, 4, 1) {
		return
	}
	event := classad.NewAd()
	event.SetString("EventType", "ActivationExecutionExit")
	v.queue.add(func() {
		if err := v.caller.Notify(context.Background(), event); err != nil {
			v.log.Debug("the shadow was not told that the job has exited", "err", err)
		}
	})
}

// sayHold has the shadow hold the job.
func (v *conversation) sayHold(ctx context.Context, h protocol.Hold) error {
	return v.caller.Log(ctx, shadow.HoldEvent(h.Reason, h.Code, h.Subcode))
}

// close ends the conversation when what is left to be told is told, or ctx ends.
func (v *conversation) close(ctx context.Context) {
	if v.caller == nil {
		return
	}
	if err := v.queue.settled(ctx); err != nil {
		v.log.Warn("the shadow does not listen to what is left to be told", "err", err)
	}
	v.caller.End()
	v.queue.wait()
}

// queue does one thing after the other, in a goroutine of its own while there
// is any.
type queue struct {
	mu   sync.Mutex
	todo []func()
	busy bool
	idle sync.WaitGroup
}

func (q *queue) add(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, do)
	if !q.busy {
		q.busy = true
		q.idle.Go(q.drain)
	}
}

func (q *queue) drain() {
	for {
		q.mu.Lock()
		if len(q.todo) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		do := q.todo[0]
		q.todo = q.todo[1:]
		q.mu.Unlock()
		do()
	}
}

// settled waits until all that was added so far is done, or ctx ends.
func (q *queue) settled(ctx context.Context) error {
	done := make(chan struct{})
	q.add(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *queue) wait() { q.idle.Wait() }

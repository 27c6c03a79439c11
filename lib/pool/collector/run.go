// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	firstPause = time.Second      // before a collector is tried again for the first time
	goodFor    = 10 * time.Second // a connection that lasted so long was a good one
	lastWord   = 20 * time.Second // for a collector that is named no more
)

// run sends until ctx ends, or until all is withdrawn after retire.
func (s *updater) run(ctx context.Context) {
	defer close(s.done)
	var l *link
	defer func() { l.close() }()
	if s.after != nil {
		select {
		case <-s.after:
		case <-ctx.Done():
		}
	}
	failures := 0
	var r round
	for ctx.Err() == nil {
		u, retiring := s.next()
		if u == nil {
			s.rounded(&r)
			s.complete()
			if retiring {
				return
			}
		}
		if l != nil && u != nil && !retiring && s.posts(l.to) != (l.post != nil) {
			l.close() // the settings have changed
			l = nil
		}
		if l != nil && u != nil && s.moved(l) {
			l.close()
			l = nil
			s.updates.queue.again(s) // it knows nothing
		}
		var err error
		switch {
		case l.gone():
			err = errs.E("collector.send", errs.Transient, s.to.Text, io.EOF)
		case u == nil:
			s.rest(ctx, l)
			continue
		case l == nil:
			l, err = s.connect(ctx, u.command, retiring)
		}
		if err == nil {
			r.begin()
			err = s.send(ctx, l, u)
		}
		if err == nil {
			r.count++
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.broke(l, err)
		if l != nil {
			if time.Since(l.since) >= goodFor {
				failures = 0
			}
			l.close()
			l = nil
			s.updates.queue.again(s) // it may have forgotten our ads
		}
		if !retiring && l == nil && errs.Is(err, errs.Denied) && s.seekToken(ctx) && !s.trusting {
			s.trusting, failures = true, 0
			continue
		}
		failures++
		if retiring || !s.pause(ctx, failures) {
			return
		}
	}
}

// round is a number of messages without a pause.
type round struct {
	began time.Time
	count int
}

func (r *round) begin() {
	if r.count == 0 {
		r.began = time.Now()
	}
}

// rest waits until there may be something to do.
func (s *updater) rest(ctx context.Context, l *link) {
	var lost chan struct{}
	if l != nil {
		lost = l.lost
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-lost:
	}
}

// pause waits before the next attempt: twice as long after each failure, and
// not at the same time as others. It returns false when ctx ended, and early
// when the updater retires.
func (s *updater) pause(ctx context.Context, failures int) bool {
	d := s.updates.settings.Load().Pause
	if shift := failures - 1; shift < 20 {
		d = min(d, firstPause<<shift)
	}
	return s.wait(ctx, d/2+time.Duration(s.updates.cfg.Rand()*float64(d)))
}

// wait is pause with its length.
func (s *updater) wait(ctx context.Context, d time.Duration) bool {
	if s.leaving() { // retire came while it did something else
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-s.wake:
			if s.leaving() {
				return true
			}
		}
	}
}

// rounded notes that the queue is empty.
func (s *updater) rounded(r *round) {
	if r.count == 0 {
		return
	}
	took, count := time.Since(r.began), r.count
	r.count = 0
	s.mu.Lock()
	s.status.LastTook = took
	s.mu.Unlock()
	s.log.Debug("collector told", "messages", count, "took", took)
}

// complete tells, once, that a collector was sent all ads. The queue is empty: that
// says so only when all ads were put into it, which takes several turns of the
// engine's owner where there are many.
func (s *updater) complete() {
	s.mu.Lock()
	sent := s.status.Updates > 0
	s.mu.Unlock()
	if !sent || !s.updates.made.Load() {
		return
	}
	s.updates.updated.Do(func() {
		if s.updates.cfg.Updated != nil {
			s.updates.cfg.Updated()
		}
	})
}

// broke notes a failure. One that repeats is a warning once.
func (s *updater) broke(l *link, err error) {
	s.mu.Lock()
	was := s.status.Connected
	s.status.Connected, s.status.Err = false, err
	s.status.Failures++
	if was {
		s.status.Since = s.updates.cfg.Clock.Now().Wall
	}
	level := slog.LevelWarn
	if text := err.Error(); text == s.last {
		level = slog.LevelDebug
	} else {
		s.last = text
	}
	s.mu.Unlock()
	message := "collector cannot be reached"
	if l != nil {
		message = "connection to the collector lost"
	}
	s.log.Log(context.Background(), level, message, "err", err)
}

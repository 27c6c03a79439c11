// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// Poster sends commands to one daemon over UDP; *security.Datagrams is one.
type Poster interface {
	// Send sends a command. That it does not fail does not say that anybody got
	// it.
	Send(ctx context.Context, command int, payload func(*cedar.Conn)) error
	// Encrypted reports whether commands are encrypted.
	Encrypted() bool
	// PeerVersion returns the daemon's $CondorVersion string, "" if unknown.
	PeerVersion() string
	Close() error
}

// Config is what Updates are made of. Post, AdminCommands, Updated and StoreToken may
// be nil.
type Config struct {
	Owner    engine.Owner
	Ads      *ads.Source
	Open     directory.Opener
	Sessions *security.Sessions
	// Post begins to send a daemon commands over UDP, with this one first. An
	// error of kind Unsupported sends them over TCP. Nil always does.
	Post func(ctx context.Context, to cedar.Sinful, command int) (Poster, error)
	// Start is when the daemon began, in Unix seconds.
	Start int64
	// AdminCommands are the commands at the level ADMINISTRATOR, for peers to whom
	// the collector gives that right. It is called once, when the first ad is made.
	// Nil gives the right to no peer.
	AdminCommands func() []int
	// Updated is called once that a collector has been sent all ads.
	Updated func()
	// StoreToken keeps a token that a collector has given us, where the next
	// authentication finds it, and says in which file. Nil asks for none.
	StoreToken func(token string) (path string, err error)

	Clock clock.Clock
	Rand  func() float64 // from [0, 1), for the spread of attempts
	Log   *slog.Logger
	// ReadFile reads the address files of daemons of this machine; see
	// directory.AddressFiles.
	ReadFile func(path string) ([]byte, error)
}

// Updates send the ads of the slots and of the daemon to collectors. All methods but Perform may be called from
// any goroutine.
type Updates struct {
	cfg       Config
	log       *slog.Logger
	settings  atomic.Pointer[Settings]
	queue     updateQueue
	updated   sync.Once
	made      atomic.Bool // every ad was made and queued once
	admin     security.Administration
	adminOnce sync.Once
}

// NewUpdates makes Updates. Nothing is sent before Run, and before the engine says that
// updates are due (ep.UpdateDue without a slot).
func NewUpdates(cfg Config, s Settings) *Updates {
	u := &Updates{cfg: cfg, log: cfg.Log}
	u.admin.Sessions, u.admin.Clock, u.admin.Start = cfg.Sessions, cfg.Clock, cfg.Start
	u.admin.Address = cfg.Ads.Address
	u.settings.Store(&s)
	u.queue.init()
	u.queue.updaters = u.updatersFor(&s, nil)
	return u
}

// Perform sees every effect of the engine, in order and in the goroutine that
// owns it. It never blocks.
func (u *Updates) Perform(eff ep.Effect) {
	switch e := eff.(type) {
	case ep.UpdateDue:
		u.queue.due(e.Slot)
	case ep.AdChanged:
		u.queue.changed(e.Slot)
	case ep.ClaimIDChanged:
		u.queue.changed(e.Slot)
	case ep.AdWithdrawn:
		u.queue.withdrawn(e.Slot)
	}
}

// Reconfigure puts new settings in force: collectors that are named no more
// are told that our ads are gone.
func (u *Updates) Reconfigure(s Settings) {
	u.settings.Store(&s)
	u.queue.reconfigure(u, &s)
}

// FindCollector returns where a collector is by the settings in force.
func (u *Updates) FindCollector(at cedar.Sinful) (cedar.Sinful, error) {
	return u.settings.Load().Files.FindCollector(at, u.cfg.ReadFile)
}

// Flush has what changed sent without waiting for more.
func (u *Updates) Flush() { engine.Wake(u.queue.now) }

// administration returns the capability to be sent now, "" for none.
func (u *Updates) administration() string {
	if u.cfg.AdminCommands == nil || !u.settings.Load().Administration {
		return ""
	}
	u.adminOnce.Do(func() {
		u.admin.Commands = slices.Sorted(slices.Values(u.cfg.AdminCommands()))
	})
	c, err := u.admin.Capability()
	if err != nil {
		u.log.Error("no session for remote administration", "err", err)
	}
	return c.Reveal()
}

// Run sends updates until ctx ends, and returns when all that was
// begun has stopped.
func (u *Updates) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	start := func() {
		u.queue.mu.Lock()
		defer u.queue.mu.Unlock()
		for _, s := range u.queue.updaters {
			s.once.Do(func() { s.started = true; wg.Go(func() { s.run(ctx) }) })
		}
	}
	start()
	wg.Go(func() { u.advertise(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.queue.rerun:
			start()
		}
	}
}

// Withdraw invalidates our ads at all collectors. It returns when the
// invalidations are sent, or when ctx ends; nothing is sent afterwards. Run must still
// be running.
func (u *Updates) Withdraw(ctx context.Context) error {
	n := &u.queue
	n.mu.Lock()
	n.ended = true
	updaters := slices.Clone(n.updaters)
	for _, s := range updaters {
		s.retire(n.address)
	}
	n.mu.Unlock()
	var late []string
	for _, s := range updaters {
		select {
		case <-s.done:
		case <-ctx.Done():
			late = append(late, s.to.Text)
		}
	}
	if len(late) > 0 {
		return errs.E("collector.Withdraw", errs.Expired, strings.Join(late, " "), ctx.Err())
	}
	return nil
}

// Status says how things are with each collector.
func (u *Updates) Status() []Status {
	u.queue.mu.Lock()
	updaters := slices.Clone(u.queue.updaters)
	u.queue.mu.Unlock()
	all := make([]Status, len(updaters))
	for i, s := range updaters {
		s.mu.Lock()
		all[i] = s.status
		all[i].Pending = len(s.pending)
		s.mu.Unlock()
	}
	return all
}

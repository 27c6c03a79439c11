// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/admin"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Config is what a Pool is made of. Owner, Open, Sessions and Address must be
// set; what a nil means of the others stands in the packages that they are for.
type Config struct {
	Owner    engine.Owner
	Open     directory.Opener
	Sessions *security.Sessions
	// Address is where we are reached. It may change, as behind a broker.
	Address func() cedar.Sinful
	// Start is when the daemon began, in Unix seconds, and Problems what could
	// not be made of the machine then.
	Start    int64
	Problems []slot.Problem

	// For collectors and those who ask for ads.
	Post          func(ctx context.Context, to cedar.Sinful, command int) (collector.Poster, error)
	AdminCommands func() []int
	Updated       func()
	StoreToken    func(token string) (path string, err error)
	History       func(ctx context.Context, q collector.OldJobs, found func(*classad.Ad) bool) (malformed int64, err error)
	Self          func() (ads.Self, error)
	Duty          func() ads.DutyCycle

	// For claims.
	Admit func(ctx context.Context, id slot.ID, job *classad.Ad, nc net.Conn) error

	// For administrators, and for the keyboard.
	Mover   *admin.Mover
	Touched func()

	Clock clock.Clock    // nil: clock.System
	Rand  func() float64 // from [0, 1), for the spread of attempts; nil: math/rand
	Log   *slog.Logger   // nil: none
	// ReadFile reads the address files of daemons of this machine, and no file
	// that anybody else has written: what stands in them is believed. Nil reads
	// any file, for tests.
	ReadFile func(path string) ([]byte, error)
}

// Pool is what an Execution Point has to do with its pool. All methods but
// Perform may be called from any goroutine.
type Pool struct {
	owner    engine.Owner
	ads      *ads.Source
	requests *engine.Requests
	updates  *collector.Updates
	queries  *collector.Queries
	claims   *claims.Server
	admin    *admin.Server
}

// New makes a Pool. Nothing is sent before Run, and before the engine says
// that updates are due (ep.UpdateDue without a slot).
func New(cfg Config, s Settings) *Pool {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ReadFile == nil {
		cfg.ReadFile = os.ReadFile
	}
	p := &Pool{owner: cfg.Owner, requests: engine.NewRequests(cfg.Owner)}
	p.ads = ads.New(ads.Config{
		Owner: cfg.Owner, Address: cfg.Address, Start: cfg.Start, Problems: cfg.Problems, Self: cfg.Self, Duty: cfg.Duty, Clock: cfg.Clock, Log: cfg.Log,
	}, s.PrivateNetwork)
	p.updates = collector.NewUpdates(collector.Config{
		Owner: cfg.Owner, Ads: p.ads, Open: cfg.Open, Sessions: cfg.Sessions, Post: cfg.Post, Start: cfg.Start, AdminCommands: cfg.AdminCommands,
		Updated: cfg.Updated, StoreToken: cfg.StoreToken, Clock: cfg.Clock, Rand: cfg.Rand, Log: cfg.Log, ReadFile: cfg.ReadFile,
	}, s.Collector)
	p.queries = collector.NewQueries(collector.QueryConfig{Owner: cfg.Owner, Ads: p.ads, History: cfg.History, Clock: cfg.Clock})
	p.claims = claims.New(claims.Config{
		Owner: cfg.Owner, Requests: p.requests, Ads: p.ads, Open: cfg.Open, Sessions: cfg.Sessions, Admit: cfg.Admit,
		Attached: func(schedd string) { p.admin.Attached(schedd) }, Clock: cfg.Clock, Log: cfg.Log, ReadFile: cfg.ReadFile,
	}, s.Claims)
	p.admin = admin.New(admin.Config{
		Owner: cfg.Owner, Requests: p.requests, Ads: p.ads, LocateStarter: p.claims.LocateStarter, Touched: cfg.Touched, Mover: cfg.Mover, Log: cfg.Log,
	}, s.Admin)
	return p
}

// Perform sees every effect of the engine, in order and in the goroutine that
// owns it, right after the Step that gave it. It never blocks. It reports
// whether the effect was meant for the pool alone: the Reply to a request that
// came from there.
func (p *Pool) Perform(now clock.Instant, eff ep.Effect) bool {
	p.claims.Perform(now, eff) // first: the session of a claim id is there before anybody can know the id
	p.updates.Perform(eff)
	p.admin.Perform(eff)
	if reply, ok := eff.(ep.Reply); ok {
		return p.requests.Deliver(reply)
	}
	return false
}

// Run sends updates and keeps claims alive until ctx ends, and returns when all that
// was begun has stopped.
func (p *Pool) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.updates.Run(ctx) })
	wg.Go(func() { p.claims.Run(ctx) })
	wg.Go(func() { p.admin.Run(ctx) })
	wg.Wait()
}

// Withdraw tells all collectors that our ads are gone. It returns when they
// have been told, or when ctx ends; nothing is sent afterwards. Run must still
// be running.
func (p *Pool) Withdraw(ctx context.Context) error { return p.updates.Withdraw(ctx) }

// Reconfigure puts new settings in force.
func (p *Pool) Reconfigure(s Settings) {
	p.ads.Reconfigure(s.PrivateNetwork)
	p.claims.Reconfigure(s.Claims)
	p.admin.Reconfigure(s.Admin)
	p.updates.Reconfigure(s.Collector)
}

// Commands are the startd's commands.
func (p *Pool) Commands() []listen.Command {
	return slices.Concat(p.queries.Commands(), p.claims.Commands(), p.admin.Commands())
}

// Collectors says how things are with each collector.
func (p *Pool) Collectors() []collector.Status { return p.updates.Status() }

// FindCollector returns where a collector is by the settings in force.
func (p *Pool) FindCollector(at cedar.Sinful) (cedar.Sinful, error) {
	return p.updates.FindCollector(at)
}

// Healthy reports whether the goroutine that owns the engine takes its turns.
func (p *Pool) Healthy(ctx context.Context) error {
	return p.owner.Do(ctx, func(engine.Turn) {})
}

// Address is where we are reached at present, a sinful.
func (p *Pool) Address() string { return p.ads.Address() }

// Complete adds to a slot's ad what the pool is shown besides: where we are and
// since when.
func (p *Pool) Complete(ad *classad.Ad) {
	id := p.ads.Identity()
	id.Complete(ad)
}

// MatchSessions is claims.Server's.
func (p *Pool) MatchSessions() bool { return p.claims.MatchSessions() }

// HasShadow is claims.Server's.
func (p *Pool) HasShadow(act claim.ActivationID) bool { return p.claims.HasShadow(act) }

// Shadow is claims.Server's.
func (p *Pool) Shadow(ctx context.Context, act claim.ActivationID) (claims.Shadow, error) {
	return p.claims.Shadow(ctx, act)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Config is what a Server is made of. Admit and Attached may be nil.
type Config struct {
	Owner    engine.Owner
	Requests *engine.Requests
	Ads      *ads.Source
	Open     directory.Opener
	Sessions *security.Sessions
	// Admit says why the job of the shadow at nc cannot be given to a starter of
	// that slot, nil if it can. It may take its time. Nil admits all.
	Admit func(ctx context.Context, id slot.ID, job *classad.Ad, nc net.Conn) error
	// Attached is called when an access point has taken the slots that it was
	// offered.
	Attached func(schedd string)

	Clock clock.Clock
	Log   *slog.Logger
	// ReadFile reads the address files of daemons of this machine; see
	// directory.AddressFiles.
	ReadFile func(path string) ([]byte, error)
}

// Settings are what a configuration says about claims.
type Settings struct {
	// Collectors are asked where the access point of Attach is, and Files say where
	// daemons of this machine are.
	Collectors []directory.Collector
	Files      directory.AddressFiles
	// Attach says to whom slots are offered without a negotiator.
	Attach Attach
	// WholeClaims says that a partitionable slot may be claimed as a whole.
	WholeClaims bool
	// MatchSessions says that claim ids carry their sessions.
	MatchSessions bool
	// ClearClaims has claim ids sent in clear where a connection does not
	// encrypt; see collector.ClearClaims.
	ClearClaims bool
	// failing is the failure that COALESCE_FAILURE_MODE asks for.
	failing rehearsal
}

// SettingsFrom reads the settings, but for Collectors, Files and ClearClaims. The error
// names everything that is wrong.
func SettingsFrom(c *config.Snapshot) (Settings, error) {
	var s Settings
	var errs [4]error
	s.Attach, errs[0] = attachFrom(c)
	s.WholeClaims, errs[1] = c.Bool("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS")
	s.MatchSessions, errs[2] = c.Bool("SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION")
	failing, err := c.Int("COALESCE_FAILURE_MODE")
	s.failing, errs[3] = rehearsal(failing), err
	return s, errors.Join(errs[:]...)
}

// Server answers those who have claims or want them. All methods but Perform may be
// called from any goroutine.
type Server struct {
	cfg         Config
	log         *slog.Logger
	settings    atomic.Pointer[Settings]
	requests    *engine.Requests
	offers      offers
	keepalives  keepalives
	conns       activationConns
	slotWaiters slotWaiters
	attaching   chan struct{} // the access point to attach to may be another
}

// New makes a Server. Nothing is sent before Run.
func New(cfg Config, set Settings) *Server {
	s := &Server{cfg: cfg, log: cfg.Log, requests: cfg.Requests, attaching: make(chan struct{}, 1)}
	s.settings.Store(&set)
	s.offers.byslot = make(map[slot.ID]string)
	s.keepalives.init()
	s.conns.init()
	s.slotWaiters.init()
	return s
}

// Perform sees every effect of the engine, in order and in the goroutine that
// owns it, before the replies are delivered. It never blocks.
func (s *Server) Perform(now clock.Instant, eff ep.Effect) {
	s.sessionsOf(eff)
	switch e := eff.(type) {
	case ep.AdChanged:
		s.slotWaiters.changed(e.Slot)
	case ep.AdWithdrawn:
		s.slotWaiters.changed(e.Slot)
	case ep.Transitioned:
		if e.Decision.Cause == policy.ByLease {
			s.keepalives.lapse(e.Slot)
		}
	case ep.StartStarter:
		s.keepalives.activated(now, e.Claim, e.Job)
	case ep.ClaimEnded:
		s.claimEnded(e)
	case ep.ClaimMoved:
		s.keepalives.movedTo(e.Claim, e.To)
	case ep.Reply:
		s.keepalives.replied(now, e)
		if e.Activation != "" && s.requests.Waiting(e.Ref) {
			s.conns.begin(e.Activation)
		}
	}
}

// Run asks schedds about their claims and offers slots until ctx ends, and returns when
// all that was begun has stopped.
func (s *Server) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.keepAlive(ctx) })
	wg.Go(func() { s.attach(ctx) })
	wg.Wait()
}

// Reconfigure puts new settings in force, but for WholeClaims, which holds until a restart:
// the engine does not change its own meanwhile, and would refuse what is asked of it.
func (s *Server) Reconfigure(set Settings) {
	set.WholeClaims = s.settings.Load().WholeClaims
	s.settings.Store(&set)
	engine.Wake(s.attaching)
}

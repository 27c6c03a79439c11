// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Chunk is how many ads are made in one turn of the engine's owner.
const Chunk = 64

// Config is what a Source is made of. Owner and Address must be set.
type Config struct {
	Owner engine.Owner
	// Address is where we are reached. It may change, as behind a broker.
	Address func() cedar.Sinful
	// Start is when the daemon began, in Unix seconds, and Problems what could
	// not be made of the machine then.
	Start    int64
	Problems []slot.Problem
	// Self measures the daemon for its own ad; nil leaves that out.
	Self func() (Self, error)
	// Duty says how busy the goroutine that owns the engine is, for all ads; nil
	// leaves that out. It may be called from any goroutine.
	Duty  func() DutyCycle
	Clock clock.Clock
	Log   *slog.Logger
}

// Source makes ads. Its methods may be called from any goroutine.
type Source struct {
	cfg     Config
	log     *slog.Logger
	network atomic.Pointer[string]
	reread  atomic.Int64 // when the configuration was last read, Unix seconds
	self    monitor
}

// New makes a Source. network is PRIVATE_NETWORK_NAME, whose members reach us
// privately.
func New(cfg Config, network string) *Source {
	s := &Source{cfg: cfg, log: cfg.Log}
	s.network.Store(&network)
	s.reread.Store(cfg.Start)
	return s
}

// Reconfigure puts another network in force, and has ads say that the configuration
// was read now.
func (s *Source) Reconfigure(network string) {
	s.reread.Store(s.cfg.Clock.Now().Wall.Unix())
	s.network.Store(&network)
}

// Address is where we are reached at present, a sinful.
func (s *Source) Address() string { return s.cfg.Address().String() }

// Problems are what could not be made of the machine at the start.
func (s *Source) Problems() []slot.Problem { return s.cfg.Problems }

// Identity is what is the same in all ads of one moment.
type Identity struct {
	Address       string
	addressV1     string
	network       string
	start, reread int64
	duty          *DutyCycle
}

// DutyCycle is the share of time, from 0 to 1, during which the goroutine that
// owns the engine does not wait: since the daemon began and during the window of
// the statistics.
type DutyCycle struct{ Whole, Recent float64 }

// Identity is that of now.
func (s *Source) Identity() Identity {
	at := s.cfg.Address()
	id := Identity{Address: at.String(), addressV1: at.AddressV1(), network: *s.network.Load(), start: s.cfg.Start, reread: s.reread.Load()}
	if s.cfg.Duty != nil {
		d := s.cfg.Duty()
		id.duty = &d
	}
	return id
}

// Complete completes the ad of a slot as it is sent and shown: where we are and
// since when. Secrets that got into it by configuration or from a program are
// taken out.
func (id *Identity) Complete(ad *classad.Ad) {
	for _, name := range ad.Names() {
		if classad.IsPrivate(name) {
			ad.Delete(name)
		}
	}
	ad.SetString(AttrMyAddress, id.Address)
	ad.SetString(AttrAddressV1, id.addressV1)
	if id.network != "" {
		ad.SetString(AttrPrivateNetwork, id.network)
	}
	ad.SetInt(AttrStartTime, id.start)
	ad.SetInt(AttrLastReconfig, id.reread)
	if id.duty != nil { // in the ads of slots too, as HTCondor has it
		ad.SetReal(AttrDutyCycle, id.duty.Whole)
		ad.SetReal(AttrRecentDutyCycle, id.duty.Recent)
	}
	if v, _ := ad.EvalString(AttrMyType, nil); v != TypeDaemon {
		ad.SetString(AttrStartdIPAddr, id.Address)
	}
}

// Slots returns the ads of the slots behind last, which it moves, a chunk at
// most.
func (s *Source) Slots(ctx context.Context, last *slot.ID) ([]*classad.Ad, error) {
	var ads []*classad.Ad
	err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		for v := range t.Engine.After(*last) {
			if len(ads) == Chunk {
				break
			}
			*last = v.ID
			ads = append(ads, t.Engine.PublicAd(v.ID))
		}
	})
	if err != nil {
		return nil, err
	}
	id, now := s.Identity(), s.cfg.Clock.Now().Wall.Unix()
	for _, ad := range ads {
		id.Complete(ad)
		ad.SetInt(AttrLastHeardFrom, now)
	}
	return ads, nil
}

// Extras returns the ads of what programs of the owner's have said, without the
// secrets that got into it.
func (s *Source) Extras(ctx context.Context) ([]*classad.Ad, error) {
	var ads []*classad.Ad
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { ads = t.Engine.Extras() }); err != nil {
		return nil, err
	}
	for _, ad := range ads {
		for _, name := range ad.Names() {
			if classad.IsPrivate(name) {
				ad.Delete(name)
			}
		}
	}
	return ads, nil
}

// Daemon returns the ad of the daemon as a whole.
func (s *Source) Daemon(ctx context.Context) (*classad.Ad, error) {
	var ad *classad.Ad
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { ad = t.Engine.DaemonAd(s.cfg.Problems) }); err != nil {
		return nil, err
	}
	id := s.Identity()
	id.Complete(ad)
	s.AddSelf(ad)
	ad.SetInt(AttrLastHeardFrom, s.cfg.Clock.Now().Wall.Unix())
	return ad, nil
}

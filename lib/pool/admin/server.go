// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// Config is what a Server is made of. Touched and Mover may be nil.
type Config struct {
	Owner    engine.Owner
	Requests *engine.Requests
	Ads      *ads.Source
	// LocateStarter answers CA_LOCATE_STARTER: with a result, why, and what the
	// answer has besides.
	LocateStarter func(ctx context.Context, c *listen.Call, ad *classad.Ad) (result, why string, more *classad.Ad, err error)
	// Touched is called when this machine's condor_kbdd reports that a key was
	// pressed. It must not block. Nil ignores it.
	Touched func()
	// Mover carries out moves to another access point; nil refuses them.
	Mover *Mover
	Log   *slog.Logger
}

// Settings are what a configuration says to administrators' requests.
type Settings struct {
	// Schedd is the access point that slots are offered to without a negotiator, ""
	// for none.
	Schedd string
	// Rehome is what the owner says about moving by command.
	Rehome Rehome
}

// SettingsFrom reads the settings.
func SettingsFrom(c *config.Snapshot) (Settings, error) {
	rehome, err := rehomeFrom(c)
	return Settings{Schedd: c.String("STARTD_DIRECT_ATTACH_SCHEDD_NAME"), Rehome: rehome}, err
}

// Server answers administrators. All methods but Perform may be called from any
// goroutine.
type Server struct {
	cfg      Config
	log      *slog.Logger
	settings atomic.Pointer[Settings]
	extras   *classad.Ad // of condor_update_machine_ad; the owner's goroutine's
	moves    moves
}

// New makes a Server.
func New(cfg Config, set Settings) *Server {
	s := &Server{cfg: cfg, log: cfg.Log}
	s.settings.Store(&set)
	s.moves.init()
	return s
}

// Perform sees every effect of the engine, in order and in the goroutine that
// owns it. It never blocks.
func (s *Server) Perform(eff ep.Effect) {
	switch eff.(type) {
	case ep.Transitioned, ep.ClaimEnded:
		engine.Wake(s.moves.emptied)
	}
}

// Attached notes that an access point has taken our slots. It never blocks.
func (s *Server) Attached(schedd string) { s.moves.tell(schedd) }

// Reconfigure puts new settings in force.
func (s *Server) Reconfigure(set Settings) { s.settings.Store(&set) }

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// rehomeName is what the settings of a move are kept under.
const rehomeName = "rehome"

// Rehome is what the owner says about moving to another access point by
// command.
type Rehome struct {
	AllowReboot *classad.Expr // STARTD_REHOME_ALLOW_REBOOT, true of every slot or nothing is rebooted; nil is false
	Reboot      string        // STARTD_REBOOT_COMMAND
}

func rehomeFrom(c *config.Snapshot) (Rehome, error) {
	allow, err := c.Expr("STARTD_REHOME_ALLOW_REBOOT")
	r := Rehome{AllowReboot: allow, Reboot: strings.TrimSpace(c.String("STARTD_REBOOT_COMMAND"))}
	if r.Reboot == "" {
		r.Reboot = "/sbin/reboot"
	}
	return r, err
}

// Mover carries out what moving to another access point needs of the daemon.
type Mover struct {
	// Persist keeps lines of configuration under a name, in place of those
	// kept before; "" takes them back. They are on disk when it returns.
	Persist func(name, lines string) error
	// Reconfigure has the configuration read again soon. It must not block.
	Reconfigure func()
	// Reboot runs a command with all rights that the daemon has, and waits.
	Reboot func(ctx context.Context, command string) error
}

// move is one on its way.
type move struct {
	schedd   string        // "" when it was taken back
	patience time.Duration // until the old home is gone back to, 0: never
	reboot   string        // the command to run once no slot has a claim, "" for none
	drain    string        // the drain that keeps jobs out until then
}

// moves are the moves that are ordered, and what is heard of them.
type moves struct {
	mu      sync.Mutex // one command at a time
	ordered chan move
	emptied chan struct{} // a claim may have been the last one
	arrived chan string   // the access point that has taken our slots
}

func (m *moves) init() {
	m.ordered, m.emptied, m.arrived = make(chan move), make(chan struct{}, 1), make(chan string, 1)
}

// tell notes that an access point has taken our slots.
func (m *moves) tell(schedd string) {
	select {
	case m.arrived <- schedd:
	default: // it is known, or will be at the next offer
	}
}

// rehome has all slots leave for another access point: every claim ends at
// once, and where the slots are offered from now on is kept across restarts. If
// that is asked for and the owner lets it, the machine is rebooted when all
// jobs are gone. With a timeout the old home is gone back to unless the new
// one has taken slots by then.
func (s *Server) rehome(ctx context.Context, c *listen.Call) error {
	ad, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	s.moves.mu.Lock()
	why := s.rehomeBy(ctx, c, ad)
	s.moves.mu.Unlock()
	reply := classad.NewAd()
	reply.SetBool(ads.AttrResult, why == "")
	if why != "" {
		c.Log.Info("rehome refused", "user", c.Request.Peer.User, "why", why)
		reply.SetString(ads.AttrErrorString, why)
	}
	c.Conn.PutAd(reply, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// rehomeBy does what an ad asks for, and says why not.
func (s *Server) rehomeBy(ctx context.Context, c *listen.Call, ad *classad.Ad) (why string) {
	schedd, _ := ad.EvalString("ScheddName", nil)
	home, _ := ad.EvalString("ScheddPool", nil)
	// As the configuration will read them: a move whose name differs by a blank from
	// that of the access point would never arrive, and be taken back.
	schedd, home = strings.TrimSpace(schedd), strings.TrimSpace(home)
	cancel, _ := ad.EvalBool("Cancel", nil)
	reboot, _ := ad.EvalBool("Reboot", nil)
	timeout, _ := ad.EvalInt("RehomeTimeout", nil)
	set, do := s.settings.Load(), s.cfg.Mover
	switch {
	case schedd == "":
		return "ScheddName not specified"
	case !plainSetting(schedd):
		return "ScheddName is not the name of a schedd"
	case !plainSetting(home):
		return "ScheddPool is not the name of a collector"
	case do == nil:
		return "Failed to set persistent config"
	case cancel:
		if err := do.Persist(rehomeName, ""); err != nil {
			c.Log.Warn("the move cannot be taken back", "err", err)
			return "Failed to unset persistent config"
		}
		c.Log.Info("rehome cancelled", "user", c.Request.Peer.User)
		do.Reconfigure()
		return s.order(ctx, move{})
	case strings.EqualFold(schedd, set.Schedd):
		return "Already attached to this schedd"
	}
	if reboot {
		allowed := false
		if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { allowed = t.Engine.AllSlots(set.Rehome.AllowReboot) }); err != nil {
			return err.Error()
		}
		if !allowed {
			return "Reboot on rehome not permitted by STARTD_REHOME_ALLOW_REBOOT"
		}
	}
	lines := "STARTD_DIRECT_ATTACH_SCHEDD_NAME = " + schedd + "\n"
	if home != "" {
		lines += "STARTD_DIRECT_ATTACH_SCHEDD_POOL = " + home + "\n"
	}
	if err := do.Persist(rehomeName, lines); err != nil {
		c.Log.Warn("the new home cannot be kept", "err", err)
		return "Failed to set persistent config"
	}
	c.Log.Info("rehome", "user", c.Request.Peer.User, "schedd", schedd, "pool", home, "reboot", reboot, "timeout", timeout)
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(ep.Rehomed{}) }); err != nil {
		return err.Error()
	}
	m := move{schedd: schedd, patience: time.Duration(min(max(timeout, 0), 1<<31)) * time.Second}
	if reboot {
		m.reboot = set.Rehome.Reboot
		r, err := s.cfg.Requests.Ask(ctx, func(ref ep.Ref) ep.Event {
			return ep.DrainRequested{Ref: ref, How: ep.DrainFast, Reason: "rehome, before the reboot", By: c.Request.Peer.User}
		})
		if err != nil {
			return err.Error()
		}
		m.drain = r.DrainID // none if the machine is drained already, which lets no job in either
	}
	do.Reconfigure()
	return s.order(ctx, m)
}

// plainSetting reports whether text can stand in a setting as it is.
func plainSetting(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) &&
		!strings.ContainsAny(text, "$") && !strings.HasSuffix(text, `\`) && len(text) <= 1024
}

func (s *Server) order(ctx context.Context, m move) (why string) {
	select {
	case s.moves.ordered <- m:
		return ""
	case <-ctx.Done():
		return ctx.Err().Error()
	}
}

// Run sees to what becomes of moves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	var m move
	back := time.NewTimer(time.Hour)
	back.Stop()
	defer back.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-s.moves.ordered:
			back.Stop()
			if next.reboot != "" && next.drain == "" {
				next.drain = m.drain // which is why it got none
			} else {
				s.undrain(ctx, m.drain)
			}
			if m = next; m.patience > 0 {
				back.Reset(m.patience)
			}
		case name := <-s.moves.arrived:
			if m.schedd != "" && name == m.schedd {
				back.Stop()
			}
		case <-back.C:
			if !s.moves.mu.TryLock() {
				back.Reset(time.Second) // another command is carried out, which may take this one's place
				continue
			}
			s.moveBack(ctx, m)
			s.moves.mu.Unlock()
			m = move{}
		case <-s.moves.emptied:
		}
		if m.reboot != "" && s.rebooted(ctx, &m) {
			back.Stop()
		}
	}
}

// moveBack returns to the old home.
func (s *Server) moveBack(ctx context.Context, m move) {
	s.log.Warn("the new home has not taken a slot in time; going back", "schedd", m.schedd, "timeout", m.patience)
	s.undrain(ctx, m.drain)
	if err := s.cfg.Mover.Persist(rehomeName, ""); err != nil {
		s.log.Error("the move cannot be taken back", "err", err)
		return
	}
	s.cfg.Mover.Reconfigure()
}

// undrain lets jobs in again.
func (s *Server) undrain(ctx context.Context, id string) {
	if id == "" {
		return
	}
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(ep.DrainCancelled{ID: id}) }); err != nil && ctx.Err() == nil {
		s.log.Warn("the drain before a reboot cannot be ended", "err", err)
	}
}

// rebooted reboots the machine if no slot has a claim any more, and reports
// whether the command was run. One that fails leaves the EP at work in its new
// home.
func (s *Server) rebooted(ctx context.Context, m *move) bool {
	empty := false
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { empty = t.Engine.Empty() }); err != nil || !empty {
		return false
	}
	command := m.reboot
	m.reboot = ""
	s.log.Warn("all claims have ended; rebooting the machine", "command", command)
	err := errs.E("admin.REHOME", errs.Unsupported, "STARTD_REBOOT_COMMAND", errors.New("nothing here can run it"))
	if s.cfg.Mover.Reboot != nil {
		err = s.cfg.Mover.Reboot(ctx, command)
	}
	if err != nil {
		s.log.Error("the machine was not rebooted", "command", command, "err", fmt.Errorf("STARTD_REBOOT_COMMAND: %w", err))
		s.undrain(ctx, m.drain)
		m.drain = ""
		return false
	}
	s.log.Info("the command to reboot has succeeded", "command", command)
	return true
}

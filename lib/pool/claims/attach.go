// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

const (
	attachPatience = 30 * time.Second
	attachAgain    = 10 * time.Second // at most, after there was nothing to offer
)

// Attach says to which access point slots are offered without a negotiator
// (STARTD_DIRECT_ATTACH_*).
type Attach struct {
	Schedd    string // its name or address, "" for none
	Pool      *cedar.Sinful
	Submitter string // whose jobs alone may have the slots, "" for all
	Interval  time.Duration
}

// attachFrom reads where slots are offered. The submitter has a name in the
// manual and another in HTCondor's code.
func attachFrom(c *config.Snapshot) (Attach, error) {
	a := Attach{Schedd: c.String("STARTD_DIRECT_ATTACH_SCHEDD_NAME"), Submitter: c.String("STARTD_DIRECT_ATTACH_SUBMITTER_NAME")}
	if a.Submitter == "" {
		a.Submitter = c.String("STARTD_DIRECT_ATTACH_SCHEDD_SUBMITTER")
	}
	var bad []error
	if text := c.String("STARTD_DIRECT_ATTACH_SCHEDD_POOL"); text != "" {
		port, err := c.Int("COLLECTOR_PORT")
		at, err2 := directory.ParseCollector(text, int(port))
		if err2 != nil {
			err2 = errs.E("claims.SettingsFrom", errs.Invalid, "STARTD_DIRECT_ATTACH_SCHEDD_POOL", err2)
		}
		a.Pool = &at
		bad = append(bad, err, err2)
	}
	var err error
	a.Interval, err = c.Duration("STARTD_DIRECT_ATTACH_INTERVAL")
	a.Interval = max(a.Interval, time.Second)
	return a, errors.Join(append(bad, err)...)
}

// attach offers slots to an access point until ctx ends. Without one it waits
// for a configuration that has one.
func (s *Server) attach(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.attaching:
		}
		a := s.settings.Load().Attach
		if a.Schedd == "" {
			timer.Stop()
			continue
		}
		n, err := s.offerTo(ctx, a)
		wait := a.Interval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != last:
			last = err.Error()
			s.log.Warn("slots could not be offered to the access point", "schedd", a.Schedd, "err", err)
		case err == nil && n == 0:
			wait = min(wait, attachAgain)
		case err == nil:
			last = ""
			if s.cfg.Attached != nil {
				s.cfg.Attached(a.Schedd)
			}
			s.log.Info("slots were offered to the access point", "schedd", a.Schedd, "slots", n)
		}
		timer.Reset(wait)
	}
}

// offer is a slot that may be claimed at once.
type offer struct {
	id claim.ID
	ad *classad.Ad
}

// offerTo offers all unclaimed slots, and returns how many there were.
func (s *Server) offerTo(ctx context.Context, a Attach) (int, error) {
	const op = "claims.DIRECT_ATTACH"
	var all []offer
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		for v := range t.Engine.Views() {
			if v.Pair.State == policy.Unclaimed && !v.NextClaim.IsZero() {
				all = append(all, offer{v.NextClaim, t.Engine.PublicAd(v.ID)})
			}
		}
	}); err != nil || len(all) == 0 {
		return 0, err
	}
	id := s.cfg.Ads.Identity()
	for _, o := range all {
		id.Complete(o.ad)
	}
	ctx, cancel := context.WithTimeout(ctx, attachPatience)
	defer cancel()
	to, err := s.findSchedd(ctx, a)
	if err != nil {
		return 0, err
	}
	conn, _, err := s.cfg.Open.Command(ctx, to, command.DirectAttach, security.Options{})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if !conn.Encrypted() && !s.settings.Load().ClearClaims {
		return 0, errs.E(op, errs.Denied, a.Schedd, errors.New("the connection is not encrypted, and claim ids are not told in clear: "+
			"want SEC_CLIENT_ENCRYPTION = REQUIRED here and at the access point, or NEVER here to have them sent in clear"))
	}
	release := conn.Bind(ctx)
	defer release()
	head := classad.NewAd()
	head.SetInt("NumAds", int64(len(all)))
	if a.Submitter != "" {
		head.SetString("Submitter", a.Submitter)
	}
	conn.PutAd(head, cedar.AdOptions{})
	for _, o := range all {
		conn.PutSecret(claim.Secret(o.id.Wire()))
		conn.PutAd(o.ad, cedar.AdOptions{NoPrivate: true})
	}
	if err := conn.EndMessage(); err != nil {
		return 0, err
	}
	reply, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return 0, err
	}
	if n, ok := reply.EvalInt("ActionResult", nil); !ok || n != command.OK {
		return 0, errs.E(op, errs.Denied, a.Schedd, fmt.Errorf("the access point does not take slots: ActionResult is %d", n))
	}
	return len(all), nil
}

// findSchedd returns where an access point is: the schedd of this machine shows
// it in a file, and others are known to the collectors of their own pool or of
// ours.
func (s *Server) findSchedd(ctx context.Context, a Attach) (cedar.Sinful, error) {
	set := s.settings.Load()
	var named []cedar.Sinful
	var bad []error
	if a.Pool != nil {
		named = append(named, *a.Pool)
	} else {
		at, err := set.Files.FindSchedd(a.Schedd, s.cfg.ReadFile)
		if err == nil {
			return at, nil
		}
		if !errs.Is(err, errs.NotFound) {
			bad = append(bad, err)
		}
		for _, c := range set.Collectors {
			named = append(named, c.At)
		}
	}
	var ask []cedar.Sinful
	for _, c := range named {
		at, err := set.Files.FindCollector(c, s.cfg.ReadFile)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		ask = append(ask, at)
	}
	at, err := directory.Lookup(ctx, s.cfg.Open, ask, directory.AccessPoint, a.Schedd)
	if err != nil {
		return cedar.Sinful{}, errors.Join(append([]error{err}, bad...)...)
	}
	return at, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/binary"
	mathbits "math/bits"
	"net/netip"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
)

// tokenRule approves what comes from a network.
type tokenRule struct {
	net        netip.Prefix
	since, end time.Time
}

// addRule is DC_AUTO_APPROVE_TOKEN_REQUEST.
func (d *TokenRequests) addRule(c *listen.Call, ad *classad.Ad, now time.Time) (*classad.Ad, error) {
	text, _ := word(ad, "Subnet")
	seconds, _ := ad.EvalInt("Lifetime", nil)
	if seconds <= 0 {
		return nil, tokenRefusal{-1, "Auto-approval rule lifetimes must be greater than zero."}
	}
	network, ok := parseNetwork(text)
	if !ok {
		return nil, tokenRefusal{-2, "Auto-approval rule netblock invalid."}
	}
	if len(d.rules) >= mostTokenRules {
		return nil, tokenRefusal{-3, "Too many auto-approval rules in the system."}
	}
	if _, err := d.key(); err != nil {
		return nil, err
	}
	most := d.duration("TOKEN_REQUEST_AUTO_APPROVE_MAX_LIFETIME", longestRule)
	life := min(time.Duration(min(seconds, 1<<31))*time.Second, most)
	d.rules = append(d.rules, tokenRule{net: network, since: now, end: now.Add(life)})
	c.Log.Info("tokens are given by a rule", "network", network.String(), "for", life, "by", c.Request.Peer.User)
	for _, r := range d.requests {
		if _, ok := d.ruled(r, now); !ok {
			continue
		}
		if err := d.issue(r, now); err != nil {
			r.failed = true
			return nil, err
		}
		c.Log.Info("token request approved by a rule", "request", r.id, "user", r.user, "asker", r.asker, "levels", r.levels)
	}
	out := classad.NewAd()
	out.SetInt("ErrorCode", 0)
	return out, nil
}

// parseNetwork reads a network: 192.0.2.0/24, 192.0.2.0/255.255.255.0, 192.0.2.*
// or 2001:db8::/32.
func parseNetwork(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	if start, ok := strings.CutSuffix(text, ".*"); ok {
		n := strings.Count(start, ".") + 1
		a, err := netip.ParseAddr(start + strings.Repeat(".0", 4-min(n, 4)))
		return netip.PrefixFrom(a, 8*n), err == nil && a.Is4() && n < 4
	}
	address, mask, _ := strings.Cut(text, "/")
	a, err := netip.ParseAddr(address)
	m, merr := netip.ParseAddr(mask)
	if err != nil || merr != nil || !a.Is4() || !m.Is4() {
		return netip.Prefix{}, false
	}
	four := m.As4()
	bits := binary.BigEndian.Uint32(four[:])
	ones := 32 - mathbits.Len32(^bits)
	if bits != ^uint32(0)<<(32-ones) { // not ones and then zeros
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, ones).Masked(), true
}

// ruled finds a rule that approves a request: of a daemon that wants to
// advertise itself and nothing else, made at most a minute before the rule.
func (d *TokenRequests) ruled(r *wantedToken, now time.Time) (tokenRule, bool) {
	if !d.pending(r, now) || !strings.HasPrefix(r.user, "condor@") || len(r.levels) == 0 {
		return tokenRule{}, false
	}
	for _, level := range r.levels {
		if level != "ADVERTISE_STARTD" && level != "ADVERTISE_SCHEDD" && level != "ADVERTISE_MASTER" {
			return tokenRule{}, false
		}
	}
	for _, rule := range d.rules {
		if rule.net.Contains(r.from) && !r.at.After(rule.end) && !r.at.Before(rule.since.Add(-time.Minute)) {
			return rule, true
		}
	}
	return tokenRule{}, false
}

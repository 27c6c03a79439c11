// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
)

// list is DC_LIST_TOKEN_REQUEST: an ad for each request that waits, and one
// behind them.
func (d *TokenRequests) list(ctx context.Context, c *listen.Call) error {
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	last := classad.NewAd()
	last.SetInt("ErrorCode", 0)
	last.SetInt("Owner", 0)
	if !d.enabled() {
		refused(last, tokensOff)
	}
	only, _ := ad.EvalString("RequestId", nil)
	for _, one := range d.waiting(ctx, c.Request, only) {
		c.Conn.PutAd(one, cedar.AdOptions{})
		if err := c.Conn.EndMessage(); err != nil {
			return err
		}
	}
	c.Conn.PutAd(last, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// waiting describes the requests that wait and that a peer may see.
func (d *TokenRequests) waiting(ctx context.Context, who *security.Request, only string) []*classad.Ad {
	if !d.enabled() {
		return nil
	}
	admin := d.Allowed(ctx, security.Administrator, who)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Clock.Now().Wall
	d.expire(now)
	var all []*classad.Ad
	for _, r := range d.requests {
		if !d.pending(r, now) || only != "" && only != r.id || !admin && r.user != who.Peer.User {
			continue
		}
		one := classad.NewAd()
		one.SetString("RequestId", r.id)
		one.SetString("ClientId", r.client)
		one.SetString("AuthenticatedIdentity", r.asker)
		one.SetString("RequestedIdentity", r.user)
		one.SetString("PeerLocation", r.from.String())
		if len(r.levels) > 0 {
			one.SetString("LimitAuthorization", strings.Join(r.levels, ","))
		}
		if r.lifetime >= 0 {
			one.SetInt("TokenLifetime", int64(r.lifetime/time.Second))
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *classad.Ad) int {
		x, _ := a.EvalString("RequestId", nil)
		y, _ := b.EvalString("RequestId", nil)
		return strings.Compare(x, y)
	})
	return all
}

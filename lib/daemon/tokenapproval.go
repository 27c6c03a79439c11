// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
)

// decide is DC_APPROVE_TOKEN_REQUEST.
func (d *TokenRequests) decide(ctx context.Context, c *listen.Call) error {
	admin := d.enabled() && d.Allowed(ctx, security.Administrator, c.Request)
	return d.answer(func(c *listen.Call, ad *classad.Ad, now time.Time) (*classad.Ad, error) {
		return d.approve(c, ad, now, admin)
	})(ctx, c)
}

// approve approves a request. A peer that is no administrator may approve what gives
// no more than it has itself.
func (d *TokenRequests) approve(c *listen.Call, ad *classad.Ad, now time.Time, admin bool) (*classad.Ad, error) {
	id, ok := word(ad, "RequestId")
	if !ok {
		return nil, tokenRefusal{1, "Request ID not provided."}
	}
	client, ok := word(ad, "ClientId")
	if !ok {
		return nil, tokenRefusal{1, "Client ID not provided."}
	}
	r := d.requests[id]
	if r == nil || r.client != client {
		return nil, tokenRefusal{5, "Request unknown."}
	}
	if !d.pending(r, now) {
		return nil, tokenRefusal{5, "Request in incorrect state."}
	}
	if !admin {
		if err := within(r, c.Request.Peer, now); err != nil {
			return nil, err
		}
	}
	if err := d.issue(r, now); err != nil {
		r.failed = true
		return nil, err
	}
	c.Log.Info("token request approved", "request", r.id, "user", r.user, "asker", r.asker, "levels", r.levels, "by", c.Request.Peer.User)
	out := classad.NewAd()
	out.SetInt("ErrorCode", 0)
	return out, nil
}

// within says why a peer may not approve a request, nil if it gives nothing that
// the peer does not have.
func within(r *wantedToken, p security.Peer, now time.Time) error {
	if r.user != p.User {
		return tokenRefusal{6, "Insufficient privilege to approve request."}
	}
	if p.Limited {
		has := func(name string) bool {
			l, known := command.ParseLevel(name)
			return known && slices.Contains(p.Limit, l)
		}
		if len(r.levels) == 0 || slices.ContainsFunc(r.levels, func(name string) bool { return !has(name) }) {
			return tokenRefusal{7, "Insufficient privilege to approve request (scope restricted)."}
		}
	}
	if p.Token != nil && !p.Token.Expires.IsZero() && (r.lifetime < 0 || now.Add(r.lifetime).After(p.Token.Expires)) {
		return tokenRefusal{8, "Insufficient privilege to approve request (lifetime)."}
	}
	return nil
}

// key is the one that signs.
func (d *TokenRequests) key() (authn.SigningKey, error) {
	name := d.Config().String("SEC_TOKEN_ISSUER_KEY")
	if name == "" {
		name = authn.PoolKey
	}
	key, err := d.Key(name)
	if err != nil {
		return key, tokenRefusal{4, "Server does not have a signing key configured."}
	}
	return key, nil
}

// issue signs the token of a request.
func (d *TokenRequests) issue(r *wantedToken, now time.Time) error {
	key, err := d.key()
	if err != nil {
		return err
	}
	token, err := key.Issue(authn.Order{Issuer: d.Config().String("TRUST_DOMAIN"), Subject: r.user, Levels: r.levels, Lifetime: max(r.lifetime, 0)}, now)
	if err != nil {
		return tokenRefusal{4, "The token cannot be signed."}
	}
	r.token, r.approved = token.Text(), true
	r.at = now // from now on it has to be fetched
	return nil
}

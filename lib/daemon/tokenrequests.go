// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
)

const (
	mostTokenRequests = 1000
	mostOfAddress     = 100 // of them, for one address, or one /64 of IPv6: no machine takes all places
	mostTokenRules    = 100
	mostTokenWords    = 512       // bytes of a name or a list that a peer sends
	longestRule       = time.Hour // TOKEN_REQUEST_AUTO_APPROVE_MAX_LIFETIME if it is not set
	tokenRequestLife  = time.Hour // SEC_TOKEN_REQUEST_LIFETIME if it is not set
	pollsASecond      = 10        // of all clients: the number of a request must not be guessed
)

// What is wrong with a request, as HTCondor numbers it.
var (
	tokensOff     = tokenRefusal{44, "Token request disabled."}
	tokenUnknown  = tokenRefusal{3, "Request ID is not known."}
	tokenClient   = tokenRefusal{3, "Client ID is incorrect."}
	tokenFailed   = tokenRefusal{4, "Request failed."}
	tokenExpired  = tokenRefusal{5, "Request has expired."}
	tokenInClear  = tokenRefusal{7, "Request to server was not encrypted."}
	tokenTooOften = tokenRefusal{5, "Request rate limit hit."}
)

// tokenRefusal is an answer that says no.
type tokenRefusal struct {
	code int64
	text string
}

func (r tokenRefusal) Error() string { return r.text }

// TokenRequests takes requests for tokens that the keys of this machine sign, and
// has administrators approve them one by one or by a rule for a network. It is
// safe for concurrent use. What it holds is bounded, and gone with the process.
type TokenRequests struct {
	// Config returns the configuration in force.
	Config func() *config.Snapshot
	// Key returns the signing key of a name.
	Key func(id string) (authn.SigningKey, error)
	// Allowed decides whether a peer may act at a level. It may have to look
	// names up until ctx ends, and is not called while mu is held.
	Allowed func(ctx context.Context, l security.Level, r *security.Request) bool
	Clock   clock.Clock

	mu       sync.Mutex
	requests map[string]*wantedToken // by their numbers
	rules    []tokenRule
	polls    float64 // that may be made at polled
	polled   time.Time
}

// wantedToken is one request.
type wantedToken struct {
	id, client       string
	user             string // whose token it is to be
	asker            string // the user of the peer that asks
	from             netip.Addr
	levels           []string
	lifetime         time.Duration // negative: as long as the key
	at               time.Time
	token            authn.Secret // once it is approved
	approved, failed bool
}

// Commands returns the rows of the table.
func (d *TokenRequests) Commands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.DCStartTokenRequest:       d.answer(d.start),
		command.DCFinishTokenRequest:      d.answer(d.finish),
		command.DCListTokenRequest:        d.list,
		command.DCApproveTokenRequest:     d.decide,
		command.DCAutoApproveTokenRequest: d.answer(d.addRule),
	})
}

// enabled is SEC_ENABLE_TOKEN_REQUEST.
func (d *TokenRequests) enabled() bool {
	on, err := d.Config().Bool("SEC_ENABLE_TOKEN_REQUEST")
	return err == nil && on
}

// answer reads an ad and answers with one.
func (d *TokenRequests) answer(do func(c *listen.Call, ad *classad.Ad, now time.Time) (*classad.Ad, error)) listen.Handler {
	return func(_ context.Context, c *listen.Call) error {
		ad, err := c.Conn.Ad(cedar.AdOptions{})
		if err == nil {
			err = c.Conn.EndOfMessage()
		}
		if err != nil {
			return err
		}
		var out *classad.Ad
		if !d.enabled() {
			err = tokensOff
		} else {
			d.mu.Lock()
			now := d.Clock.Now().Wall
			d.expire(now)
			out, err = do(c, ad, now)
			d.mu.Unlock()
		}
		if out == nil {
			out = classad.NewAd()
		}
		if err != nil {
			refused(out, err)
		}
		c.Conn.PutAd(out, cedar.AdOptions{})
		return c.Conn.EndMessage()
	}
}

// refused puts what is wrong into an answer.
func refused(out *classad.Ad, err error) {
	code := int64(4)
	var r tokenRefusal
	if errors.As(err, &r) {
		code = r.code
	}
	out.SetInt("ErrorCode", code)
	out.SetString("ErrorString", err.Error())
}

// duration reads a knob that is not in the table of knobs, in seconds, as an integer
// expression; unset is for one that is not set, or that is no such thing.
func (d *TokenRequests) duration(knob string, unset time.Duration) time.Duration {
	s, ok := d.Config().Lookup(knob)
	if !ok || strings.TrimSpace(s.Value) == "" {
		return unset
	}
	if t, err := d.Config().Duration(knob); err == nil && t >= 0 {
		return t
	}
	return unset
}

// expire forgets what is too old. The caller holds mu.
func (d *TokenRequests) expire(now time.Time) {
	life := d.duration("SEC_TOKEN_REQUEST_LIFETIME", tokenRequestLife)
	for id, r := range d.requests {
		if now.Sub(r.at) > life+time.Hour || r.approved && now.Sub(r.at) > life {
			delete(d.requests, id)
		}
	}
	d.rules = slices.DeleteFunc(d.rules, func(r tokenRule) bool { return r.end.Before(now) })
}

// pending reports whether a request is not decided and not too old.
func (d *TokenRequests) pending(r *wantedToken, now time.Time) bool {
	return !r.approved && !r.failed && now.Sub(r.at) <= d.duration("SEC_TOKEN_REQUEST_LIFETIME", tokenRequestLife)
}

// word reads a text that a peer sent.
func word(ad *classad.Ad, name string) (string, bool) {
	s, ok := ad.EvalString(name, nil)
	if !ok || s == "" || len(s) > mostTokenWords || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", false
	}
	return s, true
}

// start is DC_START_TOKEN_REQUEST.
func (d *TokenRequests) start(c *listen.Call, ad *classad.Ad, now time.Time) (*classad.Ad, error) {
	client, ok := word(ad, "ClientId")
	if !ok {
		return nil, tokenRefusal{2, "No client ID provided."}
	}
	user, ok := word(ad, "User")
	if !ok || strings.ContainsAny(user, " ,\t") {
		return nil, tokenRefusal{2, "No identity request."}
	}
	levels, err := d.levels(ad)
	if err != nil {
		return nil, err
	}
	lifetime := time.Duration(-1)
	if n, ok := ad.EvalInt("TokenLifetime", nil); ok && n >= 0 && n < 1<<31 {
		lifetime = time.Duration(n) * time.Second
	}
	switch most, err := d.Config().Duration("SEC_ISSUED_TOKEN_EXPIRATION"); {
	case err != nil:
		return nil, tokenRefusal{4, "SEC_ISSUED_TOKEN_EXPIRATION is no number of seconds."} // and not: tokens without an end
	case most > 0 && (lifetime < 0 || lifetime > most):
		lifetime = most
	}
	if len(d.requests) >= mostTokenRequests {
		return nil, tokenRefusal{3, "Too many requests in the system."}
	}
	if from := c.Addr.Addr().Unmap(); d.requestsOf(from) >= mostOfAddress {
		return nil, tokenRefusal{3, "Too many requests from " + from.String() + " in the system."}
	}
	number, err := rand.Int(rand.Reader, big.NewInt(10_000_000))
	if err != nil {
		return nil, err
	}
	r := &wantedToken{
		id: fmt.Sprintf("%07d", number), client: client, user: user, asker: c.Request.Peer.User, from: c.Addr.Addr().Unmap(),
		levels: levels, lifetime: lifetime, at: now,
	}
	if d.requests[r.id] != nil {
		return nil, tokenRefusal{4, "Unable to generate new request ID"}
	}
	if _, err := d.key(); err != nil {
		return nil, err
	}
	out := classad.NewAd()
	out.SetString("RequestId", r.id)
	if rule, ok := d.ruled(r, now); ok {
		if err := d.issue(r, now); err != nil {
			return nil, err
		}
		out.SetString("Token", string(r.token))
		c.Log.Info("token request approved by a rule", "user", r.user, "asker", r.asker, "levels", r.levels, "network", rule.net.String())
		return out, nil
	}
	// A rule trusts a network; else the token must not be read on its way, and
	// not be fetched by who gives no name at all.
	if !c.Conn.Encrypted() {
		return nil, tokenInClear
	}
	if m := c.Request.Peer.Method; m == "" || strings.EqualFold(m, "ANONYMOUS") {
		return nil, tokenRefusal{7, "Request to server was made using ANONYMOUS or no authentication."}
	}
	if d.requests == nil {
		d.requests = make(map[string]*wantedToken)
	}
	d.requests[r.id] = r
	c.Log.Info("token requested", "request", r.id, "user", r.user, "asker", r.asker, "levels", r.levels)
	return out, nil
}

// requestsOf counts the requests that came from an address, or for IPv6 from its
// network of 64 bits, of which one machine has all.
func (d *TokenRequests) requestsOf(from netip.Addr) int {
	n := 0
	for _, r := range d.requests {
		same := r.from == from
		if from.Is6() && r.from.Is6() {
			p, err := from.WithZone("").Prefix(64)
			same = err == nil && p.Contains(r.from.WithZone(""))
		}
		if same {
			n++
		}
	}
	return n
}

// levels are those a token is to be limited to, within SEC_TOKEN_REQUEST_LIMITS.
func (d *TokenRequests) levels(ad *classad.Ad) ([]string, error) {
	limits := d.Config().List("SEC_TOKEN_REQUEST_LIMITS")
	if _, asked := ad.Lookup("LimitAuthorization"); !asked {
		return limits, nil
	}
	list, ok := word(ad, "LimitAuthorization")
	if !ok {
		return nil, tokenRefusal{2, "The requested authorizations cannot be read."}
	}
	var levels []string
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if _, known := command.ParseLevel(name); !known {
			return nil, tokenRefusal{2, "A requested authorization is not known."}
		}
		if len(limits) == 0 || slices.Contains(limits, name) {
			levels = append(levels, name)
		}
	}
	if len(levels) == 0 { // a token without limits is not what was asked for
		return nil, tokenRefusal{3, "All requested authorizations were eliminated by the SEC_TOKEN_REQUEST_LIMITS setting"}
	}
	return levels, nil
}

// finish is DC_FINISH_TOKEN_REQUEST.
func (d *TokenRequests) finish(c *listen.Call, ad *classad.Ad, now time.Time) (*classad.Ad, error) {
	d.polls = min(pollsASecond, d.polls+now.Sub(d.polled).Seconds()*pollsASecond)
	if d.polled.IsZero() {
		d.polls = pollsASecond
	}
	if d.polled = now; d.polls < 1 {
		return nil, tokenTooOften
	}
	d.polls--
	client, ok := word(ad, "ClientId")
	if !ok {
		return nil, tokenRefusal{2, "No client ID provided."}
	}
	id, ok := word(ad, "RequestId")
	if !ok {
		return nil, tokenRefusal{2, "No request ID provided."}
	}
	r := d.requests[id]
	out := classad.NewAd()
	switch {
	case r == nil:
		return nil, tokenUnknown
	case r.client != client:
		return nil, tokenClient
	case r.approved && !c.Conn.Encrypted(): // it was asked for under encryption; HTCondor would send it in clear
		return nil, tokenInClear
	case r.approved: // it is given once
		delete(d.requests, id)
		out.SetString("Token", string(r.token))
		return out, nil
	case r.failed:
		delete(d.requests, id)
		return nil, tokenFailed
	case !d.pending(r, now):
		delete(d.requests, id)
		return nil, tokenExpired
	}
	out.SetString("Token", "")
	return out, nil
}

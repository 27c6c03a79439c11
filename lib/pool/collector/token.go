// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	tokenRights    = "ADVERTISE_STARTD" // that the token is to be limited to
	firstTokenPoll = 5 * time.Second    // after the request
	lastTokenPoll  = time.Minute        // the longest pause between two polls
	tokenPatience  = 2 * time.Minute    // until the collector is tried without it again
	tokenTalk      = 20 * time.Second   // for one request or poll
	maxRequestID   = 64                 // bytes
	maxToken       = 16 << 10           // bytes
)

// tokenRequest is what a collector was asked for and has not decided yet.
type tokenRequest struct {
	client string // our name for it, which with the number is the right to the token
	id     string // the collector's number, which its administrator approves it by
}

// tokenSeeking is how far an updater is with a token from its collector.
type tokenSeeking struct {
	asked        *tokenRequest // under way
	tokenTrouble string        // what was logged of the last one that could not be made
	// trusting says that a token came since the collector last took a connection.
	// If the collector refuses us with that token too, as it does when nothing
	// there allows its user, the next one is worth no more: the attempt after it
	// waits like all others.
	trusting bool
}

// tokenAnswer is what a collector says to a request or a poll.
type tokenAnswer struct {
	token string // "" while the request is not decided
	id    string // of the request, with the answer to the request alone
}

// readTokenAnswer takes an answer apart. An ad with an error is Denied, one that
// is neither that nor an answer Broken.
func readTokenAnswer(ad *classad.Ad) (a tokenAnswer, err error) {
	const op = "collector.tokenAnswer"
	if why, ok := ad.EvalString("ErrorString", nil); ok {
		code, _ := ad.EvalInt("ErrorCode", nil)
		return a, errs.E(op, errs.Denied, "", fmt.Errorf("the collector says (%d): %.512q", code, why))
	}
	a.token, _ = ad.EvalString("Token", nil)
	a.id, _ = ad.EvalString("RequestId", nil)
	switch {
	case len(a.token) > maxToken:
		return tokenAnswer{}, errs.E(op, errs.Broken, "", errors.New("the token is too long"))
	case a.token != "":
		if a.token = strings.TrimSpace(a.token); strings.ContainsAny(a.token, "\n\r\x00") {
			return tokenAnswer{}, errs.E(op, errs.Broken, "", errors.New("the token is more than a line"))
		}
		if _, err := authn.ParseToken(a.token); err != nil {
			return tokenAnswer{}, errs.E(op, errs.Broken, "", err)
		}
	case len(a.id) > maxRequestID || strings.ContainsFunc(a.id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}):
		return tokenAnswer{}, errs.E(op, errs.Broken, "", errors.New("the number of the request is none"))
	}
	return a, nil
}

// askToken asks the collector one question about a token.
func (s *updater) askToken(ctx context.Context, command int, ask *classad.Ad) (tokenAnswer, error) {
	const op = "collector.askToken"
	ctx, cancel := context.WithTimeout(ctx, tokenTalk)
	defer cancel()
	to, err := s.where()
	if err != nil {
		return tokenAnswer{}, err
	}
	// A key comes with authentication alone, and a token must not be read by
	// others. A session that is kept would be one without the token.
	conn, _, err := s.updates.cfg.Open.Command(ctx, to, command, security.Options{Authenticate: true, Temporary: true})
	if err != nil {
		return tokenAnswer{}, err
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	if !conn.Encrypted() {
		return tokenAnswer{}, errs.E(op, errs.Denied, s.to.Text, errors.New("the connection is not encrypted: a token is not asked for in clear"))
	}
	conn.PutAd(ask, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return tokenAnswer{}, errs.E(op, errs.Transient, s.to.Text, err)
	}
	ad, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return tokenAnswer{}, errs.E(op, errs.Transient, s.to.Text, err)
	}
	return readTokenAnswer(ad)
}

// seekToken asks the collector, which has refused us, for a token, and waits for
// its administrator to approve. True says that there is one now. A request that
// is not decided stays open for the next call.
func (s *updater) seekToken(ctx context.Context) bool {
	user := s.updates.settings.Load().TokenUser
	if s.updates.cfg.StoreToken == nil || user == "" {
		return false
	}
	if s.asked == nil {
		return s.beginToken(ctx, user)
	}
	pause := firstTokenPoll
	for waited := time.Duration(0); waited < tokenPatience; waited += pause {
		if waited > 0 {
			pause = min(2*pause, lastTokenPoll)
		}
		if !s.wait(ctx, pause/2+time.Duration(s.updates.cfg.Rand()*float64(pause))) || s.leaving() {
			return false
		}
		ask := classad.NewAd()
		ask.SetString("ClientId", s.asked.client)
		ask.SetString("RequestId", s.asked.id)
		answer, err := s.askToken(ctx, command.DCFinishTokenRequest, ask)
		switch {
		case ctx.Err() != nil:
			return false
		case errs.Is(err, errs.Denied), errs.Is(err, errs.Broken): // it is over: refused, or forgotten
			s.log.Warn("the token that was requested does not come", "request", s.asked.id, "err", err)
			s.asked = nil
			return false
		case err != nil:
			s.log.Debug("the collector cannot be asked for the token", "request", s.asked.id, "err", err)
		case answer.token == "":
			s.log.Debug("the token that was requested is not approved yet", "request", s.asked.id)
		default:
			s.log.Info("the token request was approved", "request", s.asked.id)
			s.asked = nil
			return s.storeToken(answer.token)
		}
	}
	return false
}

// beginToken makes the request.
func (s *updater) beginToken(ctx context.Context, user string) bool {
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return false
	}
	// The name shows an administrator which machine asks. The number must not be
	// guessed: a peer that has both fetches the token.
	client := fmt.Sprintf("STARTD-%.255s-%d", s.updates.settings.Load().Host, number)
	ask := classad.NewAd()
	ask.SetString("LimitAuthorization", tokenRights)
	ask.SetString("User", user)
	ask.SetString("ClientId", client)
	answer, err := s.askToken(ctx, command.DCStartTokenRequest, ask)
	switch {
	case err != nil:
		if text := err.Error(); ctx.Err() == nil && text != s.tokenTrouble { // logged once
			s.tokenTrouble = text
			s.log.Warn("no token can be requested", "user", user, "err", err)
		}
		return false
	case answer.token != "":
		s.log.Info("the token request was approved by a rule", "user", user)
		return s.storeToken(answer.token)
	case answer.id == "":
		s.log.Warn("no token can be requested", "user", user, "err", "the collector answers nothing")
		return false
	}
	s.asked, s.tokenTrouble = &tokenRequest{client: client, id: answer.id}, ""
	s.log.Warn("the collector refuses us; a token was requested, its administrator has to approve it",
		"request", answer.id, "user", user, "how", "condor_token_request_approve -reqid "+answer.id)
	return s.seekToken(ctx)
}

func (s *updater) storeToken(token string) bool {
	path, err := s.updates.cfg.StoreToken(token)
	if err != nil {
		s.log.Error("the token cannot be kept", "err", err)
		return false
	}
	s.log.Info("the token is kept", "file", path)
	return true
}

// leaving reports whether the updater retires.
func (s *updater) leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retiring
}

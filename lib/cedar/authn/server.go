// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// maxRounds bounds how often a client may try. A client strikes out what
// failed, so that one which needs more is none.
const maxRounds = 8

// Offer returns those of methods that can succeed here: supported, and with
// the keys or the certificate at hand.
func (s *Server) Offer(methods []Method) []Method {
	return slices.DeleteFunc(slices.Clone(methods), func(m Method) bool {
		switch m {
		case FS:
			return s.Owners == nil
		case Token:
			names, err := s.IssuerKeys()
			return err == nil && len(names) == 0
		case SSL:
			return !s.hasCertificate()
		}
		return !m.Supported()
	})
}

// IssuerKeys lists the signing keys that tokens are verified with, as a
// server's policy ad tells them.
func (s *Server) IssuerKeys() ([]string, error) { return s.keys(s.Files).Names() }

// IssuerKeys lists the signing keys that tokens could be made with, as a
// client's policy ad tells them.
func (c *Client) IssuerKeys() ([]string, error) { return c.keys(c.Files).Names() }

// Authenticate finds out who the client is, by the first of methods that the
// client offers and that succeeds. The stream is good for what follows when the
// error is nil, or Agreed; otherwise it is to be closed, for some failures
// leave the client waiting. It is over when ctx is, and bounded by the stream's
// timeouts.
func (s *Server) Authenticate(ctx context.Context, conn *cedar.Conn, p Peer, methods []Method) (Result, error) {
	const op = "authn.Server.Authenticate"
	defer strict(ctx, conn)()
	p = p.ends(conn)
	var result Result
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return result, failed(op, conn, result, err)
		}
		r := reader{conn: conn}
		offered := r.int()
		if err := r.end(); err != nil {
			return result, failed(op, conn, result, err)
		}
		chosen := choose(methods, offered)
		conn.PutInt(int64(chosen))
		if err := send(conn); err != nil {
			return result, failed(op, conn, result, err)
		}
		if chosen == None && !slices.ContainsFunc(methods, Method.Supported) {
			return result, failed(op, conn, result, agreed{unsupported(methods)})
		}
		if chosen == None {
			return result, failed(op, conn, result, agreed{fmt.Errorf("the client offers %#x, nothing of %s", offered, FormatMethods(methods))})
		}
		id, wrapKey, err := s.run(ctx, conn, p, chosen)
		if err == nil {
			id.Method = chosen
			result.Identity, result.wrapKey = id, seal(wrapKey)
			return result, nil
		}
		result.Failed = append(result.Failed, Attempt{Method: chosen, Err: err})
		if isBroken(err) {
			return result, failed(op, conn, result, nil)
		}
	}
	return result, failed(op, conn, result, errs.E("", errs.Exhausted, "", fmt.Errorf("%d attempts are enough", maxRounds)))
}

// choose returns the first of ours that the client offers.
func choose(ours []Method, offered int64) Method {
	for _, m := range ours {
		if m.Supported() && offered&int64(m) != 0 {
			return m
		}
	}
	return None
}

func (s *Server) run(ctx context.Context, conn *cedar.Conn, p Peer, m Method) (Identity, Secret, error) {
	switch m {
	case FS:
		id, err := s.fsServer(conn, p)
		return id, nil, err
	case Token:
		return akep2Server(conn, Token, p.poolName(s.UIDDomain), s.tokenExpect, s.random())
	case Password:
		return akep2Server(conn, Password, p.poolName(s.UIDDomain), func(akep2First) (akep2Expect, error) { return s.passwordExpect(p) }, s.random())
	case SSL:
		return s.sslServer(ctx, conn)
	case ClaimToBe:
		id, err := claimToBeServer(conn, s.UIDDomain, s.ClaimToBeDomain)
		return id, nil, err
	case Anonymous:
		id, err := anonymousServer(conn)
		return id, nil, err
	}
	return Identity{}, nil, broken{errs.E("authn.Server.run", errs.Unsupported, m.String(), errors.New("this method is not supported"))}
}

// tokenExpect recomputes the signature that the client must know.
func (s *Server) tokenExpect(f akep2First) (akep2Expect, error) {
	const op = "authn.Server.tokenExpect"
	claims, err := parseSigned(f.signed)
	if err != nil {
		return akep2Expect{}, errs.E(op, errs.Invalid, "", err)
	}
	if err := s.Rules.Check(claims, s.now()); err != nil {
		return akep2Expect{}, err
	}
	signature, err := s.keys(s.Files).signature(claims, f.signed)
	if err != nil {
		return akep2Expect{}, err
	}
	keys, err := tokenKeys(f.signed, signature)
	if err != nil {
		return akep2Expect{}, errs.E(op, errs.Internal, "", err)
	}
	id := fqu(Token, claims.Subject)
	id.Token = &claims
	return akep2Expect{keys: keys, name: func(a string) bool { return a == claims.Subject }, found: id}, nil
}

// passwordExpect is the pool's password and the one name that its holders
// have. Of an old peer's name only the part before the @ is looked at.
func (s *Server) passwordExpect(p Peer) (akep2Expect, error) {
	password, err := readPassword(s.Files, s.PasswordFile)
	if err != nil {
		return akep2Expect{}, err
	}
	want := p.poolName(s.UIDDomain)
	id := fqu(Password, want)
	return akep2Expect{keys: passwordKeys(password), found: id, name: func(a string) bool {
		if want == passwordFQU {
			return a == want
		}
		return fqu(Password, a).User == poolUser
	}}, nil
}

func readPassword(files host.PrivateFiles, path string) (Secret, error) {
	const op = "authn.readPassword"
	if files == nil || path == "" {
		return nil, errs.E(op, errs.NotFound, "SEC_PASSWORD_FILE", errors.New("there is no file with the pool's password"))
	}
	file, err := files.ReadPrivate(path, maxKeyFile)
	if err != nil {
		return nil, errs.E(op, errs.Other, path, err)
	}
	return PoolPassword(file)
}

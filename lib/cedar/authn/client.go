// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// Limits of a message before authentication.
const (
	authMessage = maxTLSRecords + 4096
	authString  = 64 << 10
)

// Offer returns those of methods that make sense here: supported, and with
// something to show.
func (c *Client) Offer(methods []Method) []Method {
	return slices.DeleteFunc(slices.Clone(methods), func(m Method) bool {
		switch m {
		case FS:
			return c.Owners == nil
		case Token:
			return !c.hasToken()
		}
		return !m.Supported()
	})
}

func (c *Client) hasToken() bool {
	if names, err := c.keys(c.Files).Names(); err != nil || len(names) > 0 {
		return true
	}
	_, err := c.tokens().Find("", nil, c.now())
	return err == nil
}

// Authenticate goes through methods, in the server's order of preference,
// until one succeeds. The stream is good for what follows when the error is
// nil, or Agreed. Result.Failed and the error name the methods that were tried
// and why each failed. It is over when ctx is, and bounded by the stream's
// timeouts.
func (c *Client) Authenticate(ctx context.Context, conn *cedar.Conn, p Peer, methods []Method) (Result, error) {
	const op = "authn.Client.Authenticate"
	defer strict(ctx, conn)()
	p = p.ends(conn)
	var result Result
	left := slices.DeleteFunc(slices.Clone(methods), func(m Method) bool { return !m.Supported() })
	for {
		if err := ctx.Err(); err != nil {
			return result, failed(op, conn, result, err)
		}
		conn.PutInt(int64(mask(left)))
		if err := send(conn); err != nil {
			return result, failed(op, conn, result, err)
		}
		r := reader{conn: conn}
		choice := r.int()
		err := r.end()
		if len(left) == 0 {
			none := errors.New("there is no method left")
			if len(result.Failed) == 0 {
				none = unsupported(methods)
			}
			if err == nil && choice == 0 {
				none = agreed{none}
			}
			return result, failed(op, conn, result, none)
		}
		if err != nil {
			return result, failed(op, conn, result, fmt.Errorf("the server did not choose one of %s: %w", FormatMethods(left), err))
		}
		chosen := Method(uint32(choice)) //nolint:gosec // checked in the next line
		switch {
		case choice == 0:
			return result, failed(op, conn, result, agreed{fmt.Errorf("the server accepts none of %s", FormatMethods(left))})
		case choice < 0 || choice > int64(mask(left)) || bits.OnesCount32(uint32(chosen)) != 1 || mask(left)&chosen == 0:
			return result, failed(op, conn, result, errs.E("", errs.Invalid, "", fmt.Errorf("the server chose %d, want one of %s", choice, FormatMethods(left))))
		}
		id, wrapKey, err := c.run(ctx, conn, p, chosen)
		if err == nil {
			id.Method = chosen
			result.Identity, result.wrapKey = id, seal(wrapKey)
			return result, nil
		}
		result.Failed = append(result.Failed, Attempt{Method: chosen, Err: err})
		if isBroken(err) {
			return result, failed(op, conn, result, nil)
		}
		left = slices.DeleteFunc(left, func(m Method) bool { return m == chosen })
	}
}

func (c *Client) run(ctx context.Context, conn *cedar.Conn, p Peer, m Method) (Identity, Secret, error) {
	switch m {
	case FS:
		return Identity{}, nil, c.fsClient(conn, p)
	case Token:
		login, err := c.tokenLogin(p)
		return akep2Client(conn, Token, login, err, c.random())
	case Password:
		login, err := c.passwordLogin(p)
		return akep2Client(conn, Password, login, err, c.random())
	case SSL:
		return c.sslClient(ctx, conn, p)
	case ClaimToBe:
		return Identity{}, nil, claimToBeClient(conn, c.claim())
	case Anonymous:
		return Identity{}, nil, anonymousClient(conn)
	}
	return Identity{}, nil, broken{errs.E("authn.Client.run", errs.Unsupported, m.String(), errors.New("this method is not supported"))}
}

// mintedFor is how long a token lives that is made for one connection.
const mintedFor = time.Minute

// tokenLogin finds a token for the server, or makes one if we hold a key that
// it has.
func (c *Client) tokenLogin(p Peer) (*akep2Login, error) {
	token, err := c.tokens().Find(p.TrustDomain, p.IssuerKeys, c.now())
	if err != nil {
		minted, mintErr := c.mint(p)
		if mintErr != nil {
			return nil, fmt.Errorf("%w; and none can be made: %w", err, mintErr)
		}
		token = minted
	}
	keys, err := tokenKeys(token.signed, token.signature.open())
	if err != nil {
		return nil, err
	}
	name := token.Claims.Subject
	if name == "" {
		name = token.Claims.ID
	}
	return &akep2Login{name: name, signed: token.signed, keys: keys}, nil
}

// mint makes a token for one connection within our own pool.
func (c *Client) mint(p Peer) (SignedToken, error) {
	if p.TrustDomain == "" || p.TrustDomain != c.TrustDomain {
		return SignedToken{}, fmt.Errorf("the server is of the trust domain %.64q, we are of %q", p.TrustDomain, c.TrustDomain)
	}
	why := errors.New("the server has no signing keys")
	for i, id := range p.IssuerKeys {
		if i == maxDirEntry {
			break
		}
		key, err := c.keys(c.Files).Key(id)
		if err == nil {
			// Old peers want the name of the pool without a domain.
			return key.Issue(Order{Issuer: c.TrustDomain, Subject: p.poolName(""), Lifetime: mintedFor, Rand: c.Rand}, c.now())
		}
		why = err
	}
	return SignedToken{}, why
}

func (c *Client) passwordLogin(p Peer) (*akep2Login, error) {
	password, err := readPassword(c.Files, c.PasswordFile)
	if err != nil {
		return nil, err
	}
	return &akep2Login{name: p.poolName(c.UIDDomain), keys: passwordKeys(password)}, nil
}

// claim is who we are with CLAIMTOBE.
func (c *Client) claim() string {
	name := c.ClaimToBeUser
	if name == "" {
		name = c.User
	}
	if name == "" || !c.ClaimToBeDomain {
		return name
	}
	if c.UIDDomain == "" {
		return ""
	}
	return name + "@" + c.UIDDomain
}

// strict bounds what an unknown peer may send until the returned function is
// called, and ties the stream to ctx.
func strict(ctx context.Context, conn *cedar.Conn) (release func()) {
	usual := conn.Limits()
	tight := usual
	tight.Message = min(usual.Message, authMessage)
	tight.String = min(usual.String, authString)
	conn.SetLimits(tight)
	unbind := conn.Bind(ctx)
	return func() {
		unbind()
		conn.SetLimits(usual)
	}
}

// failed is the error of an authentication: all that was tried. Its kind is
// that of the last cause.
func failed(op string, conn *cedar.Conn, r Result, last error) error {
	var b strings.Builder
	var causes []error
	for i, a := range r.Failed {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.Method.String() + ": %w")
		causes = append(causes, a.Err)
	}
	kind := errs.Denied
	if last != nil {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString("%w")
		causes = append(causes, last)
	}
	if n := len(causes); n > 0 && errs.KindOf(causes[n-1]) != errs.Other {
		kind = errs.KindOf(causes[n-1])
	}
	args := make([]any, len(causes))
	for i, c := range causes {
		args[i] = c
	}
	return errs.E(op, kind, conn.Peer(), fmt.Errorf(b.String(), args...))
}

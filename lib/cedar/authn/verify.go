// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// sign computes the signature of a token's text as its header asks. Only the
// three HMACs are signatures: "none" and everything else is refused.
func (k SigningKey) sign(algorithm, signed string) (Secret, error) {
	var h func() hash.Hash
	switch algorithm {
	case "HS256":
		h = sha256.New
	case "HS384":
		h = sha512.New384
	case "HS512":
		h = sha512.New
	default:
		return nil, fmt.Errorf("signatures of the kind %.16q are not accepted, only HS256, HS384 and HS512", algorithm)
	}
	mac := hmac.New(h, k.key.open())
	io.WriteString(mac, signed)
	return mac.Sum(nil), nil
}

// Rules are the conditions under which a token signed with one of our keys is
// accepted. The zero value asks for no more than an issuer, an id, a subject
// and time left.
type Rules struct {
	// MaxAge refuses tokens that were issued longer ago; 0 is no limit
	// (SEC_TOKEN_MAX_AGE).
	MaxAge time.Duration
	// Revoked is evaluated in the claims; a token for which it is not false is
	// refused (SEC_TOKEN_REVOCATION_EXPR). Nil refuses none.
	Revoked *config.Expr
}

// Check says whether claims are acceptable at now. A token that is over is
// Expired, every other refusal Denied. It does not look at the signature.
func (r Rules) Check(c TokenClaims, now time.Time) error {
	const op = "authn.Rules.Check"
	refuse := func(kind errs.Kind, format string, args ...any) error {
		return errs.E(op, kind, quoteID(c.ID), fmt.Errorf(format, args...))
	}
	switch {
	case c.Issuer == "":
		return refuse(errs.Denied, "the token names no issuer")
	case c.ID == "":
		return refuse(errs.Denied, "the token has no id (jti)")
	case c.capability:
		return refuse(errs.Denied, "the token is a capability, which only its database could explain")
	case c.Subject == "":
		return refuse(errs.Denied, "the token has no subject")
	}
	if !c.Expires.IsZero() && now.Unix() > c.Expires.Unix() {
		return refuse(errs.Expired, "the token expired %s ago", time.Duration(now.Unix()-c.Expires.Unix())*time.Second)
	}
	if r.MaxAge > 0 && !c.Issued.IsZero() {
		if age := time.Duration(now.Unix()-c.Issued.Unix()) * time.Second; age > r.MaxAge {
			return refuse(errs.Expired, "the token is %s old, SEC_TOKEN_MAX_AGE allows %s", age, r.MaxAge)
		}
	}
	if r.revoked(c, now) {
		return refuse(errs.Denied, "the token is revoked by SEC_TOKEN_REVOCATION_EXPR")
	}
	return nil
}

// revoked takes everything that is not plainly false for a revocation.
func (r Rules) revoked(c TokenClaims, now time.Time) bool {
	if r.Revoked == nil {
		return false
	}
	ad, ok := c.ad()
	if !ok {
		return true
	}
	v, ok := r.Revoked.TryEval(&classad.Env{My: ad, Now: now})
	if !ok {
		return true
	}
	if b, ok := v.AsBool(); ok {
		return b
	}
	f, ok := v.AsNumber()
	return !ok || f != 0
}

// Verify checks a whole token: that one of our keys signed it and that the
// rules accept it at now.
func (k SigningKeys) Verify(text string, rules Rules, now time.Time) (TokenClaims, error) {
	const op = "authn.SigningKeys.Verify"
	t, err := ParseToken(text)
	if err != nil {
		return TokenClaims{}, err
	}
	signature, err := k.signature(t.Claims, t.signed)
	if err != nil {
		return TokenClaims{}, err
	}
	if !t.signature.open().Equal(signature) {
		return TokenClaims{}, errs.E(op, errs.Denied, quoteID(t.Claims.ID), errors.New("the signature is not that of the key it names"))
	}
	if err := rules.Check(t.Claims, now); err != nil {
		return TokenClaims{}, err
	}
	return t.Claims, nil
}

// signature recomputes what the signature of a token must be.
func (k SigningKeys) signature(c TokenClaims, signed string) (Secret, error) {
	const op = "authn.SigningKeys.signature"
	if c.KeyID == "" {
		return nil, errs.E(op, errs.Denied, quoteID(c.ID), errors.New("the token does not name its key (kid)"))
	}
	key, err := k.Key(c.KeyID)
	if err != nil {
		return nil, err
	}
	signature, err := key.sign(c.algorithm, signed)
	if err != nil {
		return nil, errs.E(op, errs.Denied, quoteID(c.ID), err)
	}
	return signature, nil
}

// Order is a token to be issued.
type Order struct {
	Issuer   string // the trust domain
	Subject  string // who it is for
	Levels   []string
	Lifetime time.Duration // 0 is without end
	Rand     io.Reader     // for its id; nil is crypto/rand
}

// Issue signs a token at now. The text is a secret: a peer that has it is its
// subject.
func (k SigningKey) Issue(o Order, now time.Time) (SignedToken, error) {
	const op = "authn.SigningKey.Issue"
	if o.Issuer == "" || strings.ContainsAny(o.Issuer, ", \t") {
		return SignedToken{}, errs.E(op, errs.Invalid, "TRUST_DOMAIN", fmt.Errorf("%q cannot be an issuer: want a name without blanks and commas", o.Issuer))
	}
	if o.Subject == "" {
		return SignedToken{}, errs.E(op, errs.Invalid, "", errors.New("a token is for somebody"))
	}
	source := o.Rand
	if source == nil {
		source = rand.Reader
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(source, id); err != nil {
		return SignedToken{}, errs.E(op, errs.Broken, "", err)
	}
	scopes := make([]string, len(o.Levels))
	for i, level := range o.Levels {
		scopes[i] = scopePrefix + level
	}
	var expires int64
	if o.Lifetime > 0 {
		expires = now.Add(o.Lifetime).Unix()
	}
	header, err := encode(struct {
		Algorithm string `json:"alg"`
		Key       string `json:"kid"`
	}{"HS256", k.ID})
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Internal, "", err)
	}
	payload, err := encode(struct { // in the order in which HTCondor writes them
		Expires int64  `json:"exp,omitempty"`
		Issued  int64  `json:"iat"`
		Issuer  string `json:"iss"`
		ID      string `json:"jti"`
		Scope   string `json:"scope,omitempty"`
		Subject string `json:"sub"`
	}{expires, now.Unix(), o.Issuer, hex.EncodeToString(id), strings.Join(scopes, " "), o.Subject})
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Internal, "", err)
	}
	signed := header + "." + payload
	signature, err := k.sign("HS256", signed)
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Internal, "", err)
	}
	claims, err := parseSigned(signed)
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Internal, "", err)
	}
	return SignedToken{Claims: claims, signed: signed, signature: seal(signature)}, nil
}

// Text is the token as a file holds it.
func (t SignedToken) Text() Secret {
	return Secret(t.signed + "." + base64.RawURLEncoding.EncodeToString(t.signature.open()))
}

// encode is a part of a token: JSON with its slashes escaped as HTCondor
// does it, in base64.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strings.ReplaceAll(string(b), "/", `\/`))), nil
}

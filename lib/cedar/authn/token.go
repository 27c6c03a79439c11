// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// maxToken bounds a token; real ones have some hundred bytes.
const maxToken = 16 << 10

// TokenClaims is what a token says, believed or not.
type TokenClaims struct {
	KeyID   string // kid: the key it was signed with
	Issuer  string // iss: the trust domain
	Subject string // sub: the identity
	ID      string // jti: unique to this token
	Scopes  []string
	Project string
	// Issued and Expires are zero when the token does not say.
	Issued, Expires time.Time

	capability bool
	algorithm  string
	payload    map[string]json.RawMessage
}

// scopePrefix marks the scopes that are authorization levels.
const scopePrefix = "condor:/"

// Limits returns the authorization levels that the scopes name, those that
// the session is limited to. Nil is no limit.
func (c TokenClaims) Limits() []string {
	var levels []string
	for _, scope := range c.Scopes {
		if level, ok := strings.CutPrefix(scope, scopePrefix); ok {
			levels = append(levels, level)
		}
	}
	return levels
}

// SignedToken is a token as a file holds it: claims and signature. The signature
// is what its owner proves to know; it never goes over the wire.
type SignedToken struct {
	Claims    TokenClaims
	signed    string // header.payload as received: never encoded again
	signature sealed
}

// ParseToken reads a whole token, "header.payload.signature". It looks at
// nothing but its form; see SigningKeys.Verify. An error does not quote it.
func ParseToken(text string) (SignedToken, error) {
	const op = "authn.ParseToken"
	signed, sig, err := splitToken(text)
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Invalid, "", err)
	}
	signature, err := segment(sig)
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Invalid, "", fmt.Errorf("signature: %w", err))
	}
	claims, err := parseSigned(signed)
	if err != nil {
		return SignedToken{}, errs.E(op, errs.Invalid, "", err)
	}
	return SignedToken{Claims: claims, signed: signed, signature: seal(signature)}, nil
}

func splitToken(text string) (signed, signature string, err error) {
	if len(text) > maxToken {
		return "", "", fmt.Errorf("it is longer than %d bytes", maxToken)
	}
	if strings.Count(text, ".") != 2 {
		return "", "", errors.New("it has not three parts with dots between them")
	}
	dot := strings.LastIndexByte(text, '.')
	return text[:dot], text[dot+1:], nil
}

// parseSigned reads "header.payload", which is all that the wire carries.
func parseSigned(signed string) (TokenClaims, error) {
	none := TokenClaims{}
	if len(signed) > maxToken {
		return none, fmt.Errorf("it is longer than %d bytes", maxToken)
	}
	head, body, ok := strings.Cut(signed, ".")
	if !ok || strings.Contains(body, ".") {
		return none, errors.New("it has not two parts with a dot between them")
	}
	header, err := object(head)
	if err != nil {
		return none, fmt.Errorf("header: %w", err)
	}
	payload, err := object(body)
	if err != nil {
		return none, fmt.Errorf("payload: %w", err)
	}
	r := claimReader{}
	c := TokenClaims{
		KeyID:      r.text(header, "kid"),
		algorithm:  r.text(header, "alg"),
		Issuer:     r.text(payload, "iss"),
		Subject:    r.text(payload, "sub"),
		ID:         r.text(payload, "jti"),
		Project:    r.text(payload, "project"),
		Issued:     r.time(payload, "iat"),
		Expires:    r.time(payload, "exp"),
		capability: r.truth(payload, "cap"),
		payload:    payload,
	}
	c.Scopes = strings.FieldsFunc(r.text(payload, "scope"), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	return c, r.err
}

// segment decodes one part. Line breaks, which the decoder would skip, are no
// part of a token.
func segment(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("there is a line break in it")
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64url without padding")
	}
	return b, nil
}

// object decodes a part that is a JSON object. Names are kept apart by case,
// which decoding into a struct would not do.
func object(text string) (map[string]json.RawMessage, error) {
	b, err := segment(text)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var members map[string]json.RawMessage
	if err := d.Decode(&members); err != nil || members == nil {
		return nil, errors.New("it is no JSON object")
	}
	if _, err := d.Token(); !isEOF(err) {
		return nil, errors.New("something follows the JSON object")
	}
	return members, nil
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// claimReader reads members of a JSON object and keeps the first error. A
// member that is not there reads as the zero value.
type claimReader struct{ err error }

func (r *claimReader) wrong(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("claim %q is not %s", name, want)
	}
}

func (r *claimReader) text(o map[string]json.RawMessage, name string) (s string) {
	raw, ok := o[name]
	if !ok {
		return ""
	}
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil || strings.ContainsRune(s, 0) {
		r.wrong(name, "a text")
		return ""
	}
	return s
}

func (r *claimReader) truth(o map[string]json.RawMessage, name string) (b bool) {
	raw, ok := o[name]
	if ok && json.Unmarshal(raw, &b) != nil {
		r.wrong(name, "true or false")
	}
	return b
}

func (r *claimReader) time(o map[string]json.RawMessage, name string) time.Time {
	raw, ok := o[name]
	if !ok {
		return time.Time{}
	}
	f, ok := number(raw)
	// 1<<38 seconds are eight thousand years.
	if !ok || math.Abs(f) > 1<<38 {
		r.wrong(name, "a time in seconds")
		return time.Time{}
	}
	return time.Unix(int64(math.Round(f)), 0)
}

func number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	var f float64
	return f, json.Unmarshal(raw, &f) == nil
}

// ad is the payload as an ad, for SEC_TOKEN_REVOCATION_EXPR. ok is false when
// a claim of a simple type does not fit into an ad.
func (c TokenClaims) ad() (a *classad.Ad, ok bool) {
	a = classad.NewAd()
	for name, raw := range c.payload {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, false
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil, false
		}
		switch v := v.(type) {
		case bool:
			a.SetBool(name, v)
		case string:
			a.SetString(name, v)
		case json.Number:
			if i, err := v.Int64(); err == nil {
				a.SetInt(name, i)
			} else if f, err := v.Float64(); err == nil {
				a.SetReal(name, f)
			} else {
				return nil, false
			}
		}
	}
	return a, true
}

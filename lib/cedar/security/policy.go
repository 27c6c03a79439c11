// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Requirement is how much one side wants a feature of a session.
type Requirement uint8

// The requirements, from least to most. The order is used.
const (
	Never Requirement = iota
	Optional
	Preferred
	Required
)

var requirementNames = [...]string{Never: "NEVER", Optional: "OPTIONAL", Preferred: "PREFERRED", Required: "REQUIRED"}

// String returns the word as it is sent, as "REQUIRED".
func (r Requirement) String() string {
	if int(r) < len(requirementNames) {
		return requirementNames[r]
	}
	return "INVALID"
}

// ParseRequirement reads a requirement by its first letter, as the field does:
// YES and TRUE are REQUIRED, NO and FALSE are NEVER.
func ParseRequirement(text string) (Requirement, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Never, false
	}
	switch text[0] {
	case 'R', 'r', 'Y', 'y', 'T', 't':
		return Required, true
	case 'P', 'p':
		return Preferred, true
	case 'O', 'o':
		return Optional, true
	case 'N', 'n', 'F', 'f':
		return Never, true
	}
	return Never, false
}

// decide settles a feature between two sides. ok is false when one demands
// what the other refuses.
func decide(client, server Requirement) (on, ok bool) {
	switch {
	case client == Required && server == Never, client == Never && server == Required:
		return false, false
	case client == Never, server == Never:
		return false, true
	}
	return client >= Preferred || server >= Preferred, true
}

// Policy is what one side wants of sessions at one level.
type Policy struct {
	Level Level

	Negotiation    Requirement
	Authentication Requirement
	Encryption     Requirement
	Integrity      Requirement

	Methods []authn.Method // in order of preference
	AES     bool           // CRYPTO_METHODS has AES, the only one of streams
	Ciphers []cedar.Cipher // the others it has, in its order: those of datagrams

	Duration time.Duration // life of a session
	Lease    time.Duration // life of a session that is not used; 0 = no lease

	// Patience is how long authentication may take, all methods together.
	Patience time.Duration
}

// lacks says what the policy demands that a negotiated session does not have,
// "" if nothing. The session may have been made at another level.
func (p Policy) lacks(s *Session) string {
	switch {
	case p.Authentication == Required && !s.Peer.Authenticated():
		return "level " + p.Level.String() + " demands authentication, which the session was made without"
	case p.Authentication == Required && !slices.ContainsFunc(p.Methods, func(m authn.Method) bool { return m.Recorded() == s.Peer.Method }):
		return "level " + p.Level.String() + " does not take the session's method of authentication, " + s.Peer.Method
	case p.Encryption == Required && !s.Encrypts():
		return "level " + p.Level.String() + " demands encryption, which the session was made without"
	case p.Integrity == Required && !s.Encrypts():
		return "level " + p.Level.String() + " demands integrity, which the session was made without"
	}
	return ""
}

// The defaults of a policy.
const (
	toolDuration   = time.Minute
	daemonDuration = 24 * time.Hour
	defaultLease   = time.Hour
	patience       = 20 * time.Second
	defaultMethods = "FS,TOKEN"
)

// cryptoMethods are the names a list of crypto methods may have. On streams
// only AES is spoken; every peer since 9.0 has it.
var cryptoMethods = [...]string{"AES", "BLOWFISH", "3DES"}

// PolicyFrom reads the policy of a level: SEC_<LEVEL>_AUTHENTICATION and its
// kin, falling back to SEC_DEFAULT_*. tool selects the short sessions of
// tools. It fails for values that say nothing, and for demands that exclude
// each other.
func PolicyFrom(c *config.Snapshot, level Level, tool bool) (Policy, error) {
	r, err := newReader(c, "")
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Level: level, Duration: daemonDuration, Lease: defaultLease, Patience: patience}
	if tool {
		p.Duration = toolDuration
	}
	for _, f := range []struct {
		name      string
		to        *Requirement
		otherwise Requirement
	}{
		{"NEGOTIATION", &p.Negotiation, Preferred},
		{"AUTHENTICATION", &p.Authentication, Optional},
		{"ENCRYPTION", &p.Encryption, Optional},
		{"INTEGRITY", &p.Integrity, Optional},
	} {
		*f.to = f.otherwise
		if s, ok := r.find("SEC_%s_"+f.name, "", level); ok {
			if *f.to, ok = ParseRequirement(s.Value); !ok {
				return Policy{}, badSetting(s, "want REQUIRED, PREFERRED, OPTIONAL or NEVER")
			}
		}
	}
	if level == Allow {
		// What is open to everyone demands no authentication.
		p.Authentication = min(p.Authentication, Optional)
	}
	if err := p.readMethods(r); err != nil {
		return Policy{}, err
	}
	for _, f := range []struct {
		name string
		to   *time.Duration
	}{{"SESSION_DURATION", &p.Duration}, {"SESSION_LEASE", &p.Lease}, {"AUTHENTICATION_TIMEOUT", &p.Patience}} {
		if s, ok := r.find("SEC_%s_"+f.name, "", level); ok {
			if *f.to, err = r.seconds(s); err != nil {
				return Policy{}, err
			}
		}
	}
	return p, p.check()
}

func (p *Policy) readMethods(r reader) error {
	s, ok := r.find("SEC_%s_AUTHENTICATION_METHODS", "", p.Level)
	text := s.Value
	if !ok {
		if text = r.c.String("SEC_DEFAULT_AUTHENTICATION_METHODS"); text == "" {
			text = defaultMethods
		}
	}
	methods, unknown := authn.ParseMethods(text)
	if len(unknown) > 0 {
		return badSetting(s, fmt.Sprintf("%q is no authentication method; want some of FS, TOKEN, PASSWORD, SSL, CLAIMTOBE, ANONYMOUS", clip(unknown[0])))
	}
	for _, m := range methods {
		if m.Supported() {
			p.Methods = append(p.Methods, m)
		}
	}
	s, ok = r.find("SEC_%s_CRYPTO_METHODS", "", p.Level)
	text = s.Value
	if !ok {
		text = strings.Join(cryptoMethods[:], ",")
	}
	for _, name := range words(text) {
		m := cryptoName(name)
		if !known(cryptoMethods[:], m) {
			return badSetting(s, fmt.Sprintf("%q is no crypto method; there are %s", clip(name), strings.Join(cryptoMethods[:], ", ")))
		}
		if m == "AES" {
			p.AES = true
		} else if !slices.Contains(p.Ciphers, cedar.Cipher(m)) {
			p.Ciphers = append(p.Ciphers, cedar.Cipher(m))
		}
	}
	return nil
}

// check refuses policies that no peer could meet.
func (p *Policy) check() error {
	bad := func(why string) error {
		return errs.E("security.PolicyFrom", errs.Invalid, "SEC_"+p.Level.String()+"_*", fmt.Errorf("%s", why))
	}
	switch {
	case p.Negotiation == Never && max(p.Authentication, p.Encryption, p.Integrity) == Required:
		return bad("NEGOTIATION is NEVER, but something else is REQUIRED that has to be negotiated")
	case p.Authentication == Required && len(p.Methods) == 0:
		return bad("AUTHENTICATION is REQUIRED, but AUTHENTICATION_METHODS names no method that can be used here")
	case !p.AES && max(p.Encryption, p.Integrity) == Required:
		return bad("ENCRYPTION or INTEGRITY is REQUIRED, but CRYPTO_METHODS does not name AES, the only one used here")
	}
	if len(p.Methods) == 0 {
		p.Authentication = Never
	}
	if !p.AES {
		p.Encryption, p.Integrity = Never, Never
	}
	return nil
}

// only returns the policy with no other methods than those.
func (p Policy) only(methods []authn.Method) (Policy, error) {
	p.Methods = methods
	return p, p.check()
}

// old returns the requirement of authentication as it was spelled before
// 23.10, when encryption could not be had without.
func (p *Policy) old() Requirement {
	if p.Authentication == Never {
		return Never
	}
	return max(p.Authentication, p.Encryption, p.Integrity)
}

func cryptoName(name string) string {
	if name = strings.ToUpper(name); name == "TRIPLEDES" {
		return "3DES"
	}
	return name
}

func known(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func appendNew(to []string, name string) []string {
	if known(to, name) {
		return to
	}
	return append(to, name)
}

// common returns what both lists have, in the server's order.
func common(server, client []authn.Method) []authn.Method {
	var both []authn.Method
	for _, m := range server {
		if slices.Contains(client, m) && !slices.Contains(both, m) {
			both = append(both, m)
		}
	}
	return both
}

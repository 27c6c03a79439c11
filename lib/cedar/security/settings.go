// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Settings are all that a configuration says about security. They are
// immutable; a reload makes new ones.
type Settings struct {
	Authorizer *Authorizer
	Map        *UserMap // nil: names are taken as the methods give them

	UIDDomain   string // what names without a domain get
	TrustDomain string

	StepTimeout time.Duration // for one message of a handshake
	Deadline    time.Duration // for a whole handshake
	Slack       time.Duration // what a server adds to the life of its sessions

	MatchSessions  bool // SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION
	FamilySession  bool // SEC_USE_FAMILY_SESSION
	Administration bool // SEC_ENABLE_REMOTE_ADMINISTRATION
	ResumeResponse bool // SEC_ENABLE_RESUME_SERVER_RESPONSE
	FIPS           bool // FIPS: datagrams go under 3DES, not Blowfish

	// Fragment and Loopback are the most bytes of a datagram, to other machines
	// and within this one (UDP_NETWORK_FRAGMENT_SIZE, UDP_LOOPBACK_FRAGMENT_SIZE).
	Fragment, Loopback int

	policies [levels]Policy
}

// Sources are what reading the settings needs besides the configuration.
type Sources struct {
	// Subsystem is the daemon's name, as "STARTD", for ALLOW_<LEVEL>_STARTD
	// and its kin. TOOL and SUBMIT have short sessions.
	Subsystem string
	// ReadFile and ReadDir read the map file and what it includes. Nil
	// refuses a configuration that has a map file.
	ReadFile func(path string) ([]byte, error)
	ReadDir  func(path string) ([]string, error)
	Hosts    Hosts
}

// Knobs are what a configuration says about security, before names of hosts are
// looked up and files are read. They are a value that one process may read for
// another: JSON gives it back as it was. See KnobsFrom for the knob behind each field.
type Knobs struct {
	UIDDomain, TrustDomain                                     string
	StepTimeout, Deadline, Slack                               time.Duration
	MatchSessions, FamilySession, Administration, Resume, FIPS bool
	Fragment, Loopback                                         int

	Policies [levels]Policy
	Lists    AccessLists
	MapFile  string // CERTIFICATE_MAPFILE, "" for none
	MapNames bool   // CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS
}

// SettingsFrom reads the settings. It is all or nothing.
func SettingsFrom(c *config.Snapshot, from Sources) (*Settings, error) {
	k, err := KnobsFrom(c, from.Subsystem)
	if err != nil {
		return nil, err
	}
	return k.Settings(from)
}

// KnobsFrom reads a configuration for a daemon of the subsystem, as "STARTD". It is
// all or nothing.
func KnobsFrom(c *config.Snapshot, subsystem string) (*Knobs, error) {
	s := &Knobs{}
	tool := strings.EqualFold(subsystem, "TOOL") || strings.EqualFold(subsystem, "SUBMIT")
	var err error
	for l := range levels {
		if s.Policies[l], err = PolicyFrom(c, l, tool); err != nil {
			return nil, err
		}
	}
	if s.Lists, err = accessListsFrom(c, subsystem); err != nil {
		return nil, err
	}
	if s.MapFile = strings.TrimSpace(c.String("CERTIFICATE_MAPFILE")); s.MapFile != "" {
		if s.MapNames, err = flag(c, "CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS", false); err != nil {
			return nil, err
		}
	}
	s.UIDDomain, s.TrustDomain = c.String("UID_DOMAIN"), c.String("TRUST_DOMAIN")
	for _, f := range []struct {
		name      string
		to        *bool
		otherwise bool
	}{
		{"SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION", &s.MatchSessions, true},
		{"SEC_USE_FAMILY_SESSION", &s.FamilySession, true},
		{"SEC_ENABLE_REMOTE_ADMINISTRATION", &s.Administration, true},
		{"SEC_ENABLE_RESUME_SERVER_RESPONSE", &s.Resume, true},
		{"FIPS", &s.FIPS, false},
	} {
		if *f.to, err = flag(c, f.name, f.otherwise); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		name      string
		to        *time.Duration
		otherwise time.Duration
	}{
		{"SEC_TCP_SESSION_TIMEOUT", &s.StepTimeout, 20 * time.Second},
		{"SEC_TCP_SESSION_DEADLINE", &s.Deadline, 120 * time.Second},
		{"SEC_SESSION_DURATION_SLOP", &s.Slack, 20 * time.Second},
	} {
		*f.to = f.otherwise
		if v, ok := c.Lookup(f.name); ok && strings.TrimSpace(v.Value) != "" {
			if *f.to, err = c.Duration(f.name); err != nil {
				return nil, errs.E("security.Configure", errs.Invalid, f.name, err)
			}
		}
	}
	for _, f := range []struct {
		name      string
		to        *int
		otherwise int
	}{
		{"UDP_NETWORK_FRAGMENT_SIZE", &s.Fragment, cedar.UDPFragment},
		{"UDP_LOOPBACK_FRAGMENT_SIZE", &s.Loopback, cedar.UDPLoopbackFragment},
	} {
		*f.to = f.otherwise
		if v, ok := c.Lookup(f.name); ok && strings.TrimSpace(v.Value) != "" {
			n, err := c.Int(f.name)
			if err != nil {
				return nil, errs.E("security.Configure", errs.Invalid, f.name, err)
			}
			*f.to = cedar.FragmentSize(int(max(0, min(n, cedar.UDPLoopbackFragment))))
		}
	}
	return s, nil
}

// Settings are those of a daemon that has this configuration: names of hosts in its
// lists are looked up and its map file is read, now.
func (c *Knobs) Settings(from Sources) (*Settings, error) {
	s := &Settings{
		UIDDomain: c.UIDDomain, TrustDomain: c.TrustDomain, StepTimeout: c.StepTimeout, Deadline: c.Deadline, Slack: c.Slack,
		MatchSessions: c.MatchSessions, FamilySession: c.FamilySession, Administration: c.Administration, ResumeResponse: c.Resume, FIPS: c.FIPS,
		Fragment: c.Fragment, Loopback: c.Loopback, policies: c.Policies,
	}
	var err error
	if s.Authorizer, err = c.Lists.authorizer(from.Hosts); err != nil {
		return nil, err
	}
	s.Map, err = c.readMap(from)
	return s, err
}

// Policy returns what is wanted of sessions at a level.
func (s *Settings) Policy(l Level) Policy {
	if l >= levels {
		l = Default
	}
	return s.policies[l]
}

// Maps reports whether the map file has a line for a name, for
// [authn.Server.Mapped].
func (s *Settings) Maps(method authn.Method, name string) bool {
	_, ok := s.Map.Lookup(method.Recorded(), name)
	return ok
}

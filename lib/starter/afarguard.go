// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"net/netip"
	"os"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
)

// subsystem is whose knobs a starter reads: STARTER.ALLOW_DAEMON and the like
// go before ALLOW_DAEMON.
const subsystem = "STARTER"

// secure makes what lets others in than those with a session. Schedds of
// 25.14 need it: they mean to come with the session of the claim, but lose its
// name on the way.
func (s *afar) secure() (*security.Settings, security.Authenticator, error) {
	settings, methods, system, err := s.configured()
	if err != nil {
		return nil, nil, err
	}
	return settings, &authn.Server{Settings: methods, System: system, Self: s.self, Mapped: settings.Maps}, nil
}

// self is where the starter is reached.
func (s *afar) self() cedar.Sinful {
	at, _ := cedar.ParseSinful(s.address())
	return at
}

// configured is what the plan says about security, and what of this process
// counts for it.
func (s *afar) configured() (*security.Settings, authn.Settings, authn.System, error) {
	const op = "starter.secure"
	var system authn.System
	c, err := config.Parse("plan", s.plan.Security, config.Options{Subsystem: subsystem})
	if err != nil {
		return nil, authn.Settings{}, system, errs.E(op, errs.Invalid, "plan", err)
	}
	lookup := func(name string) []netip.Addr { return s.names.Addresses(context.Background(), name) }
	settings, err := security.SettingsFrom(c, security.Sources{
		Subsystem: subsystem, ReadFile: os.ReadFile, ReadDir: entries, Hosts: security.Hosts{Lookup: lookup, Local: daemon.Local},
	})
	if err != nil {
		return nil, authn.Settings{}, system, err
	}
	methods, err := authn.SettingsFrom(c, subsystem)
	if s.a.host.System != nil {
		system = s.a.host.System()
	}
	return settings, methods, system, err
}

// entries are the names in a directory.
func entries(path string) ([]string, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

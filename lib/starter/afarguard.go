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
	"github.com/execpoint/execpoint/lib/daemon"
)

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

// configured is what the settings say about security, and what of this process
// counts for it. Names of hosts and files that they name are looked up now.
func (s *afar) configured() (*security.Settings, authn.Settings, authn.System, error) {
	var system authn.System
	lookup := func(name string) []netip.Addr { return s.names.Addresses(context.Background(), name) }
	settings, err := s.set.Security.Settings(security.Sources{
		ReadFile: os.ReadFile, ReadDir: entries, Hosts: security.Hosts{Lookup: lookup, Local: daemon.Local},
	})
	if s.a.host.System != nil {
		system = s.a.host.System()
	}
	return settings, s.set.Methods, system, err
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// secure makes what lets others in than those with a session. Schedds of
// 25.14 need it: they mean to come with the session of the claim, but lose its
// name on the way.
func (s *shadowJob) secure(ctx context.Context) (*security.Settings, security.Authenticator, error) {
	settings, methods, system, err := s.configured(ctx)
	if err != nil {
		return nil, nil, err
	}
	return settings, &authn.Server{Settings: methods, System: system, Self: s.self, Mapped: settings.Maps}, nil
}

// self is where the starter is reached.
func (s *shadowJob) self() cedar.Sinful {
	at, _ := cedar.ParseSinful(s.address())
	return at
}

// configured is what the settings say about security, and what of this process
// counts for it. Names of hosts are looked up until ctx ends, and files are read now.
func (s *shadowJob) configured(ctx context.Context) (*security.Settings, authn.Settings, authn.System, error) {
	var system authn.System
	settings, err := s.set.Security.Settings(s.endpoint.Sources(ctx))
	if s.a.host.System != nil {
		system = s.a.host.System()
	}
	return settings, s.set.Methods, system, err
}

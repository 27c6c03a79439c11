// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/security"
)

// A server of names that does not answer delays the first connection, and never for
// longer than a shadow that reconnects has to say who it is.
func TestNamesThatAreNotFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings := &security.Settings{Authorizer: &security.Authorizer{}, MatchSessions: true}
		g := &guard{Server: &security.Server{}, cfg: &Config{Secure: func(ctx context.Context) (*security.Settings, security.Authenticator, error) {
			<-ctx.Done() // every name is looked up in vain
			return settings, nil, nil
		}}}
		began := time.Now()
		g.prepare()
		if took := time.Since(began); took > toSayWho/2 || g.Settings() != settings {
			t.Errorf("the first connection waited for %v, want %v at most; the settings are %+v", took, toSayWho/2, g.Settings())
		}
	})
}

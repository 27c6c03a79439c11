// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// namesPatience is how long all names of hosts in the lists may take to be looked up.
// A shadow that reconnects waits for it, and for no longer than toSayWho. A name that
// is not found by then lets no peer in.
const namesPatience = 10 * time.Second

// guard finds out who comes. Few jobs are ever visited, so it is made ready
// when the first visitor is there.
type guard struct {
	*security.Server
	cfg   *Config
	ready sync.Once
}

// Handshake implements listen.Security.
func (g *guard) Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	g.ready.Do(g.prepare)
	return g.Server.Handshake(ctx, conn, from)
}

func (g *guard) prepare() {
	if g.cfg.Secure != nil {
		ctx, cancel := context.WithTimeout(context.Background(), namesPatience)
		defer cancel()
		settings, who, err := g.cfg.Secure(ctx)
		if err == nil {
			g.Configure(settings, who)
			return
		}
		g.cfg.Endpoint.Log.Warn("only those with a session reach the job", "err", err)
	}
	g.Configure(&security.Settings{
		Authorizer: &security.Authorizer{}, StepTimeout: perMessage, Deadline: toSayWho, MatchSessions: true, ResumeResponse: true,
	}, nil)
}

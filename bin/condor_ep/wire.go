// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/execpoint/execpoint/bin/internal/pooltool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/tool/ask"
)

// far is a condor_startd of this project in a pool, which is asked over the wire
// with the credentials of who asks.
type far struct {
	name   string
	at     cedar.Sinful
	client *security.Client
}

// reach finds the daemon that -name names, in the pool of -pool or that of this
// machine's configuration.
func (t target) reach(ctx context.Context) (*far, error) {
	if t.name == "" {
		return nil, errors.New("-pool says where the one is known that -name names; there is no -name")
	}
	snap, client, err := poolToolOf(t.config)
	if err != nil {
		return nil, err
	}
	port, err := snap.Int("COLLECTOR_PORT")
	if err != nil {
		return nil, err
	}
	find, err := pooltool.CollectorFinder(snap)
	if err != nil {
		return nil, err
	}
	collectors := snap.List("COLLECTOR_HOST")
	if t.pool != "" {
		collectors = []string{t.pool}
	}
	at, err := ask.Directory{Open: client, Port: int(port), Find: find}.Locate(ctx, collectors, directory.ExecutionPoint, t.name)
	if err != nil {
		return nil, err
	}
	return &far{t.name, at, client}, nil
}

// ask puts a question of the control socket to it.
func (f *far) ask(ctx context.Context, req observe.Request) (observe.Response, error) {
	return ask.ExecutionPoint(ctx, f.client, f.at, f.name, req)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/bin/internal/pooltool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
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
	at, err := directory{client, int(port), find}.locate(ctx, collectors, pool.ExecutionPoint, t.name)
	if err != nil {
		return nil, err
	}
	return &far{t.name, at, client}, nil
}

// ask puts a question of the control socket to it.
func (f *far) ask(ctx context.Context, req observe.Request) (observe.Response, error) {
	const op = "condor_ep.ask"
	number, _ := observe.CommandOf(req.Op)
	text, err := json.Marshal(req)
	if err != nil {
		return observe.Response{}, err
	}
	conn, _, err := f.client.Command(ctx, f.at, number, security.Options{})
	if err != nil {
		return observe.Response{}, fmt.Errorf("%s cannot be asked; a startd of HTCondor answers condor_status, condor_drain and condor_vacate: %w", f.name, err)
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	conn.PutString(string(text))
	if err := conn.EndMessage(); err != nil {
		return observe.Response{}, err
	}
	answer, err := conn.String()
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return observe.Response{}, fmt.Errorf("%s has not answered: %w", f.name, err)
	}
	var resp observe.Response
	if err := json.Unmarshal([]byte(answer), &resp); err != nil {
		return observe.Response{}, errs.E(op, errs.Broken, f.name, err)
	}
	if resp.Err != "" {
		return resp, errs.E(op, errs.Invalid, f.name, errors.New(resp.Err))
	}
	return resp, nil
}

// history asks for the jobs that ran there, the newest first.
func (f *far) history(ctx context.Context, constraint string, limit int, show func(*classad.Ad) error) error {
	query := classad.NewAd()
	if constraint == "" {
		constraint = "true"
	}
	if err := query.SetText("Requirements", constraint); err != nil {
		return err
	}
	if limit > 0 {
		query.SetInt("NumJobMatches", int64(limit))
	}
	conn, _, err := f.client.Command(ctx, f.at, command.GetHistory, security.Options{Authenticate: true})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	conn.PutAd(query, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	for {
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return err
		}
		// The last one is no job: its owner is 0, and it says how it went.
		if owner, ok := ad.EvalInt("Owner", nil); ok && owner == 0 {
			if why, bad := ad.EvalString("ErrorString", nil); bad {
				return errors.New(why)
			}
			return conn.EndOfMessage()
		}
		if err := show(ad); err != nil {
			return err
		}
	}
}

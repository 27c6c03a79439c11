// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// ExecutionPoint puts a question of the control socket to a daemon of this project. A
// refusal is an errs.Invalid about name, and what it says stands in the response too.
func ExecutionPoint(ctx context.Context, open directory.Opener, at cedar.Sinful, name string, req observe.Request) (observe.Response, error) {
	const op = "condor_ep.ask" // as scripts know it from condor_ep
	number, _ := observe.CommandOf(req.Op)
	text, err := json.Marshal(req)
	if err != nil {
		return observe.Response{}, err
	}
	conn, _, err := open.Command(ctx, at, number, security.Options{})
	if err != nil {
		return observe.Response{}, fmt.Errorf("%s cannot be asked; a startd of HTCondor answers condor_status, condor_drain and condor_vacate: %w", name, err)
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
		return observe.Response{}, fmt.Errorf("%s has not answered: %w", name, err)
	}
	var resp observe.Response
	if err := json.Unmarshal([]byte(answer), &resp); err != nil {
		return observe.Response{}, errs.E(op, errs.Broken, name, err)
	}
	if resp.Err != "" {
		return resp, errs.E(op, errs.Invalid, name, errors.New(resp.Err))
	}
	return resp, nil
}

// History asks a startd for the jobs that ran there, the newest first, and calls show
// with each. constraint is an expression over their ads, "" for all; a limit of 0 is
// none. The error is about the constraint, the wire, or what show said.
func History(ctx context.Context, open directory.Opener, at cedar.Sinful, constraint string, limit int, show func(*classad.Ad) error) error {
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
	conn, _, err := open.Command(ctx, at, command.GetHistory, security.Options{Authenticate: true})
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

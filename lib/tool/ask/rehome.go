// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// Move is a move of an Execution Point to another access point.
type Move struct {
	Pool    string // the collector that knows the access point; "" for that of the Execution Point
	Timeout int    // seconds after which it goes back unless it has taken slots; 0 for never
	Cancel  bool   // take the move back
	Reboot  bool   // reboot the machine when its jobs are gone, if its STARTD_REHOME_ALLOW_REBOOT lets
}

// Rehome finds both in the directory, makes sure that the new home answers, and sends
// the order. home is the list of collectors that know the Execution Point ep. A
// cancellation needs no new home. The error says which of the two is at fault.
func Rehome(ctx context.Context, d Directory, home []string, ep, schedd string, m Move) error {
	if !m.Cancel {
		ask := home
		if m.Pool != "" {
			ask = []string{m.Pool}
		}
		at, err := d.Locate(ctx, ask, directory.AccessPoint, schedd)
		if err == nil {
			err = Ping(ctx, d.Open, at)
		}
		if err != nil {
			return fmt.Errorf("cannot reach schedd %s: %w", schedd, err)
		}
	}
	at, err := d.Locate(ctx, home, directory.ExecutionPoint, ep)
	if err != nil {
		return err
	}
	ad := classad.NewAd()
	ad.SetString("ScheddName", schedd)
	if m.Pool != "" {
		ad.SetString("ScheddPool", m.Pool)
	}
	ad.SetInt("RehomeTimeout", int64(m.Timeout))
	if m.Cancel {
		ad.SetBool("Cancel", true)
	}
	if m.Reboot {
		ad.SetBool("Reboot", true)
	}
	conn, _, err := d.Open.Command(ctx, at, command.Rehome, security.Options{})
	if err != nil {
		return fmt.Errorf("failed to start REHOME command to %s: %w", ep, err)
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	reply, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return fmt.Errorf("failed to get response to REHOME request to %s: %w", ep, err)
	}
	if done, _ := reply.EvalBool("Result", nil); !done {
		code, _ := reply.EvalInt("ErrorCode", nil)
		text, _ := reply.EvalString("ErrorString", nil)
		return fmt.Errorf("received failure from %s in response to REHOME request: error code %d: %s", ep, code, text)
	}
	return nil
}

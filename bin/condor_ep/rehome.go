// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/pooltool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/pool"
)

// rehomeFlags are the options of condor_ep rehome.
type rehomeFlags struct {
	pool           string
	cancel, reboot bool
	timeout        int
	json           bool
}

// rehomePatience is how long all of it may take.
const rehomePatience = 60 * time.Second

// cmdRehome has an Execution Point of a pool move to another access point.
func cmdRehome(args []string, stdout, stderr io.Writer) int {
	const who = "condor_ep rehome"
	var f rehomeFlags
	fs := newFlags("rehome", stdout, stderr)
	fs.StringVar(&f.pool, "schedd-pool", "", "")
	fs.BoolVar(&f.cancel, "cancel", false, "")
	fs.IntVar(&f.timeout, "timeout", 0, "")
	fs.BoolVar(&f.reboot, "reboot", false, "")
	fs.BoolVar(&f.json, "json", false, "")
	names, status, ok := parsedMixed(fs, args)
	if !ok {
		return status
	}
	if len(names) != 2 || f.timeout < 0 || f.timeout > math.MaxInt32 {
		return fs.Misuse("want the name of an Execution Point and that of an access point, and a timeout of 0 or more seconds")
	}
	snap, client, err := poolTool()
	port := int64(0)
	var find func(cedar.Sinful) (cedar.Sinful, error)
	if err == nil {
		port, err = snap.Int("COLLECTOR_PORT")
	}
	if err == nil {
		find, err = pooltool.CollectorFinder(snap)
	}
	if err != nil {
		printError(stderr, who, err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), rehomePatience)
	defer cancel()
	home := snap.List("COLLECTOR_HOST")
	if err := rehome(ctx, directory{client, int(port), find}, home, names[0], names[1], f); err != nil {
		if f.json {
			if status := tell(true, stdout, stderr, who, "", map[string]any{"ok": false, "error": err.Error()}); status != exitOK {
				return status
			}
		} else {
			fmt.Fprintf(stderr, "%s: %v\n", who, err)
		}
		return exitSomeFailed
	}
	said := "Sent rehome command to " + names[0]
	switch {
	case f.cancel:
		said = "Sent rehome cancel command to " + names[0]
	case f.reboot:
		said += " (host will reboot if permitted)"
	}
	return tell(f.json, stdout, stderr, who, said, map[string]any{"ok": true, "ep": names[0], "schedd": names[1], "cancelled": f.cancel, "reboot": f.reboot})
}

// parsedMixed parses a command line whose options may stand anywhere, and
// returns the rest of it.
func parsedMixed(fs *commands.Flags, args []string) (rest []string, status int, ok bool) {
	for {
		if status, ok := parsed(fs, args); !ok {
			return nil, status, false
		}
		if fs.NArg() == 0 {
			return rest, exitOK, true
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

// rehome finds both, makes sure that the new home answers, and sends the
// command. A cancellation needs no new home.
func rehome(ctx context.Context, d directory, home []string, ep, schedd string, f rehomeFlags) error {
	if !f.cancel {
		ask := home
		if f.pool != "" {
			ask = []string{f.pool}
		}
		at, err := d.locate(ctx, ask, pool.AccessPoint, schedd)
		if err == nil {
			err = ping(ctx, d.open, at)
		}
		if err != nil {
			return fmt.Errorf("cannot reach schedd %s: %w", schedd, err)
		}
	}
	at, err := d.locate(ctx, home, pool.ExecutionPoint, ep)
	if err != nil {
		return err
	}
	ad := classad.NewAd()
	ad.SetString("ScheddName", schedd)
	if f.pool != "" {
		ad.SetString("ScheddPool", f.pool)
	}
	ad.SetInt("RehomeTimeout", int64(f.timeout))
	if f.cancel {
		ad.SetBool("Cancel", true)
	}
	if f.reboot {
		ad.SetBool("Reboot", true)
	}
	conn, _, err := d.open.Command(ctx, at, command.Rehome, security.Options{})
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

// ping asks whether a daemon lets us in.
func ping(ctx context.Context, open pool.Opener, at cedar.Sinful) error {
	conn, _, err := open.Command(ctx, at, command.DCNop, security.Options{})
	if err != nil {
		return err
	}
	return conn.Close() // the handshake was the question
}

// directory is where a daemon's address can be learnt.
type directory struct {
	open pool.Opener
	port int // of collectors that are named without one
	// find returns where a collector is that is configured with port 0.
	find func(cedar.Sinful) (cedar.Sinful, error)
}

// locate asks the collectors of a list where a daemon is. Entries that name no
// collector are a reason only where the others do not know it.
func (d directory) locate(ctx context.Context, list []string, kind pool.Kind, name string) (cedar.Sinful, error) {
	return pooltool.Locate(ctx, d.open, d.port, d.find, list, kind, name)
}

// poolTool is what this program needs to speak with the daemons of this
// machine's pool.
func poolTool() (*config.Snapshot, *security.Client, error) { return poolToolOf("") }

// poolToolOf is poolTool with another configuration, unless root is "".
func poolToolOf(root string) (*config.Snapshot, *security.Client, error) {
	var err error
	if root == "" {
		root, err = machineRoot()
	} else {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, nil, err
	}
	var facts map[string]string
	if inv := inventory(); inv != nil {
		facts = machine.ConfigFacts(inv)
	}
	return pooltool.Open(root, facts)
}

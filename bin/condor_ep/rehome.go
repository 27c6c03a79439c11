// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/bin/internal/pooltool"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/ask"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// rehomeFlags are the options of condor_ep rehome.
type rehomeFlags struct {
	ask.Move
	json bool
}

// rehomePatience is how long all of it may take.
const rehomePatience = 60 * time.Second

// cmdRehome has an Execution Point of a pool move to another access point.
func cmdRehome(args []string, stdout, stderr io.Writer) int {
	const who = "condor_ep rehome"
	var f rehomeFlags
	fs := newFlags("rehome", stdout, stderr)
	fs.StringVar(&f.Pool, "schedd-pool", "", "")
	fs.BoolVar(&f.Cancel, "cancel", false, "")
	fs.IntVar(&f.Timeout, "timeout", 0, "")
	fs.BoolVar(&f.Reboot, "reboot", false, "")
	fs.BoolVar(&f.json, "json", false, "")
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	names := fs.Args()
	if len(names) != 2 || f.Timeout < 0 || f.Timeout > math.MaxInt32 {
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
	if err := ask.Rehome(ctx, ask.Directory{Open: client, Port: int(port), Find: find}, home, names[0], names[1], f.Move); err != nil {
		if f.json {
			if status := tell(true, stdout, stderr, who, "", map[string]any{"ok": false, "error": err.Error()}); status != exitOK {
				return status
			}
		} else {
			printError(stderr, who, err)
		}
		return exitSomeFailed
	}
	said := "Sent rehome command to " + names[0]
	switch {
	case f.Cancel:
		said = "Sent rehome cancel command to " + names[0]
	case f.Reboot:
		said += " (host will reboot if permitted)"
	}
	return tell(f.json, stdout, stderr, who, said, map[string]any{"ok": true, "ep": names[0], "schedd": names[1], "cancelled": f.Cancel, "reboot": f.Reboot})
}

// poolTool is what this program needs to speak with the daemons of this
// machine's pool.
func poolTool() (*config.Snapshot, *security.Client, error) { return poolToolOf("") }

// poolToolOf is poolTool with another configuration, unless root is "".
func poolToolOf(root string) (*config.Snapshot, *security.Client, error) {
	var err error
	if root == "" {
		root, err = system.RootFile("")
	} else {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, nil, err
	}
	var facts map[string]string
	if p, err := thishost.Visit(); err == nil {
		// What a scanner could not find stays unknown.
		inv, _ := machine.Scan(context.Background(), time.Now(), p.Scanners()...)
		facts = machine.ConfigFacts(inv)
	}
	return pooltool.Open(root, facts)
}

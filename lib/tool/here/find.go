// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"slices"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// Machine is where Execution Points are looked for.
type Machine struct {
	Runs    func() ([]run.Dir, []run.Owner, error) // that are recorded of this user
	Daemons func() ([]run.Daemon, error)           // the same
	Alive   func(host.ProcID) bool

	// Config is the configuration of this machine, nil where it has none or none of use:
	// whoever asks about what runs does not ask about that.
	Config func() *config.Snapshot

	// Named says that the user has named that configuration (CONDOR_CONFIG), and means
	// the daemon of it where several run.
	Named bool
}

// Found are the Execution Points that can be asked.
type Found struct {
	Sockets []string

	named []string     // those of the configuration that the user has named
	ended []run.Daemon // daemons of this user that do not run any more
}

// Of is the daemon of a configuration, which stands alone.
func Of(snap *config.Snapshot) Found {
	return Found{Sockets: run.ControlSockets(snap), ended: []run.Daemon{{Log: snap.String("STARTD_LOG")}}}
}

// Find looks for the runs and daemons that this user's records name, and for the
// daemons whose control socket is in RUN of this machine's configuration.
func (m Machine) Find() (Found, error) {
	var f Found
	dirs, owners, err := m.Runs()
	if err != nil {
		return f, err
	}
	for i, d := range dirs {
		if !owners[i].Proc.IsZero() && m.Alive(owners[i].Proc) {
			f.Sockets = append(f.Sockets, d.Socket())
		}
	}
	daemons, err := m.Daemons()
	if err != nil {
		return f, err
	}
	for _, d := range daemons {
		if d.Socket != "" && m.Alive(d.Proc) {
			f.Sockets = append(f.Sockets, d.Socket)
		} else {
			f.ended = append(f.ended, d)
		}
	}
	if snap := m.Config(); snap != nil {
		here := run.ControlSockets(snap)
		if m.Named {
			f.named = here
		}
		for _, path := range here {
			if !slices.Contains(f.Sockets, path) {
				f.Sockets = append(f.Sockets, path)
			}
		}
	}
	return f, nil
}

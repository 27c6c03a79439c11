// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/history"
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

// Histories are the files in which the runs and daemons of this user keep the jobs that
// ended, and the one of this machine's configuration, each once.
func (m Machine) Histories() ([]string, error) {
	dirs, _, err := m.Runs()
	if err != nil {
		return nil, err
	}
	daemons, err := m.Daemons()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, d := range dirs {
		if d.Files != "" {
			all = append(all, filepath.Join(d.Log(), "startd_history"))
		}
	}
	for _, d := range daemons {
		if d.History != "" {
			all = append(all, d.History)
		}
	}
	if snap := m.Config(); snap != nil {
		o, err := history.OptionsFrom(snap)
		if err == nil && o.Path != "" && !slices.Contains(all, o.Path) {
			all = append(all, o.Path)
		}
	}
	return all, nil
}

// HistoryOf is the history of a configuration. It is an error if it keeps none.
func HistoryOf(snap *config.Snapshot) (string, error) {
	o, err := history.OptionsFrom(snap)
	if err == nil && o.Path == "" {
		err = errors.New("STARTD_HISTORY is empty: no history is kept")
	}
	return o.Path, err
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

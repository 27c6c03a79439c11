// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/startd"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
)

// version is what ads carry where the program does not say its own.
const version = "0.1.0"

// Run surveys the machine and fills the options of a run without a pool. What
// remains is the caller's: Jobs, a Log if it wants one, and whatever it wants
// otherwise. found is what could not be found out of the machine, for the log.
func (s *System) Run(ctx context.Context, c Configuration) (o run.Options, found []error, err error) {
	read := s.Reader(c)
	load := func(inv *machine.Inventory) (*config.Snapshot, error) { return read(ctx, inv, nil) }
	if o, found, err = run.Prepare(ctx, s, load); err != nil {
		return run.Options{}, found, err
	}
	o.Version, o.StarterEnv, o.StarterLog = version, c.env(), os.Stderr
	o.StarterPath, o.StarterArgs = s.starter()
	o.Programs, o.Log = filepath.Dir(s.Self), slog.New(slog.DiscardHandler)
	me, err := user.Current()
	if err != nil {
		return run.Options{}, found, err
	}
	o.User = me.Username + "@" + cmp.Or(o.Config.String("UID_DOMAIN"), o.Inventory.FullHostname)
	return o, found, nil
}

// Daemon fills the options of the daemon of a pool. The caller changes what it
// wants otherwise.
func (s *System) Daemon(c Configuration) startd.Options {
	o := startd.Options{
		Platform: s, Load: s.Reader(c), Env: c.env(), System: asstarter.Credentials(), Version: version, PID: os.Getpid(),
		Programs: filepath.Dir(s.Self), Signals: Signals(),
	}
	o.StarterPath, o.StarterArgs = s.starter()
	return o
}

// starter is this program as a starter: its main calls asstarter.Become.
func (s *System) starter() (path string, args []string) {
	return s.Self, []string{filepath.Base(s.Self), protocol.Command}
}

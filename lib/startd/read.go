// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/run"
)

// paths are the directories that can be used.
func paths(all []machine.SlotExecute) []string {
	var out []string
	for _, x := range all {
		if x.Unusable == "" {
			out = append(out, x.Path)
		}
	}
	return out
}

// read finds the machine and the configuration.
func (d *daemonState) read(ctx context.Context) error {
	var inv *machine.Inventory
	_ = d.during("what can be found out of the machine, such as its name", func() error {
		inv, d.found.unknown = machine.Scan(ctx, time.Now(), d.o.Platform.Scanners()...)
		return nil
	})
	// What could be read says where the log is, if the rest is wrong.
	load := func(later []config.Text) (snap *config.Snapshot, err error) {
		err = d.during("the configuration: a command or a file of it", func() error {
			if snap, err = d.o.Load(ctx, inv, later); snap != nil {
				d.conf.atStart = snap
			}
			return err
		})
		return snap, err
	}
	snap, err := load(nil)
	if err != nil {
		return err
	}
	if d.conf.remote, err = daemon.NewRemoteConfig(snap, subsystem, d.ours); err != nil {
		return err
	}
	later, err := d.conf.remote.Texts()
	if err != nil {
		return err
	}
	if snap, err = load(later); err != nil {
		return err
	}
	if _, err := inv.Prefer(snap); err != nil {
		return err
	}
	if snap, err = load(later); err != nil {
		return err
	}
	if err := d.checkPlaces(snap); err != nil {
		return err
	}
	d.found.inventory, d.conf.current = inv, snap
	if d.settings, err = pool.SettingsFrom(snap); err != nil {
		return err
	}
	d.version = fmt.Sprintf("$CondorVersion: %s %s execpoint-%s $", config.Version, d.start.UTC().Format(time.DateOnly), d.o.Version)
	return nil
}

// checkPlaces refuses directories that cannot be meant.
func (d *daemonState) checkPlaces(s *config.Snapshot) error {
	const account = "condor" // whose home LOCAL_DIR is by default
	return run.CheckPlaces(s, d.o.System.Condor == account || d.o.System.User == account)
}

// detect finds out of the machine what the configuration names: its EXECUTE,
// which is there by now. Its programs are asked by the run, beside the rest.
func (d *daemonState) detect(ctx context.Context, space machine.Scanner) error {
	return d.during("the file system of EXECUTE: "+d.conf.atStart.String("EXECUTE"), func() error {
		for _, e := range d.found.inventory.Apply(ctx, time.Now(), space, machine.ConfigScanner(d.conf.atStart)) {
			if errs.Is(e, errs.Invalid) {
				return e
			}
			d.found.unknown = append(d.found.unknown, e)
		}
		return nil
	})
}

func (d *daemonState) env(name string) string {
	for _, kv := range d.o.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// root is the file that the configuration begins with.
func (d *daemonState) root() string {
	if all := d.conf.atStart.Sources(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// now is the configuration in force.
func (d *daemonState) now() *config.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conf.current
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
)

// occupy keeps other startds from our directories, our log and our name. The
// directories of sandboxes are made if they are not there.
func (d *daemonState) occupy(ctx context.Context, self host.ProcID, execute string, elsewhere []machine.SlotExecute) (*run.Occupied, error) {
	name := ad.DaemonName(d.snap.String("STARTD_NAME"), d.inv.FullHostname)
	places := []run.Place{run.ExecutePlace("EXECUTE", execute)}
	taken := map[string]bool{execute: true}
	for _, x := range elsewhere {
		if !taken[x.Path] { // several slots may share one
			taken[x.Path] = true
			places = append(places, run.ExecutePlace(fmt.Sprintf("SLOT%d_EXECUTE", x.Slot), x.Path))
		}
	}
	for dir := range taken {
		if err := run.CheckExecute(dir); err != nil {
			return nil, err
		}
	}
	set, err := observe.LogSettingsFrom(d.snap, subsystem)
	if err != nil {
		return nil, err
	}
	if !set.Syslog {
		places = append(places, run.LogPlace("STARTD_LOG", logPath(d.snap, set)))
	}
	if lock := d.snap.String("LOCK"); lock != "" {
		places = append(places, run.NamePlace("STARTD_NAME", name, filepath.Clean(lock)))
	}
	return run.Occupy(ctx, run.Occupation{
		Lock: d.o.Platform.Lock, Patience: run.OccupyPatience, Log: d.log,
		Me: host.Holder{Program: "condor_startd", Name: name, Machine: d.inv.FullHostname, Proc: self, Since: time.Now()},
	}, places...)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
)

// occupy keeps other startds from our directories, our log and our name. The
// directories of sandboxes are tested as well: EXECUTE is made if it is not
// there, and nothing begins without it; those of single slots come back with
// what is wrong with them.
func (d *daemonState) occupy(ctx context.Context, self host.ProcID, execute string, elsewhere []machine.SlotExecute, errno host.Errno) (*run.Occupied, []machine.SlotExecute, error) {
	name := ad.DaemonName(d.conf.atStart.String("STARTD_NAME"), d.found.inventory.FullHostname)
	if err := run.CheckExecute(execute); err != nil {
		return nil, nil, err
	}
	elsewhere = run.CheckSlotExecutes(elsewhere, errno)
	places := []run.Place{run.ExecutePlace("EXECUTE", execute)}
	taken := []string{execute}
	for _, x := range elsewhere {
		if x.Unusable == "" && !slices.ContainsFunc(taken, func(path string) bool { return sameDir(path, x.Path) }) {
			taken = append(taken, x.Path)
			places = append(places, run.ExecutePlace(fmt.Sprintf("SLOT%d_EXECUTE", x.Slot), x.Path))
		}
	}
	set, err := observe.LogSettingsFrom(d.conf.atStart, subsystem)
	if err != nil {
		return nil, nil, err
	}
	if !set.Syslog {
		places = append(places, run.LogPlace("STARTD_LOG", logPath(d.conf.atStart, set)))
	}
	if lock := d.conf.atStart.String("LOCK"); lock != "" {
		places = append(places, run.NamePlace("STARTD_NAME", name, filepath.Clean(lock)))
	}
	occupied, err := run.Occupy(ctx, run.Occupation{
		Lock: d.o.Platform.Lock, Patience: run.OccupyPatience, Log: d.log,
		Me: host.Holder{Program: "condor_startd", Name: name, Machine: d.found.inventory.FullHostname, Proc: self, Since: time.Now()},
	}, places...)
	return occupied, elsewhere, err
}

// sameDir reports whether two paths lead to one directory. Several slots may share
// one, and be given it by other names: our own lock would keep us out.
func sameDir(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

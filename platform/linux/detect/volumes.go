// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/execpoint/execpoint/lib/machine"
)

// Volumes returns the scanner of the file systems that SLOT<N>_EXECUTE names.
// It runs after Volume and before machine.ConfigScanner. Directories of one
// file system share a volume; those on the file system of EXECUTE share that.
// All are asked at once, so that any number of dead ones holds the start up
// only as long as one. A directory that does not answer, or is not there, has
// nothing to give: its slots get a volume of 0 KiB, and an error says why.
func Volumes(sys System, dirs []machine.SlotExecute) machine.Scanner {
	return volumesScanner{sys, dirs}
}

type volumesScanner struct {
	sys  System
	dirs []machine.SlotExecute
}

func (volumesScanner) Name() string { return "volumes" }

func (s volumesScanner) Scan(ctx context.Context, inv *machine.Inventory) error {
	if len(s.dirs) == 0 {
		return nil
	}
	found := make(map[string]*space, len(s.dirs))
	var paths []string
	for _, d := range s.dirs {
		if found[d.Path] == nil {
			found[d.Path] = new(space)
			paths = append(paths, d.Path)
		}
	}
	var asking sync.WaitGroup
	for _, path := range paths {
		answer := found[path]
		asking.Go(func() {
			v := volume{sys: s.sys, path: path, name: true}
			*answer, answer.err = v.measure(ctx)
		})
	}
	asking.Wait()

	inv.Volumes = nil
	var problems []error
	for _, d := range s.dirs {
		is := found[d.Path]
		id := is.id
		if is.err != nil {
			id = d.Path
		} else if id != "" && id == inv.Execute.ID {
			continue
		}
		i := slices.IndexFunc(inv.Volumes, func(v machine.Volume) bool { return v.ID == id })
		if i < 0 {
			if is.err != nil {
				problems = append(problems, is.err)
			}
			i = len(inv.Volumes)
			inv.Volumes = append(inv.Volumes, machine.Volume{ID: id, TotalKiB: is.totalKiB, AvailableKiB: is.availableKiB, FreeKiB: is.availableKiB})
		}
		v := &inv.Volumes[i]
		v.Slots = append(v.Slots, d.Slot)
		if !slices.Contains(v.Paths, d.Path) {
			v.Paths = append(v.Paths, d.Path)
		}
	}
	inv.Learn("statfs(2)", "Volumes")
	return errors.Join(problems...)
}

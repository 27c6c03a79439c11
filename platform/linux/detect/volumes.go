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

// question is what was asked about the directories of slots.
type question struct {
	answers map[string]*space // by path
	open    sync.WaitGroup
}

// ask asks the file systems of all directories at once, so that any number of
// dead ones holds the start up only as long as one.
func ask(ctx context.Context, sys System, dirs []machine.SlotExecute) *question {
	q := &question{answers: make(map[string]*space, len(dirs))}
	for _, d := range dirs {
		if q.answers[d.Path] != nil {
			continue
		}
		answer := new(space)
		q.answers[d.Path] = answer
		q.open.Go(func() {
			v := volume{sys: sys, path: d.Path, name: true}
			*answer, answer.err = v.measure(ctx)
		})
	}
	return q
}

// volumes waits for the answers. Directories of one file system share a
// volume; those on the file system of EXECUTE share that and are left out. A
// directory that does not answer, or is not there, has nothing to give: its
// slots get a volume of 0 KiB, and the error says why.
func (q *question) volumes(inv *machine.Inventory, dirs []machine.SlotExecute) error {
	q.open.Wait()
	if len(dirs) == 0 {
		return nil
	}
	inv.Volumes = nil
	var problems []error
	for _, d := range dirs {
		is := q.answers[d.Path]
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

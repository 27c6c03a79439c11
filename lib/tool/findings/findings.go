// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/check"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/tool/slots"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// Machine is what a configuration is checked for.
type Machine struct {
	// Scanners find out what the machine has; nil if it cannot be looked at: then
	// nothing is said of slots.
	Scanners []machine.Scanner

	// Volume looks at the file system where EXECUTE is, or will be; nil if the scanners
	// tell its size.
	Volume func(*config.Snapshot) machine.Scanner

	// Files tells of the files that the configuration names; nil does not ask.
	Files check.Files

	// Found is what inventory programs would say, as far as it is known.
	Found []slot.Inventory

	Now time.Time
}

// Described is a machine that a file tells of. Its files and programs are not here.
func Described(d *slots.Machine, now time.Time) Machine {
	return Machine{Scanners: []machine.Scanner{d}, Found: d.Found, Now: now}
}

// inventory is the machine before a configuration; nil where it cannot be looked at.
// What a scanner could not find stays unknown, and is not checked.
func (m *Machine) inventory(ctx context.Context) *machine.Inventory {
	if m.Scanners == nil {
		return nil
	}
	inv, _ := machine.Scan(ctx, m.Now, m.Scanners...)
	return inv
}

// Of lists what is wrong with a configuration, by place. o says how it is read; what the
// machine tells of itself is put to its facts.
func (m Machine) Of(ctx context.Context, o config.Options) []check.Finding {
	facts := make(map[string]string)
	if inv := m.inventory(ctx); inv != nil {
		facts = machine.ConfigFacts(inv)
	}
	for name, value := range o.Facts {
		facts[name] = value
	}
	o.Facts = facts
	snap, partial, list := check.Load(o)
	if snap != nil {
		s := check.Subject{Config: snap, Partial: partial, Inventory: m.divisible(ctx, snap), Found: m.Found, Source: o.ReadFile, Files: m.Files}
		s.Unknown = m.unknown(snap)
		list = append(list, check.Snapshot(s)...)
	}
	return check.Sorted(list)
}

// unknown are the resources of which inventory programs would tell that are not run.
func (m *Machine) unknown(snap *config.Snapshot) (names []string) {
	scripts, _ := hook.ScriptsFrom(snap)
	for _, s := range scripts {
		if !slices.ContainsFunc(m.Found, func(i slot.Inventory) bool { return strings.EqualFold(i.Resource, s.Resource) }) {
			names = append(names, s.Resource)
		}
	}
	return names
}

// divisible is what the configuration lets slots have of the machine; nil if
// that cannot be told.
func (m *Machine) divisible(ctx context.Context, snap *config.Snapshot) *machine.Inventory {
	one := m.inventory(ctx)
	if one == nil {
		return nil
	}
	if _, err := one.Prefer(snap); err != nil {
		return nil // said as a finding about the knob
	}
	apply := []machine.Scanner{machine.ConfigScanner(snap)}
	if m.Volume != nil {
		apply = append([]machine.Scanner{m.Volume(snap)}, apply...)
	}
	if problems := one.Apply(ctx, m.Now, apply...); len(problems) > 0 && one.UsableCores == 0 {
		return nil
	}
	return one
}

// Counts reports whether a list has a finding that counts: any, or with warningsOK an
// error.
func Counts(list []check.Finding, warningsOK bool) bool {
	return slices.ContainsFunc(list, func(f check.Finding) bool { return f.Severity == check.Error || !warningsOK })
}

// Print prints the lines of each finding, without what a terminal would obey, or a JSON
// object. The error is the writer's.
func Print(w io.Writer, list []check.Finding, asJSON bool) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, f := range list {
		if asJSON {
			if err := out.Encode(f); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(w, words.Lines(f.String())); err != nil {
			return err
		}
	}
	return nil
}

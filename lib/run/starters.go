// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// starterSettings are what one configuration says to starters: to those of each slot
// type, and to one without a slot. They are made when the configuration is read, and
// do not change: an activation keeps those that it began with.
type starterSettings struct {
	any    typeSettings
	byType map[int]typeSettings
	types  map[int]int // of slots by their number

	contain containment
}

// typeSettings are those for the slots of one type.
type typeSettings struct {
	config   *config.Snapshot // as such a starter reads it
	settings *protocol.Settings
}

// startersOf are the settings of starters on this machine: of the slot types there
// are, and with what jobs of a pool need where there is one. An error says what of the
// configuration cannot be used.
func (n *node) startersOf(s *config.Snapshot) (*starterSettings, error) {
	all := &starterSettings{byType: make(map[int]typeSettings), types: n.slots.types}
	var err error
	if all.any, err = n.settingsOf(s, 0); err != nil {
		return nil, err
	}
	for _, t := range n.slots.types {
		if _, there := all.byType[t]; there || t == 0 {
			continue
		}
		if all.byType[t], err = n.settingsOf(s, t); err != nil {
			return nil, err
		}
	}
	all.contain = n.containmentOf(all)
	return all, nil
}

func (n *node) settingsOf(s *config.Snapshot, slotType int) (typeSettings, error) {
	var of typeSettings
	var err error
	if of.config, err = protocol.Configuration(s, slotType); err != nil {
		return of, err
	}
	names := make([]string, len(n.slots.resources))
	for i, r := range n.slots.resources {
		names[i] = r.Name
	}
	if of.settings, err = protocol.SettingsFrom(of.config, s, names); err != nil {
		return of, err
	}
	if n.serving() {
		of.settings.Pool, err = protocol.PoolSettingsFrom(of.config)
	}
	s.NoteUse(of.config)
	return of, err
}

// slotTypes are the types of the slots of a ledger, by their numbers.
func slotTypes(l *slot.Ledger) map[int]int {
	all := make(map[int]int)
	for s := range l.Slots() {
		all[s.ID.N] = s.TypeID
	}
	return all
}

// of are the settings for a slot; a dynamic one's are those of its parent.
func (s *starterSettings) of(id slot.ID) typeSettings {
	if of, ok := s.byType[s.types[id.N]]; ok {
		return of
	}
	return s.any
}

// starterOf are the settings in force for a starter in a slot. It may be called by
// anybody.
func (n *node) starterOf(id slot.ID) typeSettings { return n.starter.settings.Load().of(id) }

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
)

// settings are what the configuration says about ads.
type settings struct {
	cfg *config.Snapshot

	name       string // behind the @ of slot names
	jobAttrs   []string
	slotAttrs  []string        // shown in the ads of all slots, as slotN_X
	rollup     []string        // further attributes collected from dynamic slots
	hasRollup  bool            // ADVERTISE_PSLOT_ROLLUP_INFORMATION
	hasDaemon  bool            // a daemon ad goes with the slot ads
	local      bool            // the slots are for the access point of this machine (IS_LOCAL_STARTD)
	attached   string          // the access point that all slots are offered to, "" if none
	health     []*classad.Expr // STARTD_HEALTH_EXPRS, nil if it is not set
	withinText string          // WithinResourceLimits without the custom resources

	wholeClaims bool          // a partitionable slot can be claimed as a whole
	wholeTime   time.Duration // for so long

	nested  bool // properties in which instances differ stand in ads, not in lists
	verbose bool // such an ad has all properties of the instance

	uptimes bool // Uptime<R>Seconds is told (ADVERTISE_CMR_UPTIME_SECONDS)

	keyboardSlots int64         // the first so many slots feel the keyboard
	consoleSlots  int64         // and these the console
	idleBoost     time.Duration // that the others have been idle before the start
}

// settingsFrom reads the settings. The error names all that cannot be read.
func settingsFrom(cfg *config.Snapshot, host string) (settings, error) {
	s := settings{cfg: cfg, name: DaemonName(cfg.String("STARTD_NAME"), host)}
	var bad []error
	number := func(knob string) int64 {
		n, err := cfg.Int(knob)
		bad = append(bad, err)
		return n
	}
	s.jobAttrs = names(cfg, "STARTD_JOB_ATTRS", "STARTD_JOB_EXPRS", "SYSTEM_STARTD_JOB_ATTRS")
	s.slotAttrs = names(cfg, "STARTD_SLOT_ATTRS", "STARTD_SLOT_EXPRS", "SYSTEM_STARTD_SLOT_ATTRS")
	s.rollup = names(cfg, "STARTD_PARTITIONABLE_SLOT_ATTRS")
	var err error
	s.hasRollup, err = cfg.Bool("ADVERTISE_PSLOT_ROLLUP_INFORMATION")
	bad = append(bad, err)
	s.hasDaemon = !strings.EqualFold(cfg.String("ENABLE_STARTD_DAEMON_AD"), "false")
	s.keyboardSlots, s.consoleSlots = number("SLOTS_CONNECTED_TO_KEYBOARD"), number("SLOTS_CONNECTED_TO_CONSOLE")
	s.idleBoost, err = cfg.Duration("DISCONNECTED_KEYBOARD_IDLE_BOOST")
	bad = append(bad, err)
	s.local, err = cfg.Bool("IS_LOCAL_STARTD")
	bad = append(bad, err)
	s.attached = cfg.String("STARTD_DIRECT_ATTACH_SCHEDD_NAME")
	s.health, err = healthOf(cfg)
	bad = append(bad, err)
	s.withinText = withinLimits(cfg)
	s.wholeClaims, err = cfg.Bool("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS")
	bad = append(bad, err)
	s.wholeTime, err = cfg.Duration("MAX_PARTITIONABLE_SLOT_CLAIM_TIME")
	bad = append(bad, err)
	s.nested, err = cfg.Bool("USE_NESTED_CUSTOM_RESOURCE_PROPS")
	bad = append(bad, err)
	// Without a word of its own, VERBOSE_… is what USE_… is: False gives lists.
	s.verbose = s.nested
	s.uptimes, err = cfg.Bool("ADVERTISE_CMR_UPTIME_SECONDS")
	bad = append(bad, err)
	if set, ok := cfg.Lookup("VERBOSE_NESTED_CUSTOM_RESOURCE_PROPS"); ok && !set.IsDefault && strings.TrimSpace(set.Value) != "" {
		s.verbose, err = cfg.Bool("VERBOSE_NESTED_CUSTOM_RESOURCE_PROPS")
		bad = append(bad, err)
	}
	return s, errors.Join(bad...)
}

// DaemonName returns what stands behind the first @ of slot names: the host,
// or STARTD_NAME as it is if it has an @ of its own.
func DaemonName(configured, host string) string {
	switch {
	case configured == "":
		return host
	case strings.Contains(configured, "@"):
		return configured
	}
	return configured + "@" + host
}

// names joins lists of attribute names; of one that stands twice the first
// counts.
func names(cfg *config.Snapshot, knobs ...string) []string {
	var out []string
	for _, knob := range knobs {
		for _, n := range cfg.List(knob) {
			if isName(n) && !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, n) }) {
				out = append(out, n)
			}
		}
	}
	return out
}

// isName reports whether s can be the name of an attribute without quotes.
func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// withinLimits returns WithinResourceLimits for the resources that every
// machine has. What common input files save a job in disk is taken off.
func withinLimits(cfg *config.Snapshot) string {
	const cpusAndMemory = "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory && MY.Disk > 0"
	if space := strings.TrimSpace(cfg.String("CATALOG_SPACE")); space != "" {
		return cpusAndMemory + " && (TARGET.RequestDisk - " + space + ") <= MY.Disk"
	}
	return cpusAndMemory + " && TARGET.RequestDisk <= MY.Disk"
}

// value returns the text of a knob for a slot: SLOTn_X if the slot's name is
// given, SLOT_TYPE_n_X, or X.
func (s *settings) value(knob, slotName string, typeID int) (string, bool) {
	if slotName != "" {
		if set, ok := s.cfg.Lookup(slotName + "_" + knob); ok {
			return set.Value, true
		}
	}
	if set, ok := s.cfg.Lookup("SLOT_TYPE_" + strconv.Itoa(typeID) + "_" + knob); ok {
		return set.Value, true
	}
	set, ok := s.cfg.Lookup(knob)
	return set.Value, ok
}

// expr returns the first of some knobs that is set for a slot type, parsed.
// What does not parse counts as not set.
func (s *settings) expr(typeID int, knobs ...string) *classad.Expr {
	for _, knob := range knobs {
		text, ok := s.value(knob, "", typeID)
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		if e, err := classad.ParseExpr(text, classad.Old); err == nil {
			return e
		}
	}
	return nil
}

// owner are attributes that the owner adds to ads by naming settings in
// STARTD_ATTRS.
type owner struct {
	name string
	expr *classad.Expr
}

// ownAttrs returns the attributes that STARTD_ATTRS asks for in slots of a
// type. One without a value, or whose value does not parse, is left out.
func (s *settings) ownAttrs(typeID int) []owner {
	listed := names(s.cfg, "STARTD_ATTRS", "SLOT_TYPE_"+strconv.Itoa(typeID)+"_STARTD_ATTRS", "STARTD_EXPRS",
		"STARTD_LATCH_EXPRS", "SYSTEM_STARTD_ATTRS", "SYSTEM_STARTD_LATCH_EXPRS")
	var out []owner
	for _, n := range listed {
		if e := s.expr(typeID, n); e != nil {
			out = append(out, owner{n, e})
		}
	}
	return out
}

// slotOwnAttrs returns those that differ for the one slot, by SLOTn_X or
// SLOTn_STARTD_ATTRS. slotName is that of the parent for a dynamic slot.
func (s *settings) slotOwnAttrs(slotName string, typeID int) []owner {
	var out []owner
	add := func(n string, e *classad.Expr) {
		if e != nil && !slices.ContainsFunc(out, func(o owner) bool { return strings.EqualFold(o.name, n) }) {
			out = append(out, owner{n, e})
		}
	}
	for _, n := range names(s.cfg, slotName+"_STARTD_ATTRS", "STARTD_ATTRS", "STARTD_EXPRS", "STARTD_LATCH_EXPRS") {
		if e := s.expr(typeID, slotName+"_"+n); e != nil {
			add(n, e)
		}
	}
	for _, n := range names(s.cfg, slotName+"_STARTD_ATTRS") {
		add(n, s.expr(typeID, n))
	}
	return out
}

// ownOf returns what the owner sets for a slot over what it says itself.
// Dynamic slots take that of their parent.
func (m *Machine) ownOf(s *slot.Slot) []owner {
	if own, ok := m.own[s.ID.N]; ok {
		return own
	}
	var own []owner
	for _, o := range m.layer(s.TypeID).own {
		if isStatic(o.name) {
			own = append(own, o)
		}
	}
	for _, o := range m.set.slotOwnAttrs(s.ID.Parent().Name(s.Prefix), s.TypeID) {
		if !isShared(o.name) && !isState(o.name) {
			own = append(own, o)
		}
	}
	m.own[s.ID.N] = own
	return own
}

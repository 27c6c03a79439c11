// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// TestKnobTable compares the generated table with knobs.toml, row by row.
func TestKnobTable(t *testing.T) {
	t.Parallel()
	var doc struct {
		Knob []struct {
			Name, Type, Platform, Owner, Doc, Note, Obsolete string
			Macro                                            bool
			Daemon                                           string
			NotYet                                           string `toml:"not_yet"`
			Default                                          *string
			DefaultWindows                                   *string `toml:"default_windows"`
			Min, Max                                         *float64
			Reconfig                                         *bool
			Aliases, Words                                   []string
		}
	}
	if _, err := toml.DecodeFile("knobs.toml", &doc); err != nil {
		t.Fatal(err)
	}
	var view struct{ Implied, Empty []string }
	if _, err := toml.DecodeFile("knobs_macro.toml", &view); err != nil {
		t.Fatal(err)
	}
	table := map[string]Knob{}
	for k := range allKnobs() {
		table[k.Name] = k
	}
	if len(table) != len(doc.Knob) {
		t.Errorf("the table has %d rows, knobs.toml %d", len(table), len(doc.Knob))
	}
	for _, row := range doc.Knob {
		want := Knob{Name: row.Name, Type: row.Type, Platform: row.Platform, Owner: row.Owner, Doc: row.Doc, Note: row.Note, Obsolete: row.Obsolete,
			Macro: row.Macro, Daemon: row.Daemon, NotYet: row.NotYet, Aliases: row.Aliases, Words: row.Words}
		if row.Default != nil {
			want.Default, want.HasDefault = *row.Default, true
		}
		if row.DefaultWindows != nil {
			want.DefaultWindows, want.HasDefaultWindows = *row.DefaultWindows, true
		}
		if row.Min != nil {
			want.Min = Bound{true, *row.Min}
		}
		if row.Max != nil {
			want.Max = Bound{true, *row.Max}
		}
		if row.Reconfig != nil {
			want.Reconfig = ReconfigRestarts
			if *row.Reconfig {
				want.Reconfig = ReconfigApplies
			}
		}
		want.Implied = slices.Contains(view.Implied, row.Name) || want.IsFamily() && want.HasDefault
		want.Empty = slices.Contains(view.Empty, row.Name)
		if d := cmp.Diff(want, table[row.Name]); d != "" {
			t.Errorf("%s (go generate): %s", row.Name, d)
		}
	}
	if !slices.IsSortedFunc(knobTable[:], func(a, b Knob) int { return compareFold(a.Name, b.Name) }) {
		t.Error("knobTable is not in order")
	}
}

func TestLookupKnob(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"START":                           "START",
		"maxjobretirementtime":            "MAXJOBRETIREMENTTIME",
		"SLOT_TYPE_12_PARTITIONABLE":      "SLOT_TYPE_<N>_PARTITIONABLE",
		"slot_type_1":                     "SLOT_TYPE_<N>",
		"SLOT_TYPE_1_START":               "SLOT_TYPE_<N>_<name>",
		"NUM_SLOTS_TYPE_3":                "NUM_SLOTS_TYPE_<N>",
		"STARTD_CRON_mips_PERIOD":         "STARTD_CRON_<name>_PERIOD",
		"STARTD_CRON_my_job_KILL":         "STARTD_CRON_<name>_KILL",
		"MACHINE_RESOURCE_Cogs":           "MACHINE_RESOURCE_<name>",
		"MACHINE_RESOURCE_INVENTORY_Cogs": "MACHINE_RESOURCE_INVENTORY_<name>",
		"STARTD.UPDATE_INTERVAL":          "UPDATE_INTERVAL",
		"MASTER_DEBUG":                    "MASTER_DEBUG",
		"ALLOW_WRITE_STARTD":              "ALLOW_<PERMISSION-LEVEL>_<SUBSYS>",
		"IsOwner":                         "IS_OWNER",
		"NEGOTIATOR":                      "NEGOTIATOR",
		"SLOT_TYPE__START":                "",
		"NO_SUCH_KNOB":                    "",
		"":                                "",
	} {
		k, ok := LookupKnob(name)
		if k.Name != want || ok != (want != "") {
			t.Errorf("%s is of %q, want %q", name, k.Name, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"NUM_SLOT":                  "NUM_SLOTS",
		"SUSPENDED":                 "SUSPEND",
		"Strat":                     "START",
		"PREMPT":                    "PREEMPT",
		"STARTD.PREMPT":             "STARTD.PREEMPT",
		"SLOT_TYPE_1_PARTITIONABEL": "SLOT_TYPE_1_PARTITIONABLE",
		"NUM_SLOT_TYPE_2":           "NUM_SLOTS_TYPE_2",
		"STARD_ATTRS":               "STARTD_ATTRS",
		"UPDATE_INTREVAL":           "UPDATE_INTERVAL",
		"START":                     "",
		"NUM_SLOTS_TYPE_2":          "",
		"MyVeryOwnMacro":            "",
		"XY":                        "",
	} {
		if got, ok := suggest(name); got != want || ok != (want != "") {
			t.Errorf("%s: suggested %q, want %q", name, got, want)
		}
	}
}

// TestNearMisses reports names that are almost a knob, but leaves those alone
// that something uses.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"NUM_SLOT = 2\n", []string{"test.conf:1:1: warning: knob NUM_SLOT: is no knob and nothing uses it (want NUM_SLOTS)"}},
		{"A = 1\n  SUSPENDED = True\n", []string{"test.conf:2:3: warning: knob SUSPENDED: is no knob and nothing uses it (want SUSPEND)"}},
		{"SUSPENDED = True\nWANT_SUSPEND = $(SUSPENDED)\n", nil},
		{"SUSPENDED = True\nX = $INT(suspended)\n", nil},
		{"SUSPENDED = True\nSTARTD_ATTRS = $(STARTD_ATTRS), Suspended\n", nil},
		{"SUSPENDED = True\nSLOT1_STARTD_ATTRS = Suspended\n", nil},
		{"SUSPENDED = True\nSUSPEND = False\n", nil},
		{"STARTD.NUM_SLOT = 2\n", []string{"test.conf:1:1: warning: knob STARTD.NUM_SLOT: is no knob and nothing uses it (want NUM_SLOTS)"}},
		{"STARD_ATTRS = x\n", []string{"test.conf:1:1: warning: knob STARD_ATTRS: is no knob and nothing uses it (want STARTD_ATTRS)"}},
		{"DAEMON_LIST = MASTER, STARD\nSTARD_ATTRS = x\n", nil},
		{"MyMacro = 1\nAnother.Thing = 2\n", nil},
		{"use POLICY : Desktop\nuse FEATURE : GPUs\nuse SECURITY : Recommended\n", nil},
		{"A = $(StartIdelTime)\n", []string{`test.conf:1:1: warning: knob A: refers to $(StartIdelTime), which nothing sets (value "$(StartIdelTime)", want StartIdleTime)`}},
		{"A = $(IsPVM) $(B:x) $(STARTD_ATTRS) $(DOLLAR) $$(C)\n", []string{`test.conf:1:1: warning: knob A: refers to $(IsPVM), which nothing sets`}},
		{"IS_VALID_CHECKPOINT_PLATFORM = True\n", []string{"test.conf:1:1: warning: knob IS_VALID_CHECKPOINT_PLATFORM: is obsolete and has no effect"}},
	} {
		var got []string
		for _, p := range mustParse(t, tt.text).Warnings() {
			got = append(got, p.Error())
		}
		good := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			good = good && strings.HasPrefix(got[i], tt.want[i])
		}
		if !good {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// allKnobs yields the whole table: single names in order, then families.
func allKnobs() iter.Seq[Knob] {
	return func(yield func(Knob) bool) {
		for _, rows := range [...][]Knob{knobTable[:], familyTable[:]} {
			for i := range rows {
				if !yield(rows[i]) {
					return
				}
			}
		}
	}
}

// suggest returns the knob that name was probably meant to be: one that
// differs in a letter or two. It returns false for a name that is a knob, and
// for one that is near none.
func suggest(name string) (string, bool) {
	if _, known := LookupKnob(name); known && !isLooseFamily(name, nil) {
		return "", false
	}
	bare := bareName(name)
	near, ok := nearest(bare)
	if !ok {
		return "", false
	}
	return name[:len(name)-len(bare)] + near, true
}

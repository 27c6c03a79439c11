// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rapidtest

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSeed leaves the seed alone that somebody asked for, also 0, and sets it
// otherwise.
func TestSeed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		env  bool
		want string
	}{
		{"nobody asks", nil, false, seed},
		{"another flag", []string{"-rapid.checks=7"}, false, seed},
		{"a flag", []string{"-rapid.seed=5"}, false, "5"},
		{"a flag for a new one", []string{"-rapid.seed=0"}, false, "0"},
		{"the environment", nil, true, "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			flags.Int("rapid.checks", 100, "")
			flags.Uint64(seedFlag, 0, "")
			if err := flags.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			if err := fixSeedOf(flags, tt.env); err != nil {
				t.Fatal(err)
			}
			if got := flags.Lookup(seedFlag).Value.String(); got != tt.want {
				t.Errorf("the seed is %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCheckRepeats draws the same values in every check.
func TestCheckRepeats(t *testing.T) {
	if err := fixSeed(); err != nil {
		t.Fatal(err)
	}
	if flag.Lookup(seedFlag).Value.String() == "0" {
		t.Skip("a new seed is asked for with -rapid.seed or RAPID_SEED")
	}
	draw := func() (all []uint64) {
		Check(t, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "n")) })
		return all
	}
	if first, second := draw(), draw(); !slices.Equal(first, second) || len(first) == 0 {
		t.Errorf("two checks drew\n%v\n%v", first, second)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// What was set from afar stands above files and the environment, and below the
// command line; it may refer to what was there before.
func TestLaterTexts(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("/etc/condor_config", "A = file\nB = file\nC = file\nD = file\n", config.Options{
		Env:       []string{"_CONDOR_B=environment", "_CONDOR_C=environment"},
		Later:     []config.Text{{Name: "/p/.config.STARTD.c", Text: "C = $(C) and afar\n"}, {Name: "<runtime>", Text: "D = first\nD = last\n"}},
		Overrides: []config.Override{{Name: "A", Value: "line", Where: "-D"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"A": {"line", "-D"}, "B": {"environment", ""}, "C": {"environment and afar", "/p/.config.STARTD.c"}, "D": {"last", "<runtime>"},
	} {
		if got, _ := s.Lookup(name); got.Value != want[0] || got.Origin.File != want[1] {
			t.Errorf("%s = %q of %q, want %q of %q", name, got.Value, got.Origin.File, want[0], want[1])
		}
	}
	if _, err := config.Parse("x", "", config.Options{Later: []config.Text{{Name: "afar", Text: "not a setting\n"}}}); err == nil {
		t.Error("a text that is no configuration was read")
	}
}

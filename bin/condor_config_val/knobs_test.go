// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRowKnobsShown shows every knob that the documents' rows name: its value,
// and with -verbose where it comes from.
func TestRowKnobsShown(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join("..", "..", "lib", "config", "testdata", "row-knobs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(list)), "\n")[1:]
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name + " = $(PART) 1\n")
	}
	text.WriteString("PART = 7 +\n")
	got := asked(t, text.String(), nil, append([]string{"-verbose"}, names...)...)
	if got.exit != exitOK || got.err != "" {
		t.Fatalf("exit %d, %s", got.exit, got.err)
	}
	for i, entry := range strings.Split(strings.TrimSuffix(got.out, "\n\n"), "\n\n") {
		want := names[i] + " = 7 + 1\n # at: ${DIR}/condor_config, line " + strconv.Itoa(i+1) + "\n # raw: " + names[i] + " = $(PART) 1"
		if entry != want {
			t.Errorf("got  %q\nwant %q", entry, want)
		}
	}
	plain := asked(t, text.String(), nil, names...)
	if plain.out != strings.Repeat("7 + 1\n", len(names)) || plain.exit != exitOK {
		t.Errorf("plain: exit %d, %q", plain.exit, plain.out)
	}
}

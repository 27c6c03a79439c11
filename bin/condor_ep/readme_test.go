// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ago is how long a slot is in its state, which is not the same twice.
var ago = regexp.MustCompile(` for \d+ s\n`)

// timeless is a text without them.
func timeless(said string) string { return strings.TrimRight(ago.ReplaceAllString(said, "\n"), "\n") }

// What the page for owners shows of explain is what explain says: every command
// of the section is run at the root of the repository. A … on the page is the
// path to it. integration/documents runs the whole page.
func TestOwnerPageExplain(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "owner.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Why does my machine take no jobs?\n")
	if !ok {
		t.Fatal("the section is gone")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands, want []string
	for line := range strings.Lines(section) {
		shown, code := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(shown, "$ condor_ep ")
		switch {
		case isCommand:
			commands, want = append(commands, strings.TrimSpace(command)), append(want, "")
		case code || len(want) > 0 && line == "\n":
			want[len(want)-1] += shown
		}
	}
	if len(commands) != 2 {
		t.Fatalf("%d commands are shown", len(commands))
	}
	p := newPlace(t)
	for i, command := range commands {
		c, stdout, stderr := p.cmd(t, strings.Fields(command)...)
		c.Dir = root
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, stderr)
		}
		var got strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(stdout.String(), root+"/", "…/")) {
			got.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		if diff := cmp.Diff(timeless(want[i]), timeless(got.String())); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

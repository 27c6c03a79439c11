// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/commands"
)

// The options that are read are those of the table, and what follows them.
func TestOptionsAreListed(t *testing.T) {
	t.Parallel()
	var read []string
	for _, o := range table() {
		read = append(read, o.word)
	}
	listed := commands.ConfigVal.OptionNames("")
	slices.Sort(read)
	slices.Sort(listed)
	if !slices.Equal(read, listed) {
		t.Errorf("read   %q\nlisted %q", read, listed)
	}
}

// versionLines are what every program prints for -version.
func versionLines(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	commands.PrintVersion(&b)
	return b.String()
}

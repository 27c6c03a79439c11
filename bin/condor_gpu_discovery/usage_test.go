// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/commands"
)

// The options that are read are those of the table.
func TestOptionsAreListed(t *testing.T) {
	t.Parallel()
	var read []string
	for _, o := range table() {
		read = append(read, o.word)
	}
	listed := commands.GPUDiscovery.OptionNames("")
	slices.Sort(read)
	slices.Sort(listed)
	if !slices.Equal(read, listed) {
		t.Errorf("read   %q\nlisted %q", read, listed)
	}
}

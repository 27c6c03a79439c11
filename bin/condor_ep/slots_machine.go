// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/execpoint/execpoint/lib/tool/slots"
)

// readMachine reads the description of a machine.
func readMachine(path string) (*slots.Machine, error) {
	elsewhere, _ := os.Hostname() // a machine without a name has none to show
	return slots.ReadMachine(path, elsewhere)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/execpoint/execpoint/bin/internal/commands"

// usage is what -help prints, and what follows a command line that cannot be
// read.
func usage() string { return commands.GPUDiscovery.Help("") }

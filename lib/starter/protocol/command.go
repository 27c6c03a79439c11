// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/execpoint/execpoint/lib/starter/role"

// Command is the first argument by which a program that is not condor_starter
// itself is asked to be one.
const Command = role.Command

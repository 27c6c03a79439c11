// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package thishost gives our programs the operating system they run on, which
// is platform/linux/system's. It must never decide anything else, and be used by
// nothing but programs.
package thishost

import "github.com/execpoint/execpoint/platform/linux/system"

// Platform is the operating system as our programs use it.
type Platform = system.System

// New is for a program that is an Execution Point. There is one in a process.
func New() (*Platform, error) { return system.New() }

// Visit is for a program that only looks at the machine.
func Visit() (*Platform, error) { return system.Visit() }

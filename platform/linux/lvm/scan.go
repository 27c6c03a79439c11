// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lvm

import (
	"context"

	"github.com/execpoint/execpoint/lib/machine"
)

// Scanner is that of the machine's disk for jobs, which is what the volume group, or
// its thin pool, has free. As with HTCondor, volumes are taken from there wherever the
// slots have their directories, and it is measured once.
func (m *Manager) Scanner(execute string) machine.Scanner { return scanner{m, execute} }

type scanner struct {
	m       *Manager
	execute string
}

// Name implements machine.Scanner.
func (scanner) Name() string { return "volumes" }

// Scan implements machine.Scanner.
func (s scanner) Scan(ctx context.Context, inv *machine.Inventory) error {
	is, err := s.m.Space(ctx)
	if err != nil {
		return err
	}
	free := is.FreeBytes >> 10
	inv.Execute = machine.Disk{
		Path: s.execute, ID: s.m.Backing(), TotalKiB: is.Bytes >> 10, AvailableKiB: free, FreeKiB: free,
		Logical: &machine.Logical{
			Backing: s.m.Backing(), Loopback: s.m.File != "", Thin: s.m.Thin(), QuantumKiB: is.ExtentKiB, Bytes: is.Bytes, OthersBytes: is.OthersBytes,
		},
	}
	inv.Learn("the volume group "+s.m.Group, "Execute")
	return nil
}

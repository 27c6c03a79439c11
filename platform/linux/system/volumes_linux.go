// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux/lvm"
)

// Volumes opens the logical volumes of jobs where STARTD_ENFORCE_DISK_LIMITS wants
// them, once what an earlier life left of them is removed; nil where it does not, and
// where this program is not root's. space is the disk that they have.
func (p *System) Volumes(ctx context.Context, execute string, snap *config.Snapshot) (v host.Volumes, space machine.Scanner, said []string, err error) {
	wanted, err := lvm.Enforced(snap)
	switch {
	case err != nil || !wanted:
		return nil, nil, nil, err
	case os.Geteuid() != 0:
		return nil, nil, []string{"STARTD_ENFORCE_DISK_LIMITS has no effect: only root makes file systems for jobs"}, nil
	}
	settings, said, err := lvm.SettingsFrom(snap)
	if err != nil {
		return nil, nil, said, err
	}
	m, removed, err := lvm.Open(ctx, settings)
	if len(removed) > 0 {
		said = append(said, "logical volumes of an earlier life were removed: "+strings.Join(removed, ", "))
	}
	if err != nil {
		return nil, nil, said, err
	}
	return m, m.Scanner(execute), said, nil
}

// enforcing reports whether jobs get volumes, whose disk does not follow EXECUTE's.
func enforcing(snap *config.Snapshot) bool {
	wanted, err := lvm.Enforced(snap)
	return err == nil && wanted && os.Geteuid() == 0
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// claimIDChanged writes the id by which a slot can be claimed into its file,
// for programs on this machine that may claim it. A dynamic slot has none, and
// the further ids of a consumption policy are for negotiators. That it cannot be
// written is told once.
func (n *node) claimIDChanged(e ep.ClaimIDChanged) {
	if e.Slot.IsDynamic() || e.Further {
		return
	}
	base, on := claimFileBase(n.o.Config)
	if !on {
		return
	}
	err := writeClaimID(base, e.Slot, e.ID)
	if err != nil && !n.kept.claimFileFailed {
		n.problem(err)
	}
	n.kept.claimFileFailed = err != nil
}

// claimFileBase returns what the names of claim id files begin with, and
// whether they are wanted.
func claimFileBase(cfg *config.Snapshot) (string, bool) {
	if on, err := cfg.Bool("STARTD_SHOULD_WRITE_CLAIM_ID_FILE"); err != nil || !on {
		return "", false
	}
	base := cfg.String("STARTD_CLAIM_ID_FILE")
	if base == "" {
		log := cfg.String("LOG")
		if log == "" {
			return "", false
		}
		base = filepath.Join(log, ".startd_claim_id")
	}
	return base, true
}

// writeClaimID puts an id into base.slotN, readable by the owner of the EP
// alone and never half written.
func writeClaimID(base string, of slot.ID, id claim.ID) error {
	path := base + ".slot" + strconv.Itoa(of.N)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*") // mode 0600
	if err != nil {
		return errs.E("run.writeClaimID", errs.Transient, path, err)
	}
	_, err = f.WriteString(id.Wire() + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errs.E("run.writeClaimID", errs.Transient, path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

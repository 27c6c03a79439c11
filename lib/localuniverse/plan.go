// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// mostAd is how large the job's ad may be, as over the wire.
const mostAd = 8 << 20

// readAd reads the job's ad and takes the secrets out of it, which no file and no
// program of the job is to see.
func readAd(from io.Reader, o Options) (*classad.Ad, error) {
	const op = "localuniverse.readAd"
	text, err := io.ReadAll(io.LimitReader(from, mostAd+1))
	if err != nil {
		return nil, errs.E(op, errs.Broken, o.ID.String(), err)
	}
	if len(text) > mostAd {
		return nil, errs.E(op, errs.Invalid, o.ID.String(), fmt.Errorf("the job's ad is longer than %d bytes", mostAd))
	}
	ad, err := classad.ParseAd(string(text), classad.Old)
	if err != nil {
		return nil, errs.E(op, errs.Invalid, o.ID.String(), errors.New("the job's ad cannot be read")) // the error may quote a secret
	}
	for _, secret := range [...]string{"ClaimId", "ClaimIds", "ClaimIdList", "Capability", "TransferKey", "PairedClaimId", "ChildClaimIds", "ClaimSessionInfo"} {
		ad.Delete(secret)
	}
	if n, _ := ad.EvalInt("JobUniverse", nil); runner.Universe(n) != runner.Local {
		return nil, errs.E(op, errs.Unsupported, o.ID.String(), fmt.Errorf("it is of universe %d; a schedd starts the starter itself for those of the local one, %d", n, runner.Local))
	}
	ad.SetInt("ClusterId", int64(o.ID.Cluster))
	ad.SetInt("ProcId", int64(o.ID.Proc))
	return ad, nil
}

// userOf is as whom the job runs, where this process is root: its owner. nil is this
// process's own user.
func userOf(ad *classad.Ad, account func(string) (*host.Identity, error)) (*host.Identity, error) {
	if account == nil {
		return nil, nil
	}
	for _, attr := range [...]string{"OsUser", "Owner"} {
		if name, _ := ad.EvalString(attr, nil); name != "" {
			name, _, _ = strings.Cut(name, "@")
			return account(name)
		}
	}
	return nil, errs.E("localuniverse.userOf", errs.Invalid, "Owner", errors.New("the job's ad names no owner, and no job runs as root"))
}

// planOf is the plan of the activation. s is the configuration as a starter reads it.
//
// The job has no slot. It works in its submit directory, and sees the machine as its
// schedd does: no private /tmp. It has a control group, to be measured and ended as
// one, unless USE_CGROUPS_FOR_LOCAL_UNIVERSE says no; what it asked for limits it only
// with LOCAL_UNIVERSE_CGROUP_ENFORCEMENT.
func planOf(ad *classad.Ad, u *host.Identity, s *config.Snapshot, o Options, pid int) (*protocol.Plan, error) {
	set, err := protocol.SettingsFrom(s, s, nil)
	if err != nil {
		return nil, err
	}
	r := config.Reader{Snapshot: s}
	grouped, limited, execute := r.Bool("USE_CGROUPS_FOR_LOCAL_UNIVERSE"), r.Bool("LOCAL_UNIVERSE_CGROUP_ENFORCEMENT"), r.String("EXECUTE")
	if err := r.Err(); err != nil {
		return nil, err
	}
	if execute == "" {
		return nil, errs.E("localuniverse.planOf", errs.Invalid, "EXECUTE", errors.New("it is not set; the schedd sets it for its starters"))
	}
	if !grouped {
		set.Cgroup = ""
	}
	set.Space = protocol.SpaceSettings{NoNetwork: set.Space.NoNetwork}
	if !limited {
		set.Limits.Memory = protocol.MemoryNone
	}
	cpus, _ := ad.EvalInt("RequestCpus", nil)
	memory, _ := ad.EvalInt("RequestMemory", nil)
	limits := protocol.SlotLimits{Cpus: int(min(max(cpus, 1), 1<<16)), MemoryMiB: max(memory, 0)}
	if !limited {
		limits = protocol.SlotLimits{Cpus: 1}
	}
	log, err := Log(s)
	if err != nil {
		return nil, err
	}
	iwd, _ := ad.EvalString("Iwd", nil)
	return &protocol.Plan{
		Activation: o.ID.String(), SlotFullName: strconv.Itoa(pid), Execute: execute, JobAd: ad.TextAll(classad.Old), Cpus: limits.Cpus, Limits: limits,
		Orphan: protocol.OrphanDie, Submit: protocol.SubmitSide{Local: true, Iwd: iwd, InPlace: true}, Settings: set, RunAs: u, Log: log,
	}, nil
}

// Log is the log of such a starter, which has no slot after which it could be named;
// nil for none.
func Log(s *config.Snapshot) (*protocol.LogPlan, error) { return run.StarterLog(s, "") }

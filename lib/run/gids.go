// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"math"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// gids are the groups by which the processes of jobs are told apart
// (USE_GID_PROCESS_TRACKING): one for each job that runs, which a process can neither
// get nor get rid of without the rights of root. nil tracks by none.
//
// They are what the configuration said when the run began: jobs that run hold theirs.
type gids struct {
	first, last uint32
	used        map[uint32]bool
	// name finds the group of the machine that has a number. Its members would be
	// taken for processes of a job, so no job gets that one.
	name func(gid uint32) (string, error)
}

// gidsFrom reads USE_GID_PROCESS_TRACKING, MIN_TRACKING_GID and MAX_TRACKING_GID. Only
// root gives a process a group; for others the knobs say nothing, and doubt is why.
func gidsFrom(s *config.Snapshot, h Host) (g *gids, doubt, err error) {
	r := config.Reader{Snapshot: s}
	use, first, last := r.Bool("USE_GID_PROCESS_TRACKING"), r.Int("MIN_TRACKING_GID"), r.Int("MAX_TRACKING_GID")
	switch err := r.Err(); {
	case err != nil:
		return nil, nil, err
	case !use:
		return nil, nil, nil
	case h.Account == nil:
		return nil, errors.New("USE_GID_PROCESS_TRACKING has no effect: only root gives a process a group; jobs are tracked without"), nil
	case first < 1 || last < first || last >= math.MaxUint32:
		return nil, nil, errs.E("run.gids", errs.Invalid, "MIN_TRACKING_GID", fmt.Errorf(
			"USE_GID_PROCESS_TRACKING wants a range of groups that no user is in, MIN_TRACKING_GID to MAX_TRACKING_GID, from 1 up; it is %d to %d", first, last))
	}
	return &gids{first: uint32(first), last: uint32(last), used: make(map[uint32]bool), name: h.GroupName}, nil, nil
}

// take returns a group that no job has.
func (g *gids) take() (uint32, error) {
	if g == nil {
		return 0, nil
	}
	named := 0
	for n := int64(g.first); n <= int64(g.last); n++ {
		gid := uint32(n)
		if g.used[gid] {
			continue
		}
		switch _, err := g.name(gid); {
		case err == nil:
			named++
			continue
		case !errs.Is(err, errs.NotFound):
			return 0, err
		}
		g.used[gid] = true
		return gid, nil
	}
	return 0, errs.E("run.gids", errs.Transient, fmt.Sprintf("%d-%d", g.first, g.last), fmt.Errorf(
		"no tracking group id is left: %d running jobs have one each, and %d belong to groups of this machine; MIN_TRACKING_GID to MAX_TRACKING_GID should have one for each slot",
		len(g.used), named))
}

// give takes back what a job had of which nothing is left.
func (g *gids) give(gid uint32) {
	if g != nil {
		delete(g.used, gid)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// tracking is by what the processes of a job are told from those of others, and what
// that cannot catch. HTCondor tells it in PROCD_LOG alone, and not what it misses.
type tracking struct {
	by     string
	misses string
	why    string // there is no control group, "" if there is
}

// outside is what no tracking of processes finds: another daemon is its parent, and its
// session, group and environment are that one's.
const outside = "what another daemon starts for a job, such as cron, at, systemd or docker"

// trackedBy puts together what a job of these settings has. dedicated says that some
// accounts are for jobs alone.
func trackedBy(set *protocol.Settings, has host.Tracking, g *gids, root, dedicated bool) tracking {
	var ways, misses []string
	spaces := set.Space.PerJob && set.Space.PIDs && has.NoSpaces == nil
	if spaces {
		ways = append(ways, "a PID namespace for each job")
	}
	if has.Groups != 0 {
		ways = append(ways, fmt.Sprintf("control groups of version %d below %s", has.Groups, set.Cgroup))
	}
	if g != nil {
		ways = append(ways, fmt.Sprintf("a group id for each job, %d to %d", g.first, g.last))
	}
	if root && dedicated {
		ways = append(ways, "the account, where it is dedicated")
	}
	ways = append(ways, "parentage, session and a mark in the environment")
	switch {
	case spaces: // no process leaves it
	case has.Groups != 0 && root:
		misses = append(misses, "a process that moves to another control group, for which it needs the rights of root")
	case has.Groups != 0:
		misses = append(misses, "a process that moves to another control group, which its user may")
	case g != nil:
		misses = append(misses, "a process that gives up its groups, for which it needs the rights of root")
	default:
		misses = append(misses, "a process that has left its session and its environment, if its starter is killed before it was seen")
	}
	t := tracking{by: strings.Join(ways, "; "), misses: strings.Join(append(misses, outside), "; ")}
	if has.NoGroups != nil {
		t.why = has.NoGroups.Error()
	}
	return t
}

// tellTracking writes to the log by what the processes of jobs are kept together: when
// the Execution Point begins, and when a configuration changes it.
func (n *node) tellTracking() {
	if n.o.Host.Tracking == nil {
		return
	}
	all := n.starter.settings.Load()
	set := all.any
	has := n.o.Host.Tracking(host.GroupPlace{Base: set.settings.Cgroup, Delegated: set.settings.Delegated})
	if has.Groups == 0 && has.NoGroups == nil {
		has.NoGroups = errors.New("there are no control groups")
	}
	if all.contain.users { // where starters begin
		has.NoSpaces = nil
	}
	login, _ := set.config.Bool("EXECUTE_LOGIN_IS_DEDICATED") // its error is told of the knob
	t := trackedBy(set.settings, has, n.starter.gids, n.o.Host.Account != nil, login || set.config.String("DEDICATED_EXECUTE_ACCOUNT_REGEXP") != "")
	if t == n.starter.tracking {
		return
	}
	n.starter.tracking = t
	args := []any{"by", t.by, "not_caught", t.misses}
	if t.why != "" {
		args = append(args, "no_control_groups", t.why)
	}
	n.o.Log.Info("how the processes of jobs are kept together", args...)
}

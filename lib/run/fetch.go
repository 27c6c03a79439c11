// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
)

// farewell is how long a hook that is told something may take after the end of the run.
const farewell = 5 * time.Second

// fetchWork calls the hook that fetches work for a slot, beside the owner. Whatever
// comes of it, the engine is told. There is no limit of time: a hook may wait for work.
func (n *node) fetchWork(e ep.FetchWork) {
	knob, cfg := hookKnob(e.Keyword, hook.FetchWork), n.starterOf(e.Slot).config
	fetched := ep.WorkFetched{Slot: e.Slot}
	var bad error
	read := func(r *hook.Report) {
		if r.Err != nil {
			return // it was ended, and may have got no further
		}
		if fetched.Job, bad = hook.Work(r.Output); fetched.Job == nil {
			return
		}
		fetched.Unfit = hook.CompleteWork(fetched.Job, e.Keyword, n.o.Host.Account != nil)
		if fetched.Unfit == nil && n.o.Host.Account != nil {
			who := runAsFetched(cfg, e.Slot, classad.NewAd(), fetched.Job)
			_, fetched.Unfit = who.identity(n.o.Host.Account)
		}
	}
	n.startdHook(hook.FetchWork, e.Keyword, e.Name, nil, e.Ad.Text(classad.Old), read, func(now clock.Instant) {
		switch {
		case bad != nil:
			n.o.Log.Error("the hook has printed no job", "hook", knob, "slot", e.Name, "err", bad)
		case fetched.Job == nil:
			n.o.Log.Debug("the hook has no work", "hook", knob, "slot", e.Name)
		}
		fetched.Fault = n.lacking(now)
		n.step(now, fetched)
		n.moved = true
	})
}

// workDecided tells the source of a fetched job what becomes of it.
func (n *node) workDecided(e ep.WorkDecided) {
	word, id := "accept", claimText(e.Claim)
	if e.Err != nil {
		word = "reject"
		n.o.Log.Warn("fetched work is refused", "slot", e.Name, "job", jobName(e.Job), "why", e.Err)
	} else {
		n.o.Log.Info("State change: Finished fetching work successfully", "slot", e.Name, "job", jobName(e.Job))
		n.o.Log.Debug(fmt.Sprintf("Rank of this fetched claim is: %f", e.Rank), "slot", e.Name)
	}
	if e.Keyword != "" {
		n.startdHook(hook.ReplyFetch, e.Keyword, e.Name, []string{word}, hook.About(e.Job, e.Ad, id), nil, nil)
	}
}

// workEvicted tells that the claim of fetched work is over. HTCondor 25.14 has this hook
// as the document describes it and never calls it, since what it asks before is true of
// no claim of fetched work.
func (n *node) workEvicted(e ep.WorkEvicted) {
	n.startdHook(hook.EvictClaim, e.Keyword, e.Name, nil, hook.About(e.Job, e.Ad, claimText(e.Claim)), nil, nil)
}

// claimText is the id of a claim as HTCondor's hooks are told it, with its secret.
func claimText(id claim.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.Wire()
}

func hookKnob(keyword string, h hook.StartdHook) string { return keyword + "_HOOK_" + string(h) }

// startdHook runs a hook of the startd, if there is one and it may be used, with the
// rights of HTCondor's daemons. Only what it writes to its standard error is told; its
// exit status means nothing. read is called beside the owner when it has ended, and then
// by the owner, also if it could not run; without then nothing waits for it.
func (n *node) startdHook(h hook.StartdHook, keyword, slotName string, args []string, input string, read func(*hook.Report), then func(clock.Instant)) {
	knob := hookKnob(keyword, h)
	done := func(r *hook.Report, path string, pid int) {
		if r != nil && read != nil {
			read(r)
		}
		n.mail.post(func(now clock.Instant) {
			if r != nil && len(r.Stderr) > 0 {
				n.o.Log.Warn(fmt.Sprintf("Warning, hook %s (pid %d) printed to stderr: %s", path, pid, strings.TrimSpace(string(r.Stderr))), "slot", slotName)
			}
			if r != nil && r.Err != nil {
				n.o.Log.Error("hook went wrong", "hook", knob, "slot", slotName, "err", r.Err)
			}
			if then != nil {
				then(now)
			}
		})
	}
	cfg, runner := n.o.Config, hooks(n.o)
	n.mail.around.Go(func() {
		path, err := h.Path(cfg, keyword, os.Stat)
		if err == nil && path == "" {
			done(nil, "", 0)
			return
		}
		var user *host.Identity
		if err == nil {
			user, err = n.daemonsUser(cfg)
		}
		var run *hook.Run
		ctx, end := context.WithCancel(context.Background())
		defer end()
		if err == nil {
			run, err = runner.Ask(ctx, knob, host.SpawnSpec{Path: path, Args: append([]string{path}, args...), Dir: runner.Dir, User: user, Bond: host.Bound}, input)
		}
		if err != nil {
			n.mail.post(func(clock.Instant) {
				n.o.Log.Error("hook did not start", "hook", knob, "slot", slotName, "err", err)
			})
			done(nil, "", 0)
			return
		}
		select {
		case <-run.Done():
		case <-n.mail.done: // the run is over
			if then == nil {
				// The last that the source of a job hears of it.
				select {
				case <-run.Done():
				case <-time.After(farewell):
				}
			}
			end()
		}
		done(run.Report(), path, run.PID())
	})
}

// daemonsUser is as whom HTCondor's daemons do what needs no rights of root: the account
// of CONDOR_IDS, or condor; nil where there is none, or no other than ours can be taken.
func (n *node) daemonsUser(cfg *config.Snapshot) (*host.Identity, error) {
	if n.o.Host.Account == nil {
		return nil, nil
	}
	ids := strings.TrimSpace(cfg.String("CONDOR_IDS"))
	if set := strings.TrimSpace(os.Getenv("CONDOR_IDS")); set != "" {
		ids = set
	}
	if ids == "" {
		id, err := n.o.Host.Account("condor")
		if err != nil {
			return nil, nil // a machine without that account has its daemons run as root
		}
		return id, nil
	}
	u, g, ok := strings.Cut(ids, ".")
	uid, bad := strconv.ParseUint(strings.TrimSpace(u), 10, 32)
	gid, worse := strconv.ParseUint(strings.TrimSpace(g), 10, 32)
	if !ok || errors.Join(bad, worse) != nil {
		return nil, fmt.Errorf("CONDOR_IDS: %q is no uid.gid, as 64.64", ids)
	}
	if uid == 0 {
		return nil, nil
	}
	return &host.Identity{Name: "CONDOR_IDS", UID: uint32(uid), GID: uint32(gid)}, nil
}

// runAsFetched is runAsFrom for a job that a slot has fetched. Its Owner names a user of
// this machine: whoever sets the hooks up can run programs here as everybody but root,
// and there is no access point whose names could mean others.
func runAsFetched(s *config.Snapshot, id slot.ID, machine, job *classad.Ad) runAs {
	r := runAsFrom(s, id, machine, job)
	r.owner, r.here, r.soft = true, true, false
	return r
}

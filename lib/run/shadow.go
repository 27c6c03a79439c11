// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter"
)

// mostLaunching is how many starters are given their plans at the same time.
// More would only wait for one another, and what else the machine does for
// them, and need more descriptors at once.
const mostLaunching = 16

// launch gives a plan to a starter, with the connection of its shadow if a
// shadow asked for the job. It blocks, and is not called by the owner.
func (n *node) launch(e ep.StartStarter, plan *starter.Plan, shadow bool, choose runAs) (Starter, error) {
	if !shadow {
		if err := n.chooseHere(plan, choose); err != nil {
			return nil, err
		}
		return n.launchWith(plan, nil)
	}
	sh, err := n.pool.Shadow(context.Background(), e.Activation)
	if err != nil {
		return nil, err
	}
	plan.Shadow.Stream, plan.Shadow.Claim = sh.Stream, sh.Claim
	if err := n.chooseUser(plan, sh.Conn, choose); err != nil {
		_ = sh.Conn.Close()
		return nil, err
	}
	return n.launchWith(plan, sh.Conn)
}

// launchWith marks what goes wrong as the machine's fault.
func (n *node) launchWith(plan *starter.Plan, nc net.Conn) (Starter, error) {
	n.launching <- struct{}{}
	defer func() { <-n.launching }()
	h, err := n.launcher.Launch(context.Background(), plan, nc)
	if err != nil {
		return nil, launchFailure{err}
	}
	return h, nil
}

// shadowSide is what a starter has to know of the pool. The rest comes with the
// shadow's connection.
func (n *node) shadowSide() *starter.ShadowSide {
	s := &starter.ShadowSide{Address: n.pool.Address(), Cookie: n.o.Serve.Cookie}
	if f := n.o.Serve.Family; f != nil {
		s.Family = f()
	}
	s.Version, _ = n.o.Inventory.Attrs.EvalString("CondorVersion", nil)
	s.Platform, _ = n.o.Inventory.Attrs.EvalString("CondorPlatform", nil)
	return s
}

// shown is the machine's ad for a job of a pool: what the pool is shown, and the
// rules by which the job is treated. It may be read by the caller's goroutine
// only, until the engine's next Step.
func (n *node) shown(e ep.StartStarter) *classad.Ad {
	ad := e.MachineAd.Clone()
	n.pool.Complete(ad)
	if x := n.eng.PolicyOf(e.Slot); x != nil {
		for key, is := range x.All() {
			if _, there := ad.Lookup(key.String()); !there && is.Expr != nil {
				ad.Set(key.String(), is.Expr)
			}
		}
	}
	return ad
}

// chooseUser finds out as whom a job runs. Only root can choose.
func (n *node) chooseUser(plan *starter.Plan, nc net.Conn, choose runAs) error {
	if n.o.Host.Account == nil {
		return nil
	}
	choose.local, choose.hosts = peerOf(context.Background(), nc, choose)
	who, err := choose.identity(n.o.Host.Account)
	if err != nil {
		return err
	}
	plan.RunAs, plan.AskUser, plan.Dedicated = who.user, who.ask, who.dedicated
	return nil
}

// chooseHere finds out as whom a job of the embedded access point runs, and whose
// its files are.
func (n *node) chooseHere(plan *starter.Plan, choose runAs) error {
	if n.o.Host.Account == nil {
		return nil
	}
	who, err := choose.identity(n.o.Host.Account)
	if err != nil {
		return err
	}
	plan.RunAs, plan.Dedicated = who.user, who.dedicated
	switch owner := n.o.RunAs; {
	case owner == nil:
		plan.Submit.Own = true
	case owner.UID != who.user.UID:
		plan.Submit.As = owner
	}
	return nil
}

// tellPlugins logs which plugins are of no use. HTCondor's default names six, and
// a machine without HTCondor has none of them: that is one line.
func (n *node) tellPlugins(problems []error) {
	var missing []string
	for _, err := range problems {
		var e *errs.Error
		if errors.Is(err, fs.ErrNotExist) && errors.As(err, &e) {
			missing = append(missing, e.Subject)
			continue
		}
		n.o.Log.Info("a file transfer plugin is of no use", "why", err)
	}
	if len(missing) > 0 {
		n.o.Log.Info("no such programs are here; what FILETRANSFER_PLUGINS names and this machine lacks moves no files, and http, https and data are built in", "missing", strings.Join(missing, ", "))
	}
}

// advertiseAfar adds to the machine's ad what its starters can do for the jobs
// of a pool; the programs that move files by URL are asked what they can. HTCondor
// asks a starter without a slot type.
func (n *node) advertiseAfar(ctx context.Context, ad *classad.Ad, s *starterSettings) {
	plugins := starter.Plugins(s.any.settings.Pool.Plugins, starter.PluginRunner(n.o.Host.Spawner, nil, n.o.StarterEnv))
	over := n.waiting("the programs of FILETRANSFER_PLUGINS to say what they can")
	n.tellPlugins(plugins.Load(ctx))
	over()
	starter.AdvertiseAfar(ad, plugins.Methods())
}

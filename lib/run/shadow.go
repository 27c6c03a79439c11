// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"net"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// mostLaunching is how many starters are given their plans at the same time.
// More would only wait for one another, and what else the machine does for
// them, and need more descriptors at once.
const mostLaunching = 16

// launch gives a plan to a starter, with the connection of its shadow if a
// shadow asked for the job. It blocks, and is not called by the owner. lack is what
// the machine has not got for the job, nil for nothing.
func (n *node) launch(e ep.StartStarter, plan *protocol.Plan, shadow bool, choose runAs, lack error) (Starter, error) {
	if !shadow {
		if err := cmp.Or(lack, n.chooseHere(plan, choose, e.Fetched)); err != nil {
			return nil, err
		}
		return n.launchWith(e, plan, nil)
	}
	sh, err := n.member.pool.Shadow(context.Background(), e.Activation)
	if err != nil {
		return nil, err
	}
	plan.Shadow.Stream, plan.Shadow.Claim = sh.Stream, sh.Claim
	if err := cmp.Or(lack, n.chooseUser(plan, sh.Conn, choose)); err != nil {
		_ = sh.Conn.Close()
		return nil, err
	}
	return n.launchWith(e, plan, sh.Conn)
}

// launchWith marks what goes wrong as the machine's fault.
func (n *node) launchWith(e ep.StartStarter, plan *protocol.Plan, nc net.Conn) (Starter, error) {
	n.starter.launching <- struct{}{}
	defer func() { <-n.starter.launching }()
	if err := n.giveVolume(e, plan); err != nil {
		if nc != nil {
			_ = nc.Close()
		}
		return nil, launchFailure{err}
	}
	h, err := n.starter.launcher.Launch(context.Background(), plan, nc)
	if err != nil {
		if _, stays := n.takeVolume(plan); stays {
			n.mail.post(func(clock.Instant) { n.retryVolume(e.Activation, plan) })
		}
		return nil, launchFailure{err}
	}
	return h, nil
}

// shadowSide is what a starter has to know of the pool. The rest comes with the
// shadow's connection.
func (n *node) shadowSide() *protocol.ShadowSide {
	s := &protocol.ShadowSide{Address: n.member.pool.Address(), Cookie: n.o.Serve.Cookie}
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
	n.member.pool.Complete(ad)
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
func (n *node) chooseUser(plan *protocol.Plan, nc net.Conn, choose runAs) error {
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

// chooseHere finds out as whom a job of the embedded access point runs, or one that a
// slot has fetched, and whose its files are: those of a fetched job are its user's.
func (n *node) chooseHere(plan *protocol.Plan, choose runAs, fetched bool) error {
	if n.o.Host.Account == nil {
		return nil
	}
	who, err := choose.identity(n.o.Host.Account)
	if err != nil {
		return err
	}
	plan.RunAs, plan.Dedicated = who.user, who.dedicated
	switch owner := n.o.RunAs; {
	case fetched:
	case owner == nil:
		plan.Submit.Own = true
	case owner.UID != who.user.UID:
		plan.Submit.As = owner
	}
	return nil
}

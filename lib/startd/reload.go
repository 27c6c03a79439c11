// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
)

// A reload is all or nothing, and refuses what a start would refuse. load reads the
// configuration and works out of it all that the daemon needs around its engine,
// beside the engine's goroutine, since the names of hosts are looked up for that.
// Whatever cannot be used refuses it. Then the engine is asked (lib/run), and what
// it takes over too, reconfigured puts in force: nothing can fail any more.
//
// HTCondor's startd takes over what it can use and ends at a number that is none;
// a machine with jobs is better served by the configuration that it had.

// namesPatience is how long all host names of a configuration that is read again
// may take to be looked up. Those that are not found by then let no peer in, as
// unknown names do.
const namesPatience = 20 * time.Second

// prepared is what a configuration comes to, not in force yet.
type prepared struct {
	security secured
	pool     pool.Settings
	log      observe.LogSettings
}

// secured is what a configuration says about security.
type secured struct {
	settings *security.Settings
	methods  authn.Settings
}

// load reads the configuration again, with the machine as it was found, and
// prepares to put it in force, unless ctx ends before. The error names everything that cannot be used.
func (d *daemonState) load(ctx context.Context) (*config.Snapshot, error) {
	later, err := d.conf.remote.Texts()
	if err != nil {
		return nil, err
	}
	snap, err := d.o.Load(ctx, d.found.inventory, later)
	if err == nil {
		err = d.checkPlaces(snap)
	}
	if err != nil {
		return snap, err
	}
	d.conf.prepared, err = d.prepare(ctx, snap)
	return snap, errors.Join(err, d.startable(ctx, snap))
}

// startable says what keeps a start from beginning with a configuration and is of no
// use to a daemon that runs: taken over, it would keep the machine down after its
// next boot.
func (d *daemonState) startable(ctx context.Context, s *config.Snapshot) error {
	inv := *d.found.inventory // others read it
	inv.Attrs, inv.Facts = classad.NewAd(), maps.Clone(inv.Facts)
	bad := machine.ConfigScanner(s).Scan(ctx, &inv)
	_, network := endpoint.NetworkFrom(s, subsystem)
	_, kin := d.o.Platform.Kin(d.ids(s))
	return errors.Join(bad, network, kin)
}

// prepare works out what a configuration comes to. Nothing is in force of it.
func (d *daemonState) prepare(ctx context.Context, s *config.Snapshot) (*prepared, error) {
	p := &prepared{}
	var bad [3]error
	limit, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	p.security, bad[0] = d.securityFrom(limit, s)
	p.pool, bad[1] = pool.SettingsFrom(s)
	p.log, bad[2] = d.logs.prepare(s)
	return p, errors.Join(bad[:]...)
}

// reconfigured puts in force what load has prepared. The engine's goroutine calls
// it when the engine has taken the configuration over; it must not wait.
func (d *daemonState) reconfigured(s *config.Snapshot) {
	p := d.conf.prepared
	d.secureBy(p.security)
	d.pool.Reconfigure(p.pool)
	d.logs.reconfigure(p.log)
	d.mu.Lock()
	d.conf.current = s
	d.mu.Unlock()
	_ = d.parent.notify.Ready()
}

// securityFrom reads what a configuration says about security, and looks the names
// of hosts up until ctx ends.
func (d *daemonState) securityFrom(ctx context.Context, s *config.Snapshot) (secured, error) {
	settings, err := security.SettingsFrom(s, d.wire.endpoint.Sources(ctx))
	methods, err2 := authn.SettingsFrom(s, subsystem)
	return secured{settings, methods}, errors.Join(err, err2)
}

// secureBy puts settings of security in force.
func (d *daemonState) secureBy(s secured) {
	system := d.o.System
	system.Files, system.Owners = d.o.Platform.Credentials()
	client := &authn.Client{Settings: s.methods, System: system}
	d.wire.methods.Store(client)
	d.wire.client.Configure(s.settings, client)
	d.wire.server.Configure(s.settings, &authn.Server{Settings: s.methods, System: system, Self: d.self, Mapped: s.settings.Maps})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/confio"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/pool"
)

// poolTool is what a tool needs to speak with the daemons of this machine's
// pool: its configuration, and a client with the credentials of who runs it.
func poolTool() (*config.Snapshot, *security.Client, error) { return poolToolOf("") }

// poolToolOf is poolTool with another configuration, unless root is "".
func poolToolOf(root string) (*config.Snapshot, *security.Client, error) {
	var err error
	if root == "" {
		root, err = machineRoot()
	} else {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, nil, err
	}
	facts := map[string]string{"PID": strconv.Itoa(os.Getpid())}
	if inv := inventory(); inv != nil {
		for name, value := range machine.ConfigFacts(inv) {
			facts[name] = value
		}
	}
	system, home := authn.System{}, ""
	if me, err := user.Current(); err == nil {
		facts["USERNAME"], facts["TILDE"] = me.Username, me.HomeDir
		system.User, system.Home, home = me.Username, me.HomeDir, me.HomeDir
	}
	if condor, err := user.Lookup("condor"); err == nil {
		facts["TILDE"] = condor.HomeDir
	}
	snap, err := config.Load(config.Options{
		Root: root, Env: os.Environ(), Facts: facts, Subsystem: "TOOL", Home: home, Windows: runtime.GOOS == "windows",
		ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: confio.RunCommand, Seed: rand.Uint64(),
	})
	if err != nil {
		return nil, nil, err
	}
	settings, err := security.SettingsFrom(snap, security.Sources{Subsystem: "TOOL", ReadFile: os.ReadFile})
	methods, err2 := authn.SettingsFrom(snap, "TOOL")
	p, err3 := thishost.New()
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, nil, err
	}
	system.Files, system.Owners = p.Credentials()
	now := clock.System()
	network, err4 := daemon.NetworkFrom(snap, "TOOL")
	interfaces, err5 := daemon.Interfaces()
	if err := errors.Join(err4, err5); err != nil {
		return nil, nil, err
	}
	source, err := network.Source(interfaces)
	if err != nil {
		return nil, nil, err
	}
	var client *security.Client
	name := func() string { return "TOOL" }
	dialer := &listen.Dialer{Name: name, PrivateNetwork: network.PrivateName, Ports: network.Out, Source: source, Reverse: &listen.Reverser{
		Name: name, NoRelay: network.NoRelay,
		Open: func(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error) {
			conn, _, err := client.Command(ctx, broker, listen.CCBRequest, security.Options{})
			return conn, err
		},
		Listen: func(ctx context.Context) ([]net.Listener, cedar.Sinful, error) {
			return network.Return(ctx, interfaces, daemon.Resolve)
		},
	}}
	if network.Reuse {
		dialer.Reuse = p.Reuse()
	}
	client = &security.Client{
		Sessions: security.NewSessions(now, 0), Clock: now, Dial: dialer.Dial, Subsystem: "TOOL", PID: os.Getpid(),
		Version: commands.CondorVersion, Address: func() string { return "" },
	}
	client.Configure(settings, &authn.Client{Settings: methods, System: system})
	return snap, client, nil
}

// collectorFinder makes what finds collectors of port 0, by the address file of
// this machine's.
func collectorFinder(snap *config.Snapshot) (func(cedar.Sinful) (cedar.Sinful, error), error) {
	p, err := thishost.New()
	if err != nil {
		return nil, err
	}
	read, err := p.ReadShown(cmp.Or(os.Getenv("CONDOR_IDS"), snap.String("CONDOR_IDS")))
	if err != nil {
		return nil, err
	}
	files := pool.AddressFilesFrom(snap)
	return func(at cedar.Sinful) (cedar.Sinful, error) { return files.FindCollector(at, read) }, nil
}

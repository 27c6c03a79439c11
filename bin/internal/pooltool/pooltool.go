// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pooltool is what a tool needs to speak with the daemons of a pool: the
// configuration as tools read it, a client with the credentials of who runs
// the tool, and where the daemons are.
//
// It must never send a command of its own but to ask where a daemon is.
package pooltool

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"runtime"
	"strconv"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/platform/confio"
)

// Open reads the configuration that begins with the file root, with what is
// known of the machine, and makes a client with the credentials of who runs
// the tool.
func Open(root string, machine map[string]string) (*config.Snapshot, *security.Client, error) {
	facts := map[string]string{"PID": strconv.Itoa(os.Getpid())}
	maps.Copy(facts, machine)
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
	network, err4 := endpoint.NetworkFrom(snap, "TOOL")
	interfaces, err5 := endpoint.Interfaces()
	if err := errors.Join(err4, err5); err != nil {
		return nil, nil, err
	}
	source, err := network.Source(interfaces)
	if err != nil {
		return nil, nil, err
	}
	var client *security.Client
	e := endpoint.New(endpoint.Config{
		Subsystem: "TOOL", Version: commands.CondorVersion, Network: network, Source: source, Reuse: p.Reuse(), Clock: now,
		Brokers: func() (*security.Client, error) { return client, nil },
		Listen: func(ctx context.Context) ([]net.Listener, cedar.Sinful, error) {
			return network.Return(ctx, interfaces, endpoint.Resolve)
		},
	})
	client = e.Client(security.NewSessions(now, 0))
	client.Configure(settings, &authn.Client{Settings: methods, System: system})
	return snap, client, nil
}

// ReadShown makes what reads the files in which daemons of this machine show where
// they are.
func ReadShown(snap *config.Snapshot) (func(path string) ([]byte, error), error) {
	p, err := thishost.New()
	if err != nil {
		return nil, err
	}
	return p.ReadShown(cmp.Or(os.Getenv("CONDOR_IDS"), snap.String("CONDOR_IDS")))
}

// CollectorFinder makes what finds collectors of port 0, by the address file of
// this machine's.
func CollectorFinder(snap *config.Snapshot) (func(cedar.Sinful) (cedar.Sinful, error), error) {
	read, err := ReadShown(snap)
	if err != nil {
		return nil, err
	}
	files := directory.AddressFilesFrom(snap)
	return func(at cedar.Sinful) (cedar.Sinful, error) { return files.FindCollector(at, read) }, nil
}

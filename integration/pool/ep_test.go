// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
	eppool "github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/detect"
)

const ourHost = "ep.execpoint.test"

// execPoint is ours: a real engine behind a real command socket.
type execPoint struct {
	*pooltest.EP
	t       *testing.T
	pool    *eppool.Pool
	address cedar.Sinful
	stop    func() // at once, without a word to anybody
}

// newEP starts an Execution Point with the configuration of the pool.
func newEP(t *testing.T, c *condor, lines string, effect func(engine.Turn, ep.Effect)) *execPoint {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	c.Must(err)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	address := cedar.Sinful{Host: at.Addr().String(), Port: int(at.Port()), Addrs: []netip.AddrPort{at}, Alias: ourHost, NoUDP: true}
	path := filepath.Join(c.Dir, "ep_config")
	c.Must(os.WriteFile(path, []byte("include : "+c.Config+"\n"+lines), 0o644))
	e := &execPoint{t: t, address: address}
	e.EP = pooltest.New(t, pooltest.Options{
		Address: address.String(), Effect: effect,
		Config: config.Options{Root: path, ReadFile: os.ReadFile}, Machine: func(now time.Time) *machine.Inventory { return thisMachine(t, c, now) },
	})
	system := clock.System()
	var log slog.Handler = slog.DiscardHandler
	if testing.Verbose() {
		log = slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	logger := slog.New(log)
	sessions := security.NewSessions(system, 0)
	settings, err := security.SettingsFrom(e.Config, security.Sources{Subsystem: "STARTD", ReadFile: os.ReadFile})
	c.Must(err)
	methods, err := authn.SettingsFrom(e.Config, "STARTD")
	c.Must(err)
	means := authn.System{Files: account.Private{}, Owners: account.Owners{}}
	version := "$CondorVersion: " + pooltest.Version + " 2026-11-20 execpoint $"
	dialer := &listen.Dialer{Name: func() string { return "STARTD " + address.String() }}
	client := &security.Client{
		Sessions: sessions, Clock: system, Log: logger, Version: version, Subsystem: "STARTD", PID: os.Getpid(),
		Dial: dialer.Dial, Post: dialer.Post, Address: address.String,
	}
	asClient := &authn.Client{Settings: methods, System: means}
	client.Configure(settings, asClient)
	var admin []int
	e.pool = eppool.New(eppool.Config{
		Owner: e.EP, Open: client, Sessions: sessions, Address: func() cedar.Sinful { return address }, Start: e.Start,
		Clock: system, Log: logger, AdminCommands: func() []int { return admin },
		Post: func(ctx context.Context, to cedar.Sinful, command int) (collector.Poster, error) {
			return client.Datagrams(ctx, to, command)
		},
	}, e.Settings(t))
	table, err := listen.NewTable(e.pool.Commands()...)
	c.Must(err)
	admin = table.Security().Valid(security.Administrator, true)
	server := &security.Server{Commands: table.Security(), Sessions: sessions, Clock: system, Log: logger, Version: version, Host: "ep", PID: os.Getpid()}
	asServer := &authn.Server{Settings: methods, System: means, Self: func() cedar.Sinful { return address }}
	server.Configure(settings, asServer)
	port := &listen.Server{Table: table, Security: server, Log: logger}

	ctx, cancel := context.WithCancel(context.Background())
	served, ran := make(chan error, 1), make(chan struct{})
	go func() { served <- port.Serve(ctx, l) }()
	e.Begin(ctx, t, e.pool)
	go func() { defer close(ran); e.pool.Run(ctx) }()
	e.stop = func() {
		cancel()
		<-ran
		if served == nil {
			return
		}
		if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		served = nil
		limit, done := context.WithTimeout(context.Background(), patience)
		defer done()
		port.Wait(limit)
	}
	t.Cleanup(func() { e.stop() })
	return e
}

// thisMachine is what the machine really has, under a name of its own.
func thisMachine(t *testing.T, c *condor, now time.Time) *machine.Inventory {
	t.Helper()
	sys := detect.Host(linux.DefaultRoot())
	inv, problems := machine.Scan(t.Context(), now, append(detect.Scanners(sys), detect.Volume(sys, filepath.Join(c.Dir, "execute")))...)
	for _, err := range problems {
		t.Log(err)
	}
	inv.Hostname, inv.FullHostname = "ep", ourHost
	run.Advertise(inv, "0.0.0")
	return inv
}

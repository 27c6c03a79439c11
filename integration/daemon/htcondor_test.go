// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/sharedport"
)

// patience is how long anything may take.
const patience = realpool.Patience

// version is what our daemon says of itself.
const version = "$CondorVersion: 25.14.0 2026-11-20 execpoint $"

const knobs = `LOCAL_DIR = @DIR@
LOCAL_CONFIG_FILE =
LOCAL_CONFIG_DIR =
LOG = @DIR@/log
LOCK = @DIR@/lock
RUN = @DIR@/run
SPOOL = @DIR@/log
EXECUTE = @DIR@/log
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:@PORT@
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = false
ENABLE_IPV6 = false
HOST_ALIAS = ep.execpoint.test
UID_DOMAIN = execpoint.test
TRUST_DOMAIN = execpoint.test
USE_SHARED_PORT = false
DAEMON_SOCKET_DIR = @DIR@/sock
SHARED_PORT_DAEMON_AD_FILE = @DIR@/lock/shared_port_ad
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
SEC_DEFAULT_ENCRYPTION = PREFERRED
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_CLIENT = *
ALLOW_DAEMON = *@execpoint.test
ALLOW_ADMINISTRATOR = *@execpoint.test
ALLOW_NEGOTIATOR = somebody@else
STARTD_LOG = @DIR@/log/StartLog
STARTD_ADDRESS_FILE = @DIR@/log/.startd_address
OUR_KNOB = a value
`

// site is a directory with a configuration, and the real programs.
type site struct{ *realpool.Pool }

func newSite(t *testing.T, lines string) *site {
	t.Helper()
	realpool.Patient(t)
	s := &site{realpool.Make(t, knobs+lines)}
	s.Mkdir(filepath.Join(s.Dir, "sock"))
	return s
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// tool runs a tool and returns all that it said.
func (s *site) tool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := s.Command(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// eventually asks again and again until there is no error.
func (s *site) eventually(what string, ask func() error) {
	s.TB.Helper()
	s.Pool.Eventually(what, patience, func(context.Context) error { return ask() })
}

// citizen is a daemon of ours with nothing but what every daemon has.
type citizen struct {
	door    *daemon.CommandPort
	log     *lines // nil in a process of its own
	client  *security.Client
	orderly *daemon.Orders
	down    chan daemon.Mode // told of orders to go down, if not nil

	mu     sync.Mutex
	orders []string
}

func (c *citizen) Reconfigure(full bool) { c.order(fmt.Sprintf("reconfigure %v", full)) }
func (c *citizen) Shutdown(m daemon.Mode) {
	c.order(m.String())
	if c.down != nil {
		c.down <- m
	}
}
func (c *citizen) order(s string) { c.mu.Lock(); c.orders = append(c.orders, s); c.mu.Unlock() }
func (c *citizen) ordered() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.orders, ",")
}

// lines is a log that the test looks at.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *lines) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// assemble makes a citizen of a configuration. Its door is not open yet.
func assemble(root string, in daemon.Inherit, cookie string, log *slog.Logger) (*citizen, error) {
	c := &citizen{}
	conf, err := config.Load(config.Options{Root: root, ReadFile: os.ReadFile, Env: os.Environ(), Subsystem: "STARTD"})
	if err != nil {
		return nil, err
	}
	system := clock.System()
	answers := &daemon.Answers{
		Orders: &daemon.Orders{Control: c}, Config: func() *config.Snapshot { return conf }, Clock: system, Files: daemon.DiskFiles{},
		Instance: [8]byte{0xca, 0xfe},
	}
	reverser := &listen.Reverser{}
	table, err1 := listen.NewTable(append(answers.Commands(), reverser.Command())...)
	settings, err2 := security.SettingsFrom(conf, security.Sources{Subsystem: "STARTD", ReadFile: os.ReadFile})
	methods, err3 := authn.SettingsFrom(conf, "STARTD")
	network, err4 := endpoint.NetworkFrom(conf, "STARTD")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	machine := authn.System{Files: account.Private{}, Owners: account.Owners{}}
	sessions := security.NewSessions(system, 1000)
	if in.Parent != nil {
		if _, err := sessions.AddParent(*in.Parent, in.ParentAddress); err != nil {
			return nil, err
		}
	}
	if in.Family != nil {
		if _, err := sessions.AddFamily(*in.Family); err != nil {
			return nil, err
		}
	}
	d := &daemon.CommandPort{
		Network: network, Inherit: in, Subsystem: "STARTD", PID: os.Getpid(), Tag: 0xab12, Log: log,
		Machine: daemon.Machine{Interfaces: endpoint.Interfaces, ReadFile: os.ReadFile, Named: func(id string, in *daemon.NamedSocket) (listen.NamedSocket, error) {
			if in != nil {
				return sharedport.Inherited(in.Descriptor, in.Name)
			}
			return sharedport.Listen(sharedport.Place{Cookie: cookie, Dir: network.SocketDir, ID: id})
		}},
		File: daemon.AddressFile{Path: conf.String("STARTD_ADDRESS_FILE"), Version: version, Platform: "$CondorPlatform: X86_64-Linux $"},
	}
	c.door, c.orderly = d, answers.Orders
	dialer := &listen.Dialer{Name: d.Name, Reverse: reverser}
	reverser.Name = d.Name
	reverser.Return = func() cedar.Sinful { s, _ := d.Public(); return s }
	reverser.Open = func(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error) {
		conn, _, err := c.client.Command(ctx, broker, command.CCBRequest, security.Options{})
		return conn, err
	}
	c.client = &security.Client{
		Sessions: sessions, Clock: system, Log: log, Version: version, Subsystem: "STARTD", PID: os.Getpid(), Dial: dialer.Dial,
		Address: func() string { return d.Local().String() }, Local: netip.Addr.IsLoopback,
	}
	c.client.Configure(settings, &authn.Client{Settings: methods, System: machine})
	d.Dial = dialer.Dial
	d.Broker = func(ctx context.Context, address string) (*cedar.Conn, error) {
		to, err := cedar.ParseSinful(address)
		if err != nil {
			return nil, err
		}
		conn, _, err := c.client.Command(ctx, to, command.CCBRegister, security.Options{Temporary: true})
		return conn, err
	}
	server := &security.Server{Commands: table.Security(), Sessions: sessions, Clock: system, Log: log, Version: version, Host: "ep", PID: os.Getpid()}
	server.Configure(settings, &authn.Server{Settings: methods, System: machine, Self: d.Local})
	d.Server = &listen.Server{Table: table, Security: server, Log: log}
	return c, nil
}

// live starts a citizen at the site.
func (s *site) live() *citizen {
	s.TB.Helper()
	text := new(lines)
	c, err := assemble(s.Config, daemon.Inherit{}, "", slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.Must(err)
	c.log = text
	d := c.door
	s.Must(d.Open(s.TB.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	s.TB.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			s.TB.Error(err)
		}
		limit, done := context.WithTimeout(context.Background(), patience)
		defer done()
		d.Server.Wait(limit)
		if s.TB.Failed() {
			s.TB.Logf("our log:\n%s", c.log)
		}
	})
	return c
}

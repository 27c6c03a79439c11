// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Config is what differs between one process and another on the wire.
type Config struct {
	Subsystem string // as "STARTD"
	Version   string // our $CondorVersion string
	PID       int    // 0 is this process's
	Network   Network
	// Source is where connections come from; Network.Outgoing finds it.
	Source listen.Source
	// Reuse is listen.Dialer's; nil where the system has no such thing. It is used
	// where Network.Reuse is set.
	Reuse func(*net.Dialer) (lingers func(error) bool)

	// Name says who we are, for the logs of others: "STARTD <address>".
	Name func() string
	// Address is our command socket as the daemons of this machine reach it, ""
	// for none.
	Address func() string
	// Public is where a daemon behind a broker connects to us: our command socket,
	// whose server has Reverser.Command in its table. A process without command
	// socket has Listen instead, which opens sockets for that one connection.
	Public func() cedar.Sinful
	Listen func(ctx context.Context) ([]net.Listener, cedar.Sinful, error)
	// Brokers is the client that speaks with brokers, asked for when the first one
	// is spoken to. It was made by Client and has its settings. Nil speaks with none.
	Brokers func() (*security.Client, error)

	Clock clock.Clock  // nil is the system's
	Log   *slog.Logger // nil is none
}

// Endpoint is a process on the wire.
type Endpoint struct {
	Config
	Names    *security.HostNames // of those who come, and of lists with names
	Reverser *listen.Reverser
	Dialer   *listen.Dialer
}

// New opens nothing yet.
func New(cfg Config) *Endpoint {
	if cfg.PID == 0 {
		cfg.PID = os.Getpid()
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == nil {
		cfg.Name = func() string { return cfg.Subsystem }
	}
	if cfg.Address == nil {
		cfg.Address = func() string { return "" }
	}
	e := &Endpoint{Config: cfg, Names: &security.HostNames{Resolver: net.DefaultResolver, Clock: cfg.Clock}}
	e.Reverser = &listen.Reverser{Name: cfg.Name, Return: cfg.Public, Listen: cfg.Listen, Open: e.ask, NoRelay: cfg.Network.NoRelay}
	e.Dialer = &listen.Dialer{Name: cfg.Name, PrivateNetwork: cfg.Network.PrivateName, Ports: cfg.Network.Out, Source: cfg.Source, Reverse: e.Reverser}
	if cfg.Network.Reuse {
		e.Dialer.Reuse = cfg.Reuse
	}
	return e
}

// Client makes a client with these sessions, which has no settings yet.
func (e *Endpoint) Client(sessions *security.Sessions) *security.Client {
	return &security.Client{
		Sessions: sessions, Clock: e.Clock, Log: e.Log, Dial: e.Dialer.Dial, Version: e.Version, Subsystem: e.Subsystem, PID: e.PID,
		Address: e.Address, Names: e.Names.Of,
	}
}

// Server makes the server's side of security with these sessions, which has no
// commands and settings yet. Ids of sessions begin with host.
func (e *Endpoint) Server(host string, sessions *security.Sessions) *security.Server {
	return &security.Server{
		Sessions: sessions, Clock: e.Clock, Log: e.Log, Version: e.Version, Host: host, PID: e.PID, Names: e.Names.Of,
	}
}

// Sources are what settings of security may name: files of this machine, and
// hosts, which are looked up until ctx ends.
func (e *Endpoint) Sources(ctx context.Context) security.Sources {
	lookup := func(name string) []netip.Addr { return e.Names.Addresses(ctx, name) }
	return security.Sources{
		Subsystem: e.Subsystem, ReadFile: os.ReadFile, ReadDir: entries, Hosts: security.Hosts{Lookup: lookup, Local: Local},
	}
}

// Register opens a connection to a broker on which to register, under a session
// that is not kept: the broker might forget it while it keeps our number.
func (e *Endpoint) Register(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error) {
	return e.broker(ctx, broker, command.CCBRegister, security.Options{Temporary: true})
}

// ask opens a request that a broker have one of its targets call us.
func (e *Endpoint) ask(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error) {
	return e.broker(ctx, broker, command.CCBRequest, security.Options{})
}

func (e *Endpoint) broker(ctx context.Context, to cedar.Sinful, number int, o security.Options) (*cedar.Conn, error) {
	if e.Brokers == nil {
		return nil, errs.E("endpoint.broker", errs.Unsupported, to.String(), errors.New("this process speaks with no brokers"))
	}
	client, err := e.Brokers()
	if err != nil {
		return nil, err
	}
	conn, _, err := client.Command(ctx, to, number, o)
	return conn, err
}

// entries are the names in a directory.
func entries(path string) ([]string, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

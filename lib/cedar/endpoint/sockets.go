// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
)

// Sockets are what a process listens with: a named socket behind a shared port,
// or ports of its own and the brokers that it registers with. The exported fields
// are set before one of Share, Listen and Take is called, which comes before Serve.
type Sockets struct {
	Network Network
	Server  *listen.Server
	// Name says who we are, for the logs of brokers: "STARTD <address>".
	Name func() string
	// Brokers are the addresses to register at, where there are ports of our own:
	// the shared port registers for all who are behind it.
	Brokers []string
	// Broker opens a connection to one of Brokers for command.CCBRegister, under
	// a session that is not kept; Dial connects to those who ask the broker for us.
	Broker func(ctx context.Context, address string) (*cedar.Conn, error)
	Dial   func(ctx context.Context, to cedar.Sinful) (net.Conn, error)
	// Registered is called when Contacts are others.
	Registered func()
	Log        *slog.Logger

	shared    *listen.Endpoint
	listeners []net.Listener
	packets   []net.PacketConn
	contacts  listen.Contacts
	closed    atomic.Bool
}

// Share listens behind a shared port: at first, the named socket of that id, and
// should it vanish, at what open makes then.
func (s *Sockets) Share(id string, first listen.NamedSocket, open func() (listen.NamedSocket, error)) {
	s.shared = &listen.Endpoint{ID: id, Server: s.Server, Log: s.Log, Open: func() (listen.NamedSocket, error) {
		if l := first; l != nil {
			first = nil
			return l, nil
		}
		return open()
	}}
}

// portTries is how often a port is taken by chance until it is free for
// datagrams, too.
const portTries = 10

// Listen opens ports for connections and, at the same port, for datagrams if
// they are taken. port 0 takes one from Network.In, or any.
func (s *Sockets) Listen(ctx context.Context, port int, v4, v6 netip.Addr, datagrams bool) error {
	for try := 1; ; try++ {
		all, err := s.Network.Listen(ctx, port, v4, v6)
		if err != nil {
			return err
		}
		s.listeners = all
		if !datagrams {
			return nil
		}
		if s.packets, err = s.Network.ListenDatagrams(ctx, all); err == nil {
			return nil
		}
		for _, l := range all {
			_ = l.Close()
		}
		if port != 0 || try == portTries {
			return err
		}
	}
}

// Take listens at ports that are open, as those that the parent handed down.
func (s *Sockets) Take(listeners []net.Listener, packets []net.PacketConn) {
	s.listeners, s.packets = listeners, packets
}

// SharedPort is the id of the socket behind a shared port; false where there are
// ports of our own.
func (s *Sockets) SharedPort() (id string, ok bool) {
	if s.shared == nil {
		return "", false
	}
	return s.shared.ID, true
}

// Port is the port of our own, 0 without.
func (s *Sockets) Port() int {
	if len(s.listeners) > 0 {
		if t, ok := s.listeners[0].Addr().(*net.TCPAddr); ok {
			return t.Port
		}
	}
	return 0
}

// Datagrams reports whether datagrams are taken.
func (s *Sockets) Datagrams() bool { return len(s.packets) > 0 }

// Brokered reports whether Serve registers with brokers.
func (s *Sockets) Brokered() bool { return s.shared == nil && len(s.Brokers) > 0 }

// Contacts are the brokers that let others in now, with the ids that they gave us.
func (s *Sockets) Contacts() []cedar.Broker { return s.contacts.Brokers() }

// Serve serves what comes in, and registers with the brokers, until ctx ends or
// Close. A socket that fails ends the others. Serve returns its error, or nil.
func (s *Sockets) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	run := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && !s.closed.Load() {
				once.Do(func() { first = err })
				cancel() // a process that is reached at one of two ports seems to work
			}
		})
	}
	if s.shared != nil {
		run(s.shared.Serve)
	}
	for _, l := range s.listeners {
		run(func(ctx context.Context) error { return s.Server.Serve(ctx, l) })
	}
	for _, p := range s.packets {
		run(func(ctx context.Context) error { return s.Server.ServePackets(ctx, p) })
	}
	if s.Brokered() {
		for i, address := range s.Brokers {
			b := s.broker(i, address)
			wg.Go(func() { b.Run(ctx) })
		}
	}
	wg.Wait()
	return first
}

// Close closes the ports of our own: Serve, if it runs, is to end without an
// error. It may be called again.
func (s *Sockets) Close() {
	s.closed.Store(true)
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for _, p := range s.packets {
		_ = p.Close()
	}
}

func (s *Sockets) broker(n int, address string) *listen.Broker {
	return &listen.Broker{
		Address: address,
		Open:    func(ctx context.Context) (*cedar.Conn, error) { return s.Broker(ctx, address) },
		Dial:    s.Dial,
		Serve:   s.Server.ServeConn,
		Name:    s.Name,

		PrivateNetwork: s.Network.PrivateName,

		Heartbeat: s.Network.Heartbeat, Reconnect: s.Network.Reconnect, Log: s.Log,
		Registered: func(ccbid string) {
			s.contacts.Set(n, ccbid)
			if s.Registered != nil {
				s.Registered()
			}
		},
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
)

// What one starter holds at a time: a schedd, a shadow and a few windows of
// the job's owner.
const (
	mostConns      = 128
	mostPerPeer    = 96
	mostHandshakes = 32
	mostSessions   = 64
	toSayWho       = 20 * time.Second
	perMessage     = 20 * time.Second
)

// The limits of a message before and after it is known who asks.
var wire = cedar.Limits{Message: 1 << 20}

// Door is a starter's command socket. Its methods may be called from any
// goroutine.
type Door struct {
	cfg      Config
	id       claim.ID
	sessions *security.Sessions
	server   *listen.Server

	endpoint   *listen.Endpoint
	listeners  []net.Listener
	contacts   listen.Contacts
	stop       context.CancelFunc
	stopped    context.Context
	instanceID uint64         // by chance
	visits     sync.WaitGroup // what was left to run for a visitor, as an sshd

	mu       sync.Mutex
	address  cedar.Sinful
	owners   map[string]string // ids of the sessions made for a job's owner -> who that is
	ownerIDs []string          // their order, oldest first
}

// Open opens the socket. After it the starter can be reached once Serve runs,
// and what came meanwhile is served then.
func Open(ctx context.Context, cfg Config) (*Door, error) {
	const op = "reach.Open"
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.PID == 0 {
		cfg.PID = os.Getpid()
	}
	id, err := claim.ParseID(cfg.Claim.Reveal())
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "claim", err)
	}
	startd, err := cedar.ParseSinful(cfg.Address)
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "address of the startd", err)
	}
	d := &Door{cfg: cfg, id: id, instanceID: rand.Uint64(), owners: map[string]string{}}
	d.stopped, d.stop = context.WithCancel(context.Background())
	if err := d.secure(); err != nil {
		return nil, err
	}
	if cfg.sharedPort(startd) {
		if err = d.openShared(cfg.Settings.Network.SocketDir, startd); err != nil {
			cfg.Log.Warn("no endpoint of the shared port; the starter takes a port of its own", "err", err)
		}
	}
	if d.endpoint == nil {
		err = d.openOwn(ctx, startd)
	}
	if err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

// secure prepares who may come in.
func (d *Door) secure() error {
	d.sessions = security.NewSessions(d.cfg.Clock, mostSessions)
	if _, err := d.sessions.AddClaim(d.id); err != nil && !errs.Is(err, errs.Invalid) {
		return err
	} else if err != nil {
		// A claim id without session info: nobody can show that he has it.
		d.cfg.Log.Warn("the claim has no session, so nobody reaches the job", "err", err)
	}
	if err := d.secureFamily(); err != nil {
		d.cfg.Log.Warn("daemons of this machine are not known by the session of their condor_master", "err", err)
	}
	table, err := listen.NewTable(append(d.Commands(), d.cfg.Commands...)...)
	if err != nil {
		return err
	}
	secured := &security.Server{
		Commands: table.Security(), Sessions: d.sessions, Clock: d.cfg.Clock, Log: d.cfg.Log,
		Version: d.cfg.Version, Host: "starter", PID: d.cfg.PID, Names: d.cfg.Names,
	}
	d.server = &listen.Server{
		Table: table, Security: &guard{Server: secured, cfg: &d.cfg}, Wire: wire, Log: d.cfg.Log,
		Limits: listen.Limits{Conns: mostConns, PerPeer: mostPerPeer, Handshakes: mostHandshakes, Handshake: toSayWho, Message: perMessage},
	}
	return nil
}

// secureFamily lets in the daemons of this machine's condor_master.
func (d *Door) secureFamily() error {
	if d.cfg.Family == "" {
		return nil
	}
	id, err := security.ParseCapabilityID(d.cfg.Family.Reveal())
	if err != nil {
		return err
	}
	_, err = d.sessions.AddFamily(id)
	return err
}

// openShared makes an endpoint of the shared port that the startd is behind.
func (d *Door) openShared(dir string, startd cedar.Sinful) error {
	id := listen.NewID("starter", d.cfg.PID, uint16(rand.Uint32()), 0)
	first, err := d.cfg.SharedPort(dir, id)
	if err != nil {
		return err
	}
	d.endpoint = &listen.Endpoint{ID: id, Server: d.server, Log: d.cfg.Log, Open: func() (listen.NamedSocket, error) {
		if l := first; l != nil {
			first = nil
			return l, nil
		}
		return d.cfg.SharedPort(dir, id)
	}}
	// The shared port keeps the brokers, for all who are behind it.
	s := startd
	s.SockID = id
	if s.PrivAddr != nil {
		p := *s.PrivAddr
		p.SockID = id
		s.PrivAddr = &p
	}
	d.address = s
	return nil
}

// openOwn opens ports of our own, one for each protocol that the startd has.
func (d *Door) openOwn(ctx context.Context, startd cedar.Sinful) error {
	n := daemon.Network{In: d.cfg.Settings.Network.In, BindAll: d.cfg.Settings.Network.BindAll}
	v4, v6 := addresses(startd)
	if !v4.IsValid() && !v6.IsValid() {
		// A name for a host: any address of it will do to listen everywhere.
		v4 = netip.IPv4Unspecified()
		n.BindAll = true
	}
	if !n.BindAll && d.cfg.Settings.Network.Forwarding != "" {
		// What the address shows is another host's.
		all, err := daemon.Interfaces()
		if err != nil {
			return err
		}
		a4, a6, err := n.Pick(d.cfg.Settings.Network.Interface, all)
		if err != nil {
			return err
		}
		if !v4.IsValid() {
			a4 = netip.Addr{}
		}
		if !v6.IsValid() {
			a6 = netip.Addr{}
		}
		v4, v6 = a4, a6
	}
	var err error
	if d.listeners, err = n.Listen(ctx, 0, v4, v6); err != nil {
		return err
	}
	port := 0
	if t, ok := d.listeners[0].Addr().(*net.TCPAddr); ok {
		port = t.Port
	}
	d.address = atPort(startd, port)
	return nil
}

// addresses returns the first address of each protocol that a sinful shows.
func addresses(s cedar.Sinful) (v4, v6 netip.Addr) {
	all := s.Addrs
	if host, err := netip.ParseAddr(s.Host); err == nil {
		all = append([]netip.AddrPort{netip.AddrPortFrom(host, 0)}, all...)
	}
	for _, a := range all {
		switch ip := a.Addr().Unmap(); {
		case ip.Is4() && !v4.IsValid():
			v4 = ip
		case ip.Is6() && !v6.IsValid():
			v6 = ip
		}
	}
	return v4, v6
}

// atPort is the address of another socket on the host of s: brokers and the
// shared port know nothing of it.
func atPort(s cedar.Sinful, port int) cedar.Sinful {
	s.Port, s.SockID, s.CCB, s.NoUDP = port, "", nil, true
	addrs := make([]netip.AddrPort, len(s.Addrs))
	for i, a := range s.Addrs {
		addrs[i] = netip.AddrPortFrom(a.Addr(), uint16(port))
	}
	s.Addrs = addrs
	if s.PrivAddr != nil {
		p := *s.PrivAddr
		p.Port, p.SockID = port, ""
		s.PrivAddr = &p
	}
	return s
}

// Address is where the starter is reached: StarterIpAddr.
func (d *Door) Address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.address.String()
}

// Serve answers until ctx ends or Close. It returns nil then.
func (d *Door) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.stopped, cancel)()
	var wg sync.WaitGroup
	failed := make(chan error, len(d.listeners)+1)
	run := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil && d.stopped.Err() == nil {
				failed <- err
				cancel() // half a door is none
			}
		})
	}
	if d.endpoint != nil {
		run(func() error { return d.endpoint.Serve(ctx) })
	}
	for _, l := range d.listeners {
		run(func() error { return d.server.Serve(ctx, l) })
	}
	for i, address := range d.brokers() {
		b := d.broker(i, address)
		wg.Go(func() { b.Run(ctx) })
	}
	wg.Wait()
	gone, cancelWait := context.WithCancel(context.Background())
	cancelWait() // handlers lose their connections at once
	d.server.Wait(gone)
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Close ends Serve, closes the socket, and ends what was left to run for a
// visitor. It may be called again.
func (d *Door) Close() {
	d.mu.Lock() // no visit begins from here on
	d.stop()
	d.mu.Unlock()
	for _, l := range d.listeners {
		_ = l.Close()
	}
	d.visits.Wait()
}

// brokers are those that the startd is reached through, if we can register
// there ourselves.
func (d *Door) brokers() []string {
	if d.endpoint != nil || d.cfg.Broker == nil || d.cfg.Dial == nil {
		return nil
	}
	startd, err := cedar.ParseSinful(d.cfg.Address)
	if err != nil {
		return nil
	}
	var all []string
	for _, b := range startd.CCB {
		all = append(all, b.Address)
	}
	return all
}

// Brokered reports whether the address is complete only once a broker has
// answered.
func (d *Door) Brokered() bool { return len(d.brokers()) > 0 }

func (d *Door) broker(n int, address string) *listen.Broker {
	return &listen.Broker{
		Address: address,
		Open:    func(ctx context.Context) (*cedar.Conn, error) { return d.cfg.Broker(ctx, address) },
		Dial:    d.cfg.Dial,
		Serve:   d.server.ServeConn,
		Name:    func() string { return "STARTER " + d.Address() },

		PrivateNetwork: d.cfg.Settings.Network.PrivateName,
		Heartbeat:      d.cfg.Settings.Network.Heartbeat, Reconnect: d.cfg.Settings.Network.Reconnect, Log: d.cfg.Log,
		Registered: func(ccbid string) {
			d.contacts.Set(n, ccbid)
			d.mu.Lock()
			d.address.CCB = d.contacts.Brokers()
			text := d.address.String()
			d.mu.Unlock()
			if d.cfg.Changed != nil {
				d.cfg.Changed(text)
			}
		},
	}
}

// shown cuts what came from a peer to what a message can hold.
func shown(text string) string {
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Trim(fmt.Sprintf("%q", text), `"`)
}

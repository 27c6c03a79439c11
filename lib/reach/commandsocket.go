// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
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

// CommandSocket is a starter's command socket. Its methods may be called from
// any goroutine.
type CommandSocket struct {
	cfg      Config
	id       claim.ID
	sessions *security.Sessions
	server   *listen.Server

	sockets    endpoint.Sockets
	stop       context.CancelFunc
	stopped    context.Context
	instanceID uint64         // by chance
	visits     sync.WaitGroup // what was left to run for a visitor, as an sshd

	keys        sync.Mutex // one is made at a time
	registering sync.Mutex // one at a time, so that Changed gets the latest address last

	mu       sync.Mutex
	address  cedar.Sinful
	owners   map[string]string // ids of the sessions made for a job's owner -> who that is
	ownerIDs []string          // their order, oldest first
}

// Open opens the socket. After it the starter can be reached once Serve runs,
// and what came meanwhile is served then.
func Open(ctx context.Context, cfg Config) (*CommandSocket, error) {
	const op = "reach.Open"
	if cfg.Endpoint == nil {
		cfg.Endpoint = endpoint.New(endpoint.Config{Subsystem: "STARTER"})
	}
	id, err := claim.ParseID(cfg.Claim.Reveal())
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "claim", err)
	}
	startd, err := cedar.ParseSinful(cfg.Address)
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "address of the startd", err)
	}
	cs := &CommandSocket{cfg: cfg, id: id, instanceID: rand.Uint64(), owners: map[string]string{}}
	cs.stopped, cs.stop = context.WithCancel(context.Background())
	if err := cs.secure(); err != nil {
		cs.stop()
		return nil, err
	}
	cs.sockets = endpoint.Sockets{
		Network: cfg.Settings.Network, Server: cs.server, Name: func() string { return "STARTER " + cs.Address() },
		Broker: cfg.Broker, Dial: cfg.Endpoint.Dialer.Dial, Registered: cs.registered, Log: cfg.Endpoint.Log,
	}
	if cfg.Broker != nil {
		for _, b := range startd.CCB {
			cs.sockets.Brokers = append(cs.sockets.Brokers, b.Address)
		}
	}
	shared := false
	if cfg.sharedPort(startd) {
		if err = cs.openShared(cfg.Settings.Network.SocketDir, startd); err != nil {
			cfg.Endpoint.Log.Warn("no endpoint of the shared port; the starter takes a port of its own", "err", err)
		}
		shared = err == nil
	}
	if !shared {
		err = cs.openOwn(ctx, startd)
	}
	if err != nil {
		cs.stop()
		return nil, err
	}
	return cs, nil
}

// secure prepares who may come in.
func (cs *CommandSocket) secure() error {
	cs.sessions = security.NewSessions(cs.cfg.Endpoint.Clock, mostSessions)
	if _, err := cs.sessions.AddClaim(cs.id); err != nil && !errs.Is(err, errs.Invalid) {
		return err
	} else if err != nil {
		// A claim id without session info: no peer can prove that it has the id.
		cs.cfg.Endpoint.Log.Warn("the claim has no session, so nobody reaches the job", "err", err)
	}
	if err := cs.secureFamily(); err != nil {
		cs.cfg.Endpoint.Log.Warn("daemons of this machine are not known by the session of their condor_master", "err", err)
	}
	table, err := listen.NewTable(append(cs.Commands(), cs.cfg.Commands...)...)
	if err != nil {
		return err
	}
	secured := cs.cfg.Endpoint.Server("starter", cs.sessions)
	secured.Commands = table.Security()
	cs.server = &listen.Server{
		Table: table, Security: &guard{Server: secured, cfg: &cs.cfg}, Wire: wire, Log: cs.cfg.Endpoint.Log,
		Limits: listen.Limits{Conns: mostConns, PerPeer: mostPerPeer, Handshakes: mostHandshakes, Handshake: toSayWho, Message: perMessage},
	}
	return nil
}

// secureFamily lets in the daemons of this machine's condor_master.
func (cs *CommandSocket) secureFamily() error {
	if cs.cfg.Family == "" {
		return nil
	}
	id, err := security.ParseCapabilityID(cs.cfg.Family.Reveal())
	if err != nil {
		return err
	}
	_, err = cs.sessions.AddFamily(id)
	return err
}

// openShared makes an endpoint of the shared port that the startd is behind.
func (cs *CommandSocket) openShared(dir string, startd cedar.Sinful) error {
	id := listen.NewID("starter", cs.cfg.Endpoint.PID, uint16(rand.Uint32()), 0)
	first, err := cs.cfg.SharedPort(dir, id)
	if err != nil {
		return err
	}
	cs.sockets.Share(id, first, func() (listen.NamedSocket, error) { return cs.cfg.SharedPort(dir, id) })
	// The shared port keeps the brokers, for all who are behind it.
	s := startd
	s.SockID = id
	if s.PrivAddr != nil {
		p := *s.PrivAddr
		p.SockID = id
		s.PrivAddr = &p
	}
	cs.address = s
	return nil
}

// openOwn opens ports of our own, one for each protocol that the startd has.
func (cs *CommandSocket) openOwn(ctx context.Context, startd cedar.Sinful) error {
	n := &cs.sockets.Network
	v4, v6 := addresses(startd)
	if !v4.IsValid() && !v6.IsValid() {
		// A name for a host: any address of it will do to listen everywhere.
		v4 = netip.IPv4Unspecified()
		n.BindAll = true
	}
	if !n.BindAll && cs.cfg.Settings.Network.Forwarding != "" {
		// What the address shows is another host's.
		all, err := endpoint.Interfaces()
		if err != nil {
			return err
		}
		a4, a6, err := endpoint.Network{}.Pick(cs.cfg.Settings.Network.Interface, all)
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
	if err := cs.sockets.Listen(ctx, 0, v4, v6, false); err != nil {
		return err
	}
	cs.address = atPort(startd, cs.sockets.Port())
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
func (cs *CommandSocket) Address() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.address.String()
}

// Serve answers until ctx ends or Close. It returns nil then.
func (cs *CommandSocket) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(cs.stopped, cancel)()
	err := cs.sockets.Serve(ctx)
	gone, cancelWait := context.WithCancel(context.Background())
	cancelWait() // handlers lose their connections at once
	cs.server.Wait(gone)
	return err
}

// Close ends Serve, closes the socket, and ends what was left to run for a
// visitor. It may be called again.
func (cs *CommandSocket) Close() {
	cs.mu.Lock() // no visit begins from here on
	cs.stop()
	cs.mu.Unlock()
	cs.sockets.Close()
	cs.visits.Wait()
}

// Brokered reports whether the address is complete only once a broker has
// answered.
func (cs *CommandSocket) Brokered() bool { return cs.sockets.Brokered() }

// registered takes over what the brokers call us.
func (cs *CommandSocket) registered() {
	cs.registering.Lock()
	defer cs.registering.Unlock()
	cs.mu.Lock()
	cs.address.CCB = cs.sockets.Contacts()
	text := cs.address.String()
	cs.mu.Unlock()
	if cs.cfg.Changed != nil {
		cs.cfg.Changed(text)
	}
}

// shown makes what came from a peer fit for a message.
func shown(text string) string {
	const most = 80
	return strings.Trim(fmt.Sprintf("%q", cut(text, most)), `"`)
}

// cut shortens a text to that many bytes, and says so.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

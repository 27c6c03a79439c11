// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// reached is where the starter is reached: its command socket, and the brokers in
// front of it.
type reached struct {
	cfg      *Config
	conv     *conversation
	endpoint *endpoint.Endpoint
	socket   *reach.CommandSocket // nil before it is open
	served   chan struct{}        // closed when the socket's goroutine has ended
	// answered is closed when the first broker has answered; nil where the daemon
	// is behind none.
	answered chan struct{}
}

func newReached(cfg *Config, conv *conversation) *reached {
	r := &reached{cfg: cfg, conv: conv}
	network := cfg.Plan.Settings.Pool.Reach.Network
	source, err := network.Outgoing()
	if err != nil {
		conv.log.Warn("connections come from whatever address the system chooses", "err", err)
	}
	r.endpoint = endpoint.New(endpoint.Config{
		Subsystem: protocol.Subsystem, Version: cfg.Plan.Shadow.Version, Network: network, Source: source, Reuse: cfg.Reuse,
		Name: func() string { return "STARTER " + r.address() }, Address: r.address, Public: r.self, Brokers: sync.OnceValues(r.brokerClient),
		Clock: conv.clock, Log: conv.log,
	})
	return r
}

// open makes the command socket, for those who come to see the job.
func (r *reached) open(ctx context.Context, visits reach.Handler) error {
	plan, set := r.cfg.Plan.Shadow, r.cfg.Plan.Settings.Pool
	where := reach.Config{
		Claim: plan.Claim, Family: plan.Family, Address: plan.Address, Job: visits, Settings: set.Reach, Secure: r.secure, Endpoint: r.endpoint,
		Platform: plan.Platform, Commands: []listen.Command{r.endpoint.Reverser.Command()},
	}
	if share := r.cfg.SharedPort; share != nil {
		where.SharedPort = func(dir, id string) (listen.NamedSocket, error) { return share(plan.Cookie, dir, id) }
	}
	behind, err := r.behindBroker()
	switch {
	case err != nil:
		r.conv.log.Warn("the starter is not reached through a broker", "err", err)
	case behind:
		r.answered = make(chan struct{})
		where.Broker, where.Changed = r.registerAt, r.moved
	}
	r.socket, err = reach.Open(ctx, where)
	return err
}

// serve takes commands from now on.
func (r *reached) serve() {
	r.served = make(chan struct{})
	go func() {
		defer close(r.served)
		if err := r.socket.Serve(context.Background()); err != nil {
			r.conv.log.Warn("the starter cannot be reached any more", "err", err)
		}
	}()
	r.cfg.Report(protocol.Contact{Address: r.socket.Address()})
}

func (r *reached) close() {
	if r.socket == nil {
		return
	}
	r.socket.Close()
	if r.served != nil {
		<-r.served
	}
}

// address is where the starter is reached, "" before it is.
func (r *reached) address() string {
	if r.socket == nil {
		return ""
	}
	return r.socket.Address()
}

// self is where the starter is reached.
func (r *reached) self() cedar.Sinful {
	at, _ := cedar.ParseSinful(r.address())
	return at
}

// secure makes what lets others in than those with a session. Schedds of
// 25.14 need it: they mean to come with the session of the claim, but lose its
// name on the way.
func (r *reached) secure(ctx context.Context) (*security.Settings, security.Authenticator, error) {
	settings, methods, system, err := r.configured(ctx)
	if err != nil {
		return nil, nil, err
	}
	return settings, &authn.Server{Settings: methods, System: system, Self: r.self, Mapped: settings.Maps}, nil
}

// configured is what the settings say about security, and what of this process
// counts for it. Names of hosts are looked up until ctx ends, and files are read now.
func (r *reached) configured(ctx context.Context) (*security.Settings, authn.Settings, authn.System, error) {
	var system authn.System
	set := r.cfg.Plan.Settings.Pool
	settings, err := set.Security.Settings(r.endpoint.Sources(ctx))
	if r.cfg.System != nil {
		system = r.cfg.System()
	}
	return settings, set.Methods, system, err
}

// toBeReached is how long a starter waits for the first broker before it goes
// on without.
const toBeReached = 10 * time.Second

// brokerClient makes the client that speaks with brokers: with those through which
// the starter is reached, and with those of shadows that are behind one. It has
// sessions of its own, for it negotiates, as the client for the shadow never does.
func (r *reached) brokerClient() (*security.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toBeReached) // for the names of hosts
	defer cancel()
	settings, methods, system, err := r.configured(ctx)
	if err != nil {
		return nil, err
	}
	c := r.endpoint.Client(security.NewSessions(r.conv.clock, 8))
	c.Configure(settings, &authn.Client{Settings: methods, System: system})
	return c, nil
}

// behindBroker reports whether the daemon is behind a broker.
func (r *reached) behindBroker() (bool, error) {
	startd, err := cedar.ParseSinful(r.cfg.Plan.Shadow.Address)
	if err != nil || len(startd.CCB) == 0 {
		return false, nil // a bad address is told by who listens
	}
	if _, err := r.endpoint.Brokers(); err != nil {
		return false, err
	}
	return true, nil
}

// registerAt opens a connection to a broker of the startd's address to register with it.
func (r *reached) registerAt(ctx context.Context, address string) (*cedar.Conn, error) {
	to, err := cedar.ParseSinful("<" + address + ">")
	if err != nil {
		return nil, err
	}
	return r.endpoint.Register(ctx, to)
}

// await waits until the first broker has answered, or has taken too long: then
// the starter is reached directly until one does.
func (r *reached) await(ctx context.Context) {
	if r.answered == nil || !r.socket.Brokered() {
		return
	}
	limit := time.NewTimer(toBeReached)
	defer limit.Stop()
	select {
	case <-r.answered:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// moved tells that the starter is reached at another address now.
func (r *reached) moved(address string) {
	call := func() {
		r.cfg.Report(protocol.Contact{Address: address})
		select {
		case <-r.answered:
			r.cfg.Activation.Update()
		default:
			close(r.answered)
		}
	}
	go func() {
		// Once the job is over nobody has to reach it.
		_ = r.cfg.Activation.Do(context.Background(), call)
	}()
}

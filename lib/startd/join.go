// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/slot"
)

// join opens the command port and makes the pool's side behind it.
func (d *daemonState) join(ctx context.Context, around *sync.WaitGroup, owner engine.Owner, duty func() ads.DutyCycle, problems []slot.Problem) (*pool.Pool, string, error) {
	d.pool = pool.New(pool.Config{
		Owner: owner, Open: d.wire.client, Post: d.post, Sessions: d.wire.sessions, Address: d.self, Start: d.start.Unix(), Problems: problems,
		AdminCommands: func() []int { return d.wire.adminCommands }, Updated: func() { close(d.parent.updated) },
		StoreToken: func(token string) (string, error) { return d.wire.methods.Load().StoreToken(token) },
		History:    d.history, Self: d.measure, Duty: duty, Mover: d.mover(), Touched: d.kbdd.touch, Admit: d.admit, ReadFile: d.wire.readShown, Clock: d.clock, Log: d.log,
	}, d.settings)
	answers := &daemon.Answers{
		Orders: d.orders.daemon, Config: d.now, Clock: d.clock, Files: daemon.DiskFiles{}, Ready: d.parent.updated,
		Remote: d.conf.remote, Allowed: d.mayAct,
	}
	_, _ = rand.Read(answers.Instance[:]) // never fails
	tokens := &daemon.TokenRequests{
		Config: d.now, Key: func(id string) (authn.SigningKey, error) { return d.wire.methods.Load().SigningKey(id) }, Allowed: d.mayAct, Clock: d.clock,
	}
	table, err := tableOf(d.pool, answers, tokens, d.wire.endpoint.Reverser, d.asks)
	if err != nil {
		return nil, "", err
	}
	d.wire.listener.Table, d.wire.server.Commands = table, table.Security()
	d.wire.adminCommands = table.Security().Valid(security.Administrator, true)
	if err := d.wire.commandPort.Open(ctx); err != nil {
		return nil, "", err
	}
	around.Go(func() {
		if err := d.wire.commandPort.Serve(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("the command socket failed", "err", err)
		}
	})
	at, err := d.whereWeAre(ctx)
	if err != nil {
		return nil, "", err
	}
	d.log.Info("DaemonCore: command socket at " + at.String())
	return d.pool, at.String(), nil
}

// tableOf is every command that the daemon answers. docs/security.md lists them, and who
// may begin which of them, how and with which proof, stands in
// testdata/commands.tsv.
func tableOf(p *pool.Pool, a *daemon.Answers, t *daemon.TokenRequests, r *listen.Reverser, k *askServer) (*listen.Table, error) {
	return listen.NewTable(slices.Concat(p.Commands(), a.Commands(), t.Commands(), k.Commands(), []listen.Command{r.Command()})...)
}

// post begins to send commands over UDP.
func (d *daemonState) post(ctx context.Context, to cedar.Sinful, command int) (collector.Poster, error) {
	p, err := d.wire.client.Datagrams(ctx, to, command)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// admit says why no user of this machine can have the job of a shadow.
func (d *daemonState) admit(ctx context.Context, id slot.ID, job *classad.Ad, nc net.Conn) error {
	return run.Admit(ctx, d.starters(id), d.account, id, job, nc)
}

// whereWeAre waits until others can be told our address. Claim ids hold it, so
// the first one should already name the brokers by which we are reached; if
// they do not answer, those on our own network are served all the same.
func (d *daemonState) whereWeAre(ctx context.Context) (cedar.Sinful, error) {
	limit := time.NewTimer(addressPatience)
	defer limit.Stop()
	brokers := time.NewTimer(brokerPatience)
	defer brokers.Stop()
	late := len(d.wire.commandPort.Network.Brokers) == 0
	what := "a broker of CCB_ADDRESS to let us in"
	if d.wire.commandPort.Network.SharedPort {
		what = "condor_shared_port to say where we are reached, in " + d.wire.commandPort.Network.PortAd
	}
	defer observe.Waiting(func() { d.say("waiting for " + what) })()
	for {
		at, ok := d.wire.commandPort.Public()
		if ok && (late || len(at.CCB) > 0 || d.wire.commandPort.Network.SharedPort) {
			return at, nil
		}
		select {
		case <-d.wire.moved:
		case <-brokers.C:
			late = true
			if ok {
				d.log.Warn("no broker has answered; only our own network can reach us until one does", "address", at.String())
			}
		case <-limit.C:
			return cedar.Sinful{}, errs.E("startd.Run", errs.Expired, d.wire.commandPort.Network.PortAd, fmt.Errorf("the shared port of condor_master does not say there within %v where we are reached; USE_SHARED_PORT = False takes a port of our own", addressPatience))
		case <-ctx.Done():
			return cedar.Sinful{}, ctx.Err()
		}
	}
}

// resting is how long the daemon has its slots before it gives the garbage of its
// start back: its first ads are sent by then.
const resting = 5 * time.Second

// settled begins what needs the slots to be there.
func (d *daemonState) settled(ctx context.Context, around *sync.WaitGroup) {
	d.begin.end()
	around.Go(func() { d.pool.Run(ctx) })
	_ = d.parent.notify.Ready()
	around.Go(func() {
		if err := d.parent.notify.Watch(ctx, d.healthy); err != nil && ctx.Err() == nil {
			d.log.Warn("the watchdog of the service manager is not told", "err", err)
		}
	})
	around.Go(func() {
		timer := time.NewTimer(resting)
		defer timer.Stop()
		select {
		case <-timer.C:
			// Detection and the reading of the configuration need several times what an
			// idle daemon does, and the runtime would keep it for minutes.
			debug.FreeOSMemory()
		case <-ctx.Done():
		}
	})
	parent, err := cedar.ParseSinful(d.parent.inherit.ParentAddress)
	if d.parent.inherit.ParentAddress == "" || err != nil {
		return
	}
	p := &daemon.Parent{
		Address: parent, PID: d.o.PID, Log: d.log, Healthy: d.healthy, Silence: d.silence,
		Send: func(ctx context.Context, to cedar.Sinful, command int) (*cedar.Conn, error) {
			conn, _, err := d.wire.client.Command(ctx, to, command, security.Options{})
			return conn, err
		},
	}
	around.Go(func() { p.KeepAlive(ctx) })
	around.Go(func() {
		select {
		case <-d.parent.updated:
			p.Ready(ctx)
		case <-ctx.Done():
		}
	})
}

// measure says what the daemon itself uses.
func (d *daemonState) measure() (ads.Self, error) {
	u, err := d.o.Platform.Usage()
	open, _ := d.wire.listener.Connections()
	return ads.Self{Usage: u, Sockets: open, Sessions: d.wire.sessions.Len()}, err
}

// healthy goes through the engine's goroutine, which would not answer if it
// hung.
func (d *daemonState) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return d.pool.Healthy(ctx) == nil
}

// silence is how long condor_master waits for a word from us.
func (d *daemonState) silence() time.Duration {
	s := d.now()
	for _, knob := range [...]string{"STARTD_NOT_RESPONDING_TIMEOUT", "NOT_RESPONDING_TIMEOUT"} {
		if set, ok := s.Lookup(knob); !ok || set.Value == "" {
			continue
		}
		if t, err := s.Duration(knob); err == nil && t > 0 {
			return t
		}
	}
	return time.Hour
}

// history passes on the jobs that ran here, as condor_history asks for them.
func (d *daemonState) history(ctx context.Context, q collector.OldJobs, found func(*classad.Ad) bool) (malformed int64, err error) {
	o, err := history.OptionsFrom(d.now())
	if err != nil {
		return 0, err
	}
	if o.Path == "" {
		return 0, nil
	}
	files, err := history.Files(o.Path)
	if errs.Is(err, errs.NotFound) {
		return 0, nil // no job has ended yet
	}
	if err != nil {
		return 0, err
	}
	search := history.Query{Constraint: q.Constraint, Limit: q.Limit, Scan: q.Scan, Since: q.Since, Env: classad.Env{Now: time.Now(), Location: time.Local, Budget: q.Budget}}
	err = search.Search(ctx, files, func(r history.Record) bool { return found(r.Ad) }, func(string, int64, error) { malformed++ })
	return malformed, err
}

// control carries out what the daemon is ordered.
type control struct{ d *daemonState }

// Reconfigure implements daemon.Control.
func (c control) Reconfigure(bool) {
	select {
	case c.d.orders.reload <- struct{}{}:
	default: // it is going to be read anyway
	}
}

// Shutdown implements daemon.Control.
func (c control) Shutdown(m daemon.Mode) {
	if c.d.begin.breakOff() {
		return
	}
	manner := ep.Graceful
	switch m {
	case daemon.Peaceful:
		manner = ep.Peaceful
	case daemon.Fast:
		manner = ep.Fast
	}
	select {
	case c.d.orders.end <- manner:
	default: // it was told so often that one more says nothing
	}
}

// signals turns those of the system into orders.
func (d *daemonState) signals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-d.o.Signals:
			if log := d.logger(); log != nil {
				log.Info("signal", "which", s.String())
			}
			switch s {
			case Terminate:
				d.orders.daemon.Terminate()
			case Quit:
				d.orders.daemon.Quit()
			case Hangup:
				d.orders.daemon.Hangup()
			}
		}
	}
}

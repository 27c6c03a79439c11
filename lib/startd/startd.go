// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/slot"
)

const subsystem = "STARTD"

// farewell is how long collectors and schedds have to hear that we go.
const farewell = 5 * time.Second

// addressPatience is how long a shared port may take to say where we are
// reached before slots are made, and brokerPatience how long a broker may.
const (
	addressPatience = 60 * time.Second
	brokerPatience  = 20 * time.Second
)

// daemonState is the daemon while it runs.
type daemonState struct {
	o       Options
	clock   clock.Clock
	start   time.Time
	version string // our $CondorVersion
	begin   beginning

	mu   sync.Mutex // of logs and of conf.current
	logs *logs
	log  *slog.Logger

	found  found
	conf   configuration
	parent parent
	wire   wire
	orders orders

	pool     *pool.Pool
	settings pool.Settings
	account  func(name string) (*host.Identity, error) // finds users; nil where we cannot act for others
	// starters is how the starter in a slot reads the configuration in force; given
	// before anybody can ask for a job.
	starters func(slot.ID) *config.Snapshot
	asks     *askServer
	kbdd     *keyboardSampler
}

// found is the machine, and what could not be found out of it.
type found struct {
	inventory *machine.Inventory
	unknown   []error
}

// configuration is what was read, and what of it is in force.
type configuration struct {
	atStart  *config.Snapshot
	current  *config.Snapshot
	remote   *daemon.RemoteConfig // what was set over the wire
	prepared *prepared            // what was read again and is not decided yet; of the reload alone
}

// parent is what a condor_master or a service manager hands down, and what they hear
// from us.
type parent struct {
	inherit daemon.Inherit
	notify  *daemon.Notifier
	updated chan struct{} // closed when a collector has been sent all ads: the daemon is ready
}

// wire is the daemon on the network: both sides of security, and where it is reached.
type wire struct {
	endpoint    *endpoint.Endpoint
	sessions    *security.Sessions
	client      *security.Client
	methods     atomic.Pointer[authn.Client] // how we authenticate now
	server      *security.Server
	listener    *listen.Server
	commandPort *daemon.CommandPort
	moved       chan struct{} // the address is another one
	// adminCommands are those at the level ADMINISTRATOR.
	adminCommands []int
	// readShown reads what other daemons of this machine have written.
	readShown func(path string) ([]byte, error)
}

// orders are what the daemon is told to do.
type orders struct {
	end    chan ep.Manner
	reload chan struct{}
	// daemon takes them from tools and from the system, which share whether the next
	// end is to be peaceful.
	daemon *daemon.Orders
}

// Run is the life of the daemon; the process exits with what it returns. An
// error is one that kept it from beginning, and is told where it stays.
func Run(ctx context.Context, o Options) (status int, err error) {
	d := &daemonState{
		o: o, clock: clock.System(), start: time.Now(), asks: newAskServer(),
		orders: orders{end: make(chan ep.Manner, 8), reload: make(chan struct{}, 1)},
		parent: parent{updated: make(chan struct{})},
		wire:   wire{moved: make(chan struct{}, 1)},
	}
	d.orders.daemon = &daemon.Orders{Control: control{d}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.begin.cancel = cancel
	go d.signals(ctx)
	if status, err = d.endsEarly(ctx, d.live); err != nil && o.Out == nil {
		TellFatal(err, status, d.conf.atStart, o.Platform, o.PID)
	}
	return status, err
}

// live begins the daemon and waits for its end.
func (d *daemonState) live(ctx context.Context) (status int, err error) {
	err = d.read(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return d.broken(err)
	}
	at := site{execute: d.conf.atStart.String("EXECUTE")}
	if at.host, err = d.o.Platform.Host(at.execute, d.conf.atStart); err != nil {
		return daemon.ExitException, err
	}
	d.clock, d.account = at.host.Clock, at.host.Account
	d.kbdd = &keyboardSampler{Sampler: at.host.Sampler, clock: at.host.Clock}
	at.host.Sampler = d.kbdd
	if status, err = d.openLog(); err != nil {
		return status, err
	}
	defer func() { err = errors.Join(err, d.logs.close()) }()
	defer func() {
		if err != nil {
			status, err = d.broken(err)
		}
	}()
	banner := observe.Banner{Program: program, Version: d.version, PID: d.o.PID, UID: os.Getuid(), Touched: d.logs.touched()}
	banner.Begin(d.log, "config", d.root())
	if at.elsewhere, err = machine.SlotExecutes(d.conf.atStart); err != nil {
		return daemon.ExitException, err
	}
	// Before anything is touched that may be another startd's.
	if at.occupied, at.elsewhere, err = d.occupy(ctx, at.host.Census.Self(), at.execute, at.elsewhere, at.host.Errno); err != nil {
		return daemon.ExitException, err
	}
	defer func() {
		if rerr := at.occupied.Release(); rerr != nil {
			d.log.Warn("a lock's file stays", "err", rerr)
		}
	}()
	if err = d.prepareSite(ctx, &at); err != nil {
		return daemon.ExitException, err
	}
	if status, err = d.serve(ctx, &at); err == nil {
		banner.End(d.log, status)
	}
	return status, err
}

// site is where the daemon lives on this machine.
type site struct {
	host      run.Host
	execute   string
	elsewhere []machine.SlotExecute // of slots with a directory of their own
	occupied  *run.Occupied

	starterPath string
	starterArgs []string
}

// openLog opens the daemon's log. Without it the daemon does not begin.
func (d *daemonState) openLog() (status int, err error) {
	if _, err := observe.LogSettingsFrom(d.conf.atStart, subsystem); err != nil {
		return daemon.ExitException, err
	}
	logs, err := openLogs(d.conf.atStart, d.o)
	if err != nil {
		return daemon.ExitNoLog, err
	}
	d.mu.Lock()
	d.logs = logs
	d.mu.Unlock()
	d.log = logs.log
	return daemon.ExitOK, nil
}

// prepareSite clears away what an earlier life left, finds the program of starters and
// what the parent hands down, and makes both sides of security.
func (d *daemonState) prepareSite(ctx context.Context, at *site) error {
	_ = d.during("what an earlier life left to be cleared away", func() error {
		for _, dir := range append([]string{at.execute}, paths(at.elsewhere)...) {
			if err := d.o.Platform.Sweep(dir); err != nil {
				d.log.Warn("leftovers of an earlier life", "dir", dir, "err", err)
			}
		}
		return nil
	})
	space, err := d.openVolumes(ctx, at)
	if err != nil {
		return err
	}
	if err := d.detect(ctx, space); err != nil {
		return err
	}
	if at.starterPath, at.starterArgs, err = d.starterProgram(ctx, d.conf.atStart, at.host.Spawner); err != nil {
		return err
	}
	if d.parent.inherit, err = daemon.ParseInherit(d.env(daemon.InheritVariable), d.env(daemon.PrivateInheritVariable)); err != nil {
		return err
	}
	if d.parent.notify, err = daemon.NewNotifier(d.env, d.o.PID); err != nil {
		d.log.Warn("service manager", "err", err)
	}
	return d.secure(ctx)
}

// openVolumes opens the volumes of jobs, and returns the scanner of the disk that jobs
// have: theirs, or the file system of EXECUTE.
func (d *daemonState) openVolumes(ctx context.Context, at *site) (space machine.Scanner, err error) {
	var said []string
	err = d.during("the logical volumes of jobs (STARTD_ENFORCE_DISK_LIMITS)", func() (err error) {
		at.host.Volumes, space, said, err = d.o.Platform.Volumes(ctx, at.execute, d.conf.atStart)
		return err
	})
	for _, line := range said {
		d.log.Warn(line)
	}
	if space == nil {
		space = d.o.Platform.Volume(at.execute, d.conf.atStart)
	}
	return space, err
}

// serve runs the Execution Point as a member of its pool until it is told to end.
func (d *daemonState) serve(ctx context.Context, at *site) (status int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var around sync.WaitGroup
	defer around.Wait()
	defer cancel()
	opts := d.runOptions(ctx, at, &around)
	for _, e := range d.found.unknown {
		d.log.Warn("machine", "err", e)
	}
	for _, w := range d.conf.atStart.Warnings() {
		d.log.Warn("configuration", "err", w.Error())
	}
	around.Go(func() { at.occupied.Keep(ctx) })
	if opts.Control = d.openControl(at.host.Census.Self()); opts.Control != nil {
		defer opts.Control.Close() // should it never come to be served
	}
	res, err := run.Run(ctx, opts)
	if err != nil {
		return daemon.ExitException, err
	}
	_ = d.parent.notify.Stopping()
	limit, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	if err := d.pool.Withdraw(limit); err != nil {
		d.log.Warn("not every collector was told that we go", "err", err)
	}
	cancel()
	d.wire.listener.Wait(limit)
	if res.Ended && !res.Restart {
		return daemon.ExitNoRestart, nil
	}
	return daemon.ExitOK, nil
}

// runOptions are those of the run behind the daemon, which has around for what runs
// beside it until ctx ends.
func (d *daemonState) runOptions(ctx context.Context, at *site, around *sync.WaitGroup) run.Options {
	o := d.o
	return run.Options{
		Config: d.conf.atStart, Inventory: d.found.inventory, Host: at.host, Version: o.Version, Log: d.log,
		Places:        run.Places{Execute: at.execute, SlotExecutes: at.elsewhere, Dir: d.conf.atStart.String("LOG"), Programs: o.Programs},
		ControlSocket: run.ControlSocket{Allow: d.mayAsk},
		Starters: run.Starters{
			Self: o.StarterPath, StarterPath: at.starterPath, StarterArgs: at.starterArgs, StarterEnv: daemon.Scrub(o.Env), StarterLog: d.logs.starter, Launcher: o.Launcher,
			Starter: func(s *config.Snapshot) (path string, args []string, err error) {
				return d.starterProgram(ctx, s, at.host.Spawner)
			},
		},
		OwnJobs: run.OwnJobs{User: d.o.System.User + "@" + d.conf.atStart.String("UID_DOMAIN")},
		Reloading: run.Reloading{
			Reload: d.orders.reload, Load: d.load, Probe: o.Platform.Programs, Reconfigured: d.reconfigured,
		},
		Listeners: run.Listeners{
			Problem: func(error) {}, // they are logged
			Settled: func() { d.settled(ctx, around) },
		},
		Serve: &run.Serve{
			Start: d.start.Unix(), Version: d.version, Cookie: d.env(daemon.CookieVariable), Family: d.family, Orders: d.orders.end,
			NewSecret: claims.NewSecret(config.Version, func() bool { return d.pool.MatchSessions() }), // the pool is joined before the first id
			Join: func(owner engine.Owner, duty func() ads.DutyCycle, problems []slot.Problem) (*pool.Pool, string, error) {
				return d.join(ctx, around, owner, duty, problems)
			},
			Starters: func(of func(slot.ID) *config.Snapshot) { d.starters = of },
			Asked:    func(ask func(observe.Request) observe.Response) { d.asks.ask.Store(&ask) },
		},
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/directory"
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
	desk     *desk
	kbdd     *watched
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
		o: o, clock: clock.System(), start: time.Now(), desk: newDesk(),
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
	o := d.o
	err = d.read(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return d.broken(err)
	}
	execute := d.conf.atStart.String("EXECUTE")
	h, err := o.Platform.Host(execute, d.conf.atStart)
	if err != nil {
		return daemon.ExitException, err
	}
	d.clock, d.account = h.Clock, h.Account
	d.kbdd = &watched{Sampler: h.Sampler, clock: h.Clock}
	h.Sampler = d.kbdd
	if _, err := observe.LogSettingsFrom(d.conf.atStart, subsystem); err != nil {
		return daemon.ExitException, err
	}
	logs, err := openLogs(d.conf.atStart, o)
	if err != nil {
		return daemon.ExitNoLog, err
	}
	defer func() { err = errors.Join(err, d.logs.close()) }()
	d.mu.Lock()
	d.logs = logs
	d.mu.Unlock()
	defer func() {
		if err != nil {
			status, err = d.broken(err)
		}
	}()
	d.log = d.logs.log
	banner := observe.Banner{Program: program, Version: d.version, PID: o.PID, UID: os.Getuid(), Touched: d.logs.touched()}
	banner.Begin(d.log, "config", d.root())
	elsewhere, err := machine.SlotExecutes(d.conf.atStart)
	if err != nil {
		return daemon.ExitException, err
	}
	// Before anything is touched that may be another startd's.
	occupied, elsewhere, err := d.occupy(ctx, h.Census.Self(), execute, elsewhere, h.Errno)
	if err != nil {
		return daemon.ExitException, err
	}
	defer func() {
		if rerr := occupied.Release(); rerr != nil {
			d.log.Warn("a lock's file stays", "err", rerr)
		}
	}()
	_ = d.during("what an earlier life left to be cleared away", func() error {
		for _, dir := range append([]string{execute}, paths(elsewhere)...) {
			if err := o.Platform.Sweep(dir); err != nil {
				d.log.Warn("leftovers of an earlier life", "dir", dir, "err", err)
			}
		}
		return nil
	})
	if err := d.detect(ctx, execute); err != nil {
		return daemon.ExitException, err
	}
	starterOf := func(s *config.Snapshot) (path string, args []string, err error) {
		return d.starterProgram(ctx, s, h.Spawner)
	}
	starterPath, starterArgs, err := starterOf(d.conf.atStart)
	if err != nil {
		return daemon.ExitException, err
	}
	if d.parent.inherit, err = daemon.ParseInherit(d.env(daemon.InheritVariable), d.env(daemon.PrivateInheritVariable)); err != nil {
		return daemon.ExitException, err
	}
	if d.parent.notify, err = daemon.NewNotifier(d.env, o.PID); err != nil {
		d.log.Warn("service manager", "err", err)
	}
	if err := d.secure(); err != nil {
		return daemon.ExitException, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var around sync.WaitGroup
	defer around.Wait()
	defer cancel()

	opts := run.Options{
		Config: d.conf.atStart, Inventory: d.found.inventory, Host: h, Execute: execute, SlotExecutes: elsewhere, Version: o.Version,
		Self: o.StarterPath, StarterPath: starterPath, StarterArgs: starterArgs, Starter: starterOf, StarterEnv: daemon.Scrub(o.Env), StarterLog: d.logs.starter, Launcher: o.Launcher,
		Programs: o.Programs, Log: d.log, Reload: d.orders.reload, Load: func() (*config.Snapshot, error) { return d.load(ctx) }, Probe: o.Platform.Programs, Reconfigured: d.reconfigured,
		Problem: func(error) {}, // they are logged
		Allow:   d.mayAsk, Dir: d.conf.atStart.String("LOG"), User: d.o.System.User + "@" + d.conf.atStart.String("UID_DOMAIN"),
		Settled: func() { d.settled(ctx, &around) },
		Serve: &run.Serve{
			Start: d.start.Unix(), Version: d.version, Cookie: d.env(daemon.CookieVariable), Family: d.family, NewSecret: claims.NewSecret(config.Version, d.settings.Claims.MatchSessions), Orders: d.orders.end,
			Join: func(owner engine.Owner, duty func() ads.DutyCycle, problems []slot.Problem) (*pool.Pool, string, error) {
				return d.join(ctx, &around, owner, duty, problems)
			},
			Starters: func(of func(slot.ID) *config.Snapshot) { d.starters = of },
			Asked:    func(ask func(observe.Request) observe.Response) { d.desk.ask.Store(&ask) },
		},
	}
	for _, e := range d.found.unknown {
		d.log.Warn("machine", "err", e)
	}
	for _, w := range d.conf.atStart.Warnings() {
		d.log.Warn("configuration", "err", w.Error())
	}
	around.Go(func() { occupied.Keep(ctx) })
	if opts.Control = d.openControl(h.Census.Self()); opts.Control != nil {
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
	status = daemon.ExitOK
	if res.Ended && !res.Restart {
		status = daemon.ExitNoRestart
	}
	banner.End(d.log, status)
	return status, nil
}

// paths are the directories that can be used.
func paths(all []machine.SlotExecute) []string {
	var out []string
	for _, x := range all {
		if x.Unusable == "" {
			out = append(out, x.Path)
		}
	}
	return out
}

// read finds the machine and the configuration.
func (d *daemonState) read(ctx context.Context) error {
	var inv *machine.Inventory
	_ = d.during("what can be found out of the machine, such as its name", func() error {
		inv, d.found.unknown = machine.Scan(ctx, time.Now(), d.o.Platform.Scanners()...)
		return nil
	})
	// What could be read says where the log is, if the rest is wrong.
	load := func(later []config.Text) (snap *config.Snapshot, err error) {
		err = d.during("the configuration: a command or a file of it", func() error {
			if snap, err = d.o.Load(ctx, inv, later); snap != nil {
				d.conf.atStart = snap
			}
			return err
		})
		return snap, err
	}
	snap, err := load(nil)
	if err != nil {
		return err
	}
	if d.conf.remote, err = daemon.NewRemoteConfig(snap, subsystem, d.ours); err != nil {
		return err
	}
	later, err := d.conf.remote.Texts()
	if err != nil {
		return err
	}
	if snap, err = load(later); err != nil {
		return err
	}
	if _, err := inv.Prefer(snap); err != nil {
		return err
	}
	if snap, err = load(later); err != nil {
		return err
	}
	if err := d.checkPlaces(snap); err != nil {
		return err
	}
	d.found.inventory, d.conf.current = inv, snap
	if d.settings, err = pool.SettingsFrom(snap); err != nil {
		return err
	}
	d.version = fmt.Sprintf("$CondorVersion: %s %s execpoint-%s $", config.Version, d.start.UTC().Format(time.DateOnly), d.o.Version)
	return nil
}

// checkPlaces refuses directories that cannot be meant.
func (d *daemonState) checkPlaces(s *config.Snapshot) error {
	const account = "condor" // whose home LOCAL_DIR is by default
	return run.CheckPlaces(s, d.o.System.Condor == account || d.o.System.User == account)
}

// detect finds out of the machine what the configuration names: its EXECUTE,
// which is there by now. Its programs are asked by the run, beside the rest.
func (d *daemonState) detect(ctx context.Context, execute string) error {
	return d.during("the file system of EXECUTE: "+execute, func() error {
		for _, e := range d.found.inventory.Apply(ctx, time.Now(), d.o.Platform.Volume(execute, d.conf.atStart), machine.ConfigScanner(d.conf.atStart)) {
			if errs.Is(e, errs.Invalid) {
				return e
			}
			d.found.unknown = append(d.found.unknown, e)
		}
		return nil
	})
}

func (d *daemonState) env(name string) string {
	for _, kv := range d.o.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// root is the file that the configuration begins with.
func (d *daemonState) root() string {
	if all := d.conf.atStart.Sources(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// now is the configuration in force.
func (d *daemonState) now() *config.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conf.current
}

// secure makes both sides of security and what they share.
func (d *daemonState) secure() error {
	d.wire.sessions = security.NewSessions(d.clock, 0)
	network, err := endpoint.NetworkFrom(d.conf.atStart, subsystem)
	if err != nil {
		return err
	}
	source, err := network.Outgoing()
	if err != nil {
		return err
	}
	d.wire.endpoint = endpoint.New(endpoint.Config{
		Subsystem: subsystem, Version: d.version, PID: d.o.PID, Network: network, Source: source, Reuse: d.o.Platform.Reuse(),
		Name: d.name, Address: d.address, Public: d.self, Brokers: func() (*security.Client, error) { return d.wire.client, nil },
		Clock: d.clock, Log: d.log,
	})
	ids := cmp.Or(d.env("CONDOR_IDS"), d.conf.atStart.String("CONDOR_IDS"))
	kin, err := d.o.Platform.Kin(ids)
	if err != nil {
		return err
	}
	if d.wire.readShown, err = d.o.Platform.ReadShown(ids); err != nil {
		return err
	}
	d.wire.client = d.wire.endpoint.Client(d.wire.sessions)
	d.wire.client.Post, d.wire.client.ParentID = d.wire.endpoint.Dialer.Post, d.env(daemon.ParentVariable)
	d.wire.client.Local, d.wire.client.Kin = endpoint.Local, kin // for the session of the family
	d.wire.server = d.wire.endpoint.Server(d.found.inventory.Hostname, d.wire.sessions)
	d.wire.listener = &listen.Server{Security: d.wire.server, Datagrams: d.wire.server, Log: d.log}
	var tag [2]byte
	_, _ = rand.Read(tag[:]) // never fails
	file := daemon.AddressFile{
		Path: d.conf.atStart.String("STARTD_ADDRESS_FILE"), Version: d.version,
		Platform: fmt.Sprintf("$CondorPlatform: %s-%s $", d.found.inventory.Arch, d.found.inventory.OpSysAndVer),
	}
	super := file
	super.Path = d.conf.atStart.String("STARTD_SUPER_ADDRESS_FILE")
	d.wire.commandPort = &daemon.CommandPort{
		Network: network, Inherit: d.parent.inherit, Subsystem: subsystem, PID: d.o.PID, Tag: binary.BigEndian.Uint16(tag[:]), Port: d.o.Port,
		Server: d.wire.listener, Broker: d.broker, Dial: d.wire.endpoint.Dialer.Dial,
		Machine: daemon.Machine{
			Named: d.o.Platform.Named(d.env(daemon.CookieVariable), network.SocketDir), Interfaces: endpoint.Interfaces, Resolve: endpoint.Resolve, ReadFile: os.ReadFile,
		},
		File: file, Super: super,
		Changed: d.addressChanged, Log: d.log,
	}
	if k := d.parent.inherit.Family; k != nil {
		if _, err := d.wire.sessions.AddFamily(*k); err != nil {
			return err
		}
	}
	if k := d.parent.inherit.Parent; k != nil {
		if _, err := d.wire.sessions.AddParent(*k, d.parent.inherit.ParentAddress); err != nil {
			return err
		}
	}
	set, err := d.securityFrom(context.Background(), d.conf.atStart)
	if err != nil {
		return err
	}
	d.secureBy(set)
	return nil
}

// family is the session that condor_master handed down to its daemons, for
// starters. They answer those daemons as we do: a schedd that wants to let the
// owner of a job in comes with this session, and takes a refusal for the end of
// it. "" where there is none, or SEC_USE_FAMILY_SESSION is false.
func (d *daemonState) family() claim.Secret {
	if s := d.wire.client.Settings(); d.parent.inherit.Family == nil || s == nil || !s.FamilySession {
		return ""
	}
	return claim.Secret(d.parent.inherit.Family.Reveal())
}

// broker opens a connection to an entry of CCB_ADDRESS, to register with it.
func (d *daemonState) broker(ctx context.Context, address string) (*cedar.Conn, error) {
	port, err := d.now().Int("COLLECTOR_PORT")
	if err != nil {
		return nil, err
	}
	to, err := directory.ParseCollector(address, int(port))
	if err == nil {
		to, err = d.pool.FindCollector(to)
	}
	if err != nil {
		return nil, err
	}
	return d.wire.endpoint.Register(ctx, to)
}

func (d *daemonState) self() cedar.Sinful {
	at, _ := d.wire.commandPort.Public()
	return at
}

// address is where a daemon on this machine reaches us.
func (d *daemonState) address() string { return d.wire.commandPort.Local().String() }

func (d *daemonState) name() string { return d.wire.commandPort.Name() }

func (d *daemonState) addressChanged(cedar.Sinful) {
	select {
	case d.wire.moved <- struct{}{}:
	default: // whoever waits will look anyway
	}
}

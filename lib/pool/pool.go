// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Turn is what a function may use while it runs in the goroutine that owns the
// engine. Nothing of it may be kept.
type Turn struct {
	Now    clock.Instant
	Engine *ep.Engine
	// Step tells the engine what happened and has all performed that follows.
	Step func(ep.Event)
	// Told is shown the ad of each slot that collectors are told, without secrets;
	// nil for nobody.
	Told func(id slot.ID, ad *classad.Ad)
}

// Owner reaches the goroutine that owns the engine.
type Owner interface {
	// Do has f run there and waits until it has run. f must not block. The
	// error says that f will never run: the owner is gone, or ctx ended before
	// its turn came.
	Do(ctx context.Context, f func(Turn)) error
}

// Opener opens a command at a daemon; *security.Client is one.
type Opener interface {
	Command(ctx context.Context, to cedar.Sinful, command int, o security.Options) (*cedar.Conn, *security.Session, error)
}

// Poster sends commands to one daemon over UDP; *security.Datagrams is one.
type Poster interface {
	// Send sends a command. That it does not fail does not say that anybody got
	// it.
	Send(ctx context.Context, command int, payload func(*cedar.Conn)) error
	// Hidden reports whether commands are encrypted.
	Hidden() bool
	// PeerVersion returns the daemon's $CondorVersion string, "" if unknown.
	PeerVersion() string
	Close() error
}

// Config is what a Pool is made of. Owner, Open, Sessions and Address must be
// set.
type Config struct {
	Owner    Owner
	Open     Opener
	Sessions *security.Sessions
	// Post begins to send a daemon commands over UDP, with this one first. An
	// error of kind Unsupported sends them over TCP. Nil always does.
	Post func(ctx context.Context, to cedar.Sinful, command int) (Poster, error)
	// Address is where we are reached. It may change, as behind a broker.
	Address func() cedar.Sinful
	// Start is when the daemon began, in Unix seconds, and Problems what could
	// not be made of the machine then.
	Start    int64
	Problems []slot.Problem
	// AdminCommands are the commands that whoever may administrate us may use,
	// for those who get that right from the collector. It is asked once, when
	// the first ad is made. Nil gives nobody that right.
	AdminCommands func() []int

	// Touched is told that somebody is at the keyboard, by this machine's
	// condor_kbdd. It must not block. Nil ignores it.
	Touched func()
	// History passes the jobs that ran here to found, the newest first, until
	// that returns false, and says how many records cannot be read. Nil lets
	// nobody read them.
	History func(ctx context.Context, q OldJobs, found func(*classad.Ad) bool) (malformed int64, err error)

	// Mover carries out moves to another access point; nil refuses them.
	Mover *Mover

	// Admit says why the job of the shadow at nc cannot be given to a starter of
	// that slot, nil if it can. It may take its time. Nil admits all.
	Admit func(ctx context.Context, id slot.ID, job *classad.Ad, nc net.Conn) error

	// Self measures the daemon for its own ad; nil leaves that out.
	Self func() (Self, error)

	// Duty says how busy the goroutine that owns the engine is, for all ads; nil
	// leaves that out. It may be called from any goroutine.
	Duty func() DutyCycle

	// Updated is told once that a collector has been sent all ads.
	Updated func()

	// StoreToken keeps a token that a collector has given us, where the next
	// authentication finds it, and says in which file. Nil asks for none.
	StoreToken func(token string) (path string, err error)

	Clock clock.Clock    // nil: clock.System
	Rand  func() float64 // from [0, 1), for the spread of attempts; nil: math/rand
	Log   *slog.Logger   // nil: none
	// ReadFile reads the address files of daemons of this machine, and no file
	// that anybody else has written: what stands in them is believed. Nil reads
	// any file, for tests.
	ReadFile func(path string) ([]byte, error)
}

// Pool is what an Execution Point has to do with its pool. All methods but
// Perform may be called from any goroutine.
type Pool struct {
	cfg       Config
	log       *slog.Logger
	settings  atomic.Pointer[Settings]
	reread    atomic.Int64 // when the configuration was last read, Unix seconds
	updated   sync.Once
	admin     security.Administration
	adminOnce sync.Once
	refs      refs
	self      monitor
	news      news
	held      offers
	lives     lives
	handing   handing
	looks     looks
	extras    *classad.Ad   // of condor_update_machine_ad; the owner's goroutine's
	queries   chan struct{} // one for each query under way
	moves     moves
	attaching chan struct{} // the access point to attach to may be another
}

// New makes a Pool. Nothing is sent before Run, and before the engine says
// that updates are due (ep.UpdateDue without a slot).
func New(cfg Config, s Settings) *Pool {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ReadFile == nil {
		cfg.ReadFile = os.ReadFile
	}
	p := &Pool{cfg: cfg, log: cfg.Log, queries: make(chan struct{}, maxQueries)}
	p.admin.Sessions, p.admin.Clock, p.admin.Start = cfg.Sessions, cfg.Clock, cfg.Start
	p.admin.Address = func() string { return cfg.Address().String() }
	p.reread.Store(cfg.Start)
	p.settings.Store(&s)
	p.refs.waiting = make(map[ep.Ref]chan ep.Reply)
	p.held.byslot = make(map[slot.ID]string)
	p.attaching = make(chan struct{}, 1)
	p.news.init()
	p.lives.init()
	p.handing.init()
	p.looks.init()
	p.moves.init()
	p.news.senders = p.sendersFor(&s, nil)
	return p
}

// Perform sees every effect of the engine, in order and in the goroutine that
// owns it, right after the Step that gave it. It never blocks. It reports
// whether the effect was meant for the pool alone: the Reply to a request that
// came from there.
func (p *Pool) Perform(now clock.Instant, eff ep.Effect) bool {
	p.sessionsOf(eff)
	switch e := eff.(type) {
	case ep.UpdateDue:
		p.news.due(e.Slot)
	case ep.AdChanged:
		p.news.changed(e.Slot)
		p.looks.changed(e.Slot)
	case ep.ClaimIDChanged:
		p.news.changed(e.Slot)
	case ep.AdWithdrawn:
		p.news.withdrawn(e.Slot)
		p.looks.changed(e.Slot)
	case ep.Transitioned:
		signal(p.moves.emptied)
		if e.Decision.Cause == policy.ByLease {
			p.lives.lapse(e.Slot)
		}
	case ep.ClaimEnded:
		signal(p.moves.emptied)
		p.claimEnded(e)
	case ep.Reply:
		p.lives.replied(now, e)
		if e.Activation != "" && p.refs.waited(e.Ref) {
			p.handing.begin(e.Activation)
		}
		return p.refs.deliver(e)
	}
	return false
}

// Reconfigure puts new settings in force: collectors that are named no more
// are told that our ads are gone.
func (p *Pool) Reconfigure(s Settings) {
	p.reread.Store(p.cfg.Clock.Now().Wall.Unix())
	p.settings.Store(&s)
	p.news.reconfigure(p, &s)
	signal(p.attaching)
}

// Commands are the startd's commands.
func (p *Pool) Commands() []listen.Command {
	return slices.Concat(p.queryCommands(), p.claimCommands(), p.adminCommands(), p.smallCommands())
}

// ask passes a request to the engine and waits for its reply. make is given
// the Ref that the request must have. When ctx ends first, the request may
// still be granted: withdraw, if not nil, makes the event that takes it back.
func (p *Pool) ask(ctx context.Context, request func(ref ep.Ref) ep.Event, withdraw func(ref ep.Ref) ep.Event) (ep.Reply, error) {
	ref, reply := p.refs.new()
	defer p.refs.drop(ref)
	if err := p.cfg.Owner.Do(ctx, func(t Turn) { t.Step(request(ref)) }); err != nil {
		return ep.Reply{}, err
	}
	select {
	case r := <-reply:
		return r, nil
	case <-ctx.Done():
	}
	if withdraw != nil {
		if err := p.cfg.Owner.Do(context.WithoutCancel(ctx), func(t Turn) { t.Step(withdraw(ref)) }); err != nil {
			return ep.Reply{}, err
		}
	}
	select {
	case r := <-reply: // it was on its way
		return r, nil
	default:
		return ep.Reply{}, errs.E("pool.ask", errs.Expired, "", ctx.Err())
	}
}

// refs are the requests of peers that wait for a reply.
type refs struct {
	mu      sync.Mutex
	last    uint64
	waiting map[ep.Ref]chan ep.Reply
}

func (r *refs) new() (ep.Ref, <-chan ep.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	ref, ch := ep.Ref{By: ep.Peer, N: r.last}, make(chan ep.Reply, 1)
	r.waiting[ref] = ch
	return ref, ch
}

func (r *refs) drop(ref ep.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, ref)
}

// waited reports whether somebody waits for the reply to this request.
func (r *refs) waited(ref ep.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.waiting[ref]
	return ok
}

// deliver hands a reply to who waits for it, and reports whether the request
// was a peer's, waited for or not.
func (r *refs) deliver(reply ep.Reply) bool {
	if reply.Ref.By != ep.Peer {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch, ok := r.waiting[reply.Ref]; ok {
		ch <- reply // one reply comes to a request
		delete(r.waiting, reply.Ref)
	}
	return true
}

// Healthy reports whether the goroutine that owns the engine takes its turns.
func (p *Pool) Healthy(ctx context.Context) error {
	return p.cfg.Owner.Do(ctx, func(Turn) {})
}

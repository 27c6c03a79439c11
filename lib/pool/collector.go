// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	firstPause = time.Second      // before a collector is tried again for the first time
	goodFor    = 10 * time.Second // a connection that lasted so long was a good one
	lastWord   = 20 * time.Second // for a collector that is named no more
)

// update is one message to collectors. It is shared by their senders and not
// changed once it is queued.
type update struct {
	kind, name      string // of the ad
	command         int
	public, private *classad.Ad
}

func (u *update) key() string { return u.kind + u.name }

// sender tells one collector, in a goroutine of its own. For each ad it holds
// at most one message, the latest, so that its memory is bounded by the number
// of slots however long the collector is away.
type sender struct {
	p   *Pool
	to  Collector
	log *slog.Logger
	all bool // everything is to be queued again; guarded by news.mu

	mu       sync.Mutex
	pending  map[string]*update
	order    []string        // keys of pending, oldest first
	sent     map[string]bool // keys of ads that it may have
	retiring bool            // only withdrawals are left to be sent
	status   CollectorStatus
	wake     chan struct{}
	done     chan struct{} // closed when nothing will be sent any more
	once     sync.Once     // of started
	last     string        // the last failure that was told
	inClear  clearness     // what was told of it
	streams  bool          // datagrams were tried and cannot be

	asked        *tokenRequest // under way; run's alone, as is
	tokenTrouble string        // what was told of the last one that could not be made
}

// CollectorStatus is how things are with one collector.
type CollectorStatus struct {
	Collector string // as configured
	Address   string
	Connected bool
	Datagrams bool      // it is told over UDP, and never says whether it listens
	Version   string    // its $CondorVersion string, "" if not known yet
	Since     time.Time // when it was connected or lost, zero before
	// Updates and Withdrawals count what was sent, Skipped messages that
	// a later one took the place of, Failures broken or refused connections,
	// Refused ads that could not be written.
	Updates, Withdrawals, Skipped, Failures, Refused int64
	Pending                                          int
	LastUpdate                                       time.Time
	LastTook                                         time.Duration // for the last round of messages
	Err                                              error         // of the last failure, nil while connected
}

func newSender(p *Pool, to Collector) *sender {
	s := &sender{
		p: p, to: to, log: p.log.With("collector", to.Text), all: true,
		pending: make(map[string]*update), sent: make(map[string]bool),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.status.Collector, s.status.Address = to.Text, to.At.String()
	return s
}

// Collectors says how things are with each collector.
func (p *Pool) Collectors() []CollectorStatus {
	p.news.mu.Lock()
	senders := slices.Clone(p.news.senders)
	p.news.mu.Unlock()
	all := make([]CollectorStatus, len(senders))
	for i, s := range senders {
		s.mu.Lock()
		all[i] = s.status
		all[i].Pending = len(s.pending)
		s.mu.Unlock()
	}
	return all
}

// Run keeps collectors told until ctx ends, and returns when all that was
// begun has stopped.
func (p *Pool) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	start := func() {
		p.news.mu.Lock()
		defer p.news.mu.Unlock()
		for _, s := range p.news.senders {
			s.once.Do(func() { wg.Go(func() { s.run(ctx) }) })
		}
	}
	start()
	wg.Go(func() { p.watch(ctx) })
	wg.Go(func() { p.keepAlive(ctx) })
	wg.Go(func() { p.attach(ctx) })
	wg.Go(func() { p.carryMoves(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news.rerun:
			start()
		}
	}
}

// Withdraw tells all collectors that our ads are gone. It returns when they
// have been told, or when ctx ends; nothing is sent afterwards. Run must still
// be running.
func (p *Pool) Withdraw(ctx context.Context) error {
	n := &p.news
	n.mu.Lock()
	n.ended = true
	senders := slices.Clone(n.senders)
	for _, s := range senders {
		s.retire(n.address)
	}
	n.mu.Unlock()
	var late []string
	for _, s := range senders {
		select {
		case <-s.done:
		case <-ctx.Done():
			late = append(late, s.to.Text)
		}
	}
	if len(late) > 0 {
		return errs.E("pool.Withdraw", errs.Expired, strings.Join(late, " "), ctx.Err())
	}
	return nil
}

// offer queues a message. A later one about the same ad takes the place of an
// earlier.
func (s *sender) offer(u *update) {
	s.mu.Lock()
	if !s.retiring {
		s.put(u)
	}
	s.mu.Unlock()
	signal(s.wake)
}

// put is offer for who holds mu.
func (s *sender) put(u *update) {
	key := u.key()
	if _, ok := s.pending[key]; ok {
		s.status.Skipped++
	} else {
		s.order = append(s.order, key)
	}
	s.pending[key] = u
}

// withdraw queues that an ad is gone, if the collector may have it.
func (s *sender) withdraw(kind, name, address string) {
	s.mu.Lock()
	key := kind + name
	if s.sent[key] {
		s.put(&update{kind: kind, name: name, command: command.InvalidateStartdAds, public: withdrawal(kind, name, address)})
	} else {
		s.drop(key)
	}
	s.mu.Unlock()
	signal(s.wake)
}

func (s *sender) drop(key string) {
	if _, ok := s.pending[key]; ok {
		delete(s.pending, key)
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	}
}

// retire leaves nothing to be sent but that all ads are gone.
func (s *sender) retire(address string) {
	s.mu.Lock()
	if !s.retiring {
		s.retiring = true
		clear(s.pending)
		s.order = s.order[:0]
		keys := make([]string, 0, len(s.sent))
		for key := range s.sent {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			kind := typeSlot
			name, ok := strings.CutPrefix(key, typeSlot)
			if !ok {
				kind, name = typeDaemon, strings.TrimPrefix(key, typeDaemon)
			}
			s.put(&update{kind: kind, name: name, command: command.InvalidateStartdAds, public: withdrawal(kind, name, address)})
		}
	}
	s.mu.Unlock()
	signal(s.wake)
}

// next returns the oldest message that waits. The collector may have it from
// then on, whatever becomes of the connection.
func (s *sender) next() (u *update, retiring bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return nil, s.retiring
	}
	u = s.pending[s.order[0]]
	s.sent[u.key()] = true
	return u, s.retiring
}

// finished takes a message off the queue unless a later one took its place.
func (s *sender) finished(u *update, did bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := u.key()
	switch {
	case !did:
	case u.command == command.UpdateStartdAd:
		s.status.Updates++
		s.status.LastUpdate = s.p.cfg.Clock.Now().Wall
	default:
		delete(s.sent, key)
		s.status.Withdrawals++
	}
	if s.pending[key] != u {
		return
	}
	delete(s.pending, key)
	if s.order[0] == key {
		s.order = s.order[1:]
	} else {
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	}
}

// link is a connection to the collector, or what stands for one over UDP.
type link struct {
	conn    *cedar.Conn
	post    Poster // over UDP; conn is nil then
	to      cedar.Sinful
	opened  int // the command it was opened for, until that was sent; then -1
	version cedar.Version
	known   bool // the version is
	since   time.Time
	lost    chan struct{} // closed when the collector hung up, nil over UDP
	release func()
}

func (l *link) close() {
	switch {
	case l == nil:
	case l.post != nil:
		_ = l.post.Close()
	default:
		l.release()
		_ = l.conn.Close()
		<-l.lost
	}
}

// gone reports whether the collector hung up.
func (l *link) gone() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// run sends until ctx ends, or until all is withdrawn after retire.
func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	var l *link
	defer func() { l.close() }()
	failures := 0
	var r round
	for ctx.Err() == nil {
		u, retiring := s.next()
		if u == nil {
			s.told(&r)
			if retiring {
				return
			}
		}
		if l != nil && u != nil && !retiring && s.posts(l.to) != (l.post != nil) {
			l.close() // the settings have changed
			l = nil
		}
		if l != nil && u != nil && s.moved(l) {
			l.close()
			l = nil
			s.p.news.again(s) // it knows nothing
		}
		var err error
		switch {
		case l.gone():
			err = errs.E("pool.send", errs.Transient, s.to.Text, io.EOF)
		case u == nil:
			s.rest(ctx, l)
			continue
		case l == nil:
			l, err = s.connect(ctx, u.command, retiring)
		}
		if err == nil {
			r.begin()
			err = s.send(ctx, l, u)
		}
		if err == nil {
			r.count++
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.broke(l, err)
		if l != nil {
			if time.Since(l.since) >= goodFor {
				failures = 0
			}
			l.close()
			l = nil
			s.p.news.again(s) // it may have forgotten what it was told
		}
		if !retiring && l == nil && errs.Is(err, errs.Denied) && s.seekToken(ctx) {
			failures = 0
			continue
		}
		failures++
		if retiring || !s.pause(ctx, failures) {
			return
		}
	}
}

// round is a number of messages without a pause.
type round struct {
	began time.Time
	count int
}

func (r *round) begin() {
	if r.count == 0 {
		r.began = time.Now()
	}
}

// send writes one message. An ad that cannot be written is dropped, which is
// no error.
func (s *sender) send(ctx context.Context, l *link, u *update) error {
	if u.kind == typeDaemon && u.command == command.UpdateStartdAd && s.p.settings.Load().DaemonAd == DaemonAdAuto &&
		(!l.known || !l.version.AtLeast(23, 2, 0)) {
		s.finished(u, false)
		if l.opened >= 0 && l.post == nil {
			return errs.E("pool.send", errs.Unsupported, s.to.Text, errors.New("there was nothing but a daemon ad to send, which it does not know"))
		}
		return nil
	}
	var err error
	lasts := false // what came of it
	what := secrets{s.p.settings.Load().ClearClaims}
	if l.post != nil {
		err = l.post.Send(ctx, u.command, func(conn *cedar.Conn) { u.payload(conn, what) })
		lasts = errs.Is(err, errs.Invalid) || errs.Is(err, errs.Exhausted)
	} else {
		err = u.put(l.conn, l.opened == u.command, what)
		lasts = errs.Is(err, errs.Invalid) && !l.conn.Broken()
	}
	l.opened = -1
	if err != nil && lasts {
		s.mu.Lock()
		s.status.Refused++
		s.mu.Unlock()
		s.log.Error("an ad cannot be sent", "ad", u.name, "err", err)
		s.finished(u, false)
		return nil
	}
	if err == nil {
		s.finished(u, true)
		s.noteClear(l, what)
	}
	return err
}

// connect opens a connection with its first command.
func (s *sender) connect(ctx context.Context, command int, retiring bool) (*link, error) {
	to, err := s.where()
	if err != nil {
		return nil, err
	}
	limit := ctx
	if retiring {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, lastWord)
		defer cancel()
	}
	if l, err := s.posting(limit, to, command); l != nil || err != nil {
		return l, err
	}
	conn, session, err := s.p.cfg.Open.Command(limit, to, command, security.Options{})
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, to: to, release: conn.Bind(ctx), opened: command, since: time.Now(), lost: make(chan struct{})}
	version := ""
	if session != nil {
		version = session.PeerVersion
	}
	l.version, l.known = cedar.ParseVersion(version)
	go l.watch()
	s.connected(l, version)
	s.log.Info("connected to the collector", "address", to.String(), "version", version)
	return l, nil
}

// connected notes a connection, or what stands for one.
func (s *sender) connected(l *link, version string) {
	s.mu.Lock()
	s.status.Address = l.to.String()
	s.status.Connected, s.status.Datagrams, s.status.Version, s.status.Since, s.status.Err = true, l.post != nil, version, s.p.cfg.Clock.Now().Wall, nil
	s.last = ""
	s.mu.Unlock()
}

// posts reports whether a collector at an address is to be told over UDP.
func (s *sender) posts(to cedar.Sinful) bool {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	return !streams && s.p.cfg.Post != nil && s.p.settings.Load().datagrams(s.to) && security.TakesDatagrams(to)
}

// posting begins to tell the collector over UDP, if that is wanted and its
// address does not say that it takes none. It returns nil where TCP is to be
// used: what cannot be over UDP is no reason to tell the collector nothing.
func (s *sender) posting(ctx context.Context, to cedar.Sinful, command int) (*link, error) {
	if !s.posts(to) {
		return nil, nil
	}
	post, err := s.p.cfg.Post(ctx, to, command)
	if errs.Is(err, errs.Unsupported) {
		s.log.Warn("the collector is told over TCP, though UPDATE_COLLECTOR_WITH_TCP is false", "err", err)
		s.mu.Lock()
		s.streams = true
		s.mu.Unlock()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &link{post: post, to: to, opened: command, since: time.Now()}
	version := post.PeerVersion()
	l.version, l.known = cedar.ParseVersion(version)
	s.connected(l, version)
	s.log.Info("telling the collector over UDP", "address", to.String(), "version", version)
	return l, nil
}

// reconfigured has UDP tried again, and the collector told as the settings say
// now.
func (s *sender) reconfigured() {
	s.mu.Lock()
	s.streams = false
	s.mu.Unlock()
}

// watch waits for the collector to hang up: it never says anything. It ends
// with the connection.
func (l *link) watch() {
	defer close(l.lost)
	nc := l.conn.NetConn()
	var b [1]byte
	for {
		if err := nc.SetReadDeadline(time.Time{}); err != nil {
			return
		}
		n, err := nc.Read(b[:])
		if n > 0 || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// where returns the collector's address; that of port 0 is in its file.
func (s *sender) where() (cedar.Sinful, error) { return s.p.FindCollector(s.to.At) }

// moved reports whether the collector, which is told over UDP, has another
// address now. Nothing else shows that it started again: no connection is lost.
func (s *sender) moved(l *link) bool {
	if l.post == nil || s.to.At.Port != 0 {
		return false
	}
	at, err := s.where()
	return err == nil && at.String() != l.to.String()
}

// rest waits until there may be something to do.
func (s *sender) rest(ctx context.Context, l *link) {
	var lost chan struct{}
	if l != nil {
		lost = l.lost
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-lost:
	}
}

// pause waits before the next attempt: twice as long after each failure, and
// not at the same time as others. It returns false when ctx ended, and early
// when the sender retires.
func (s *sender) pause(ctx context.Context, failures int) bool {
	d := s.p.settings.Load().Pause
	if shift := failures - 1; shift < 20 {
		d = min(d, firstPause<<shift)
	}
	return s.wait(ctx, d/2+time.Duration(s.p.cfg.Rand()*float64(d)))
}

// wait is pause with its length.
func (s *sender) wait(ctx context.Context, d time.Duration) bool {
	if s.leaving() { // it was told so while it did something else
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-s.wake:
			if s.leaving() {
				return true
			}
		}
	}
}

// told notes that the queue is empty.
func (s *sender) told(r *round) {
	if r.count == 0 {
		return
	}
	took, count := time.Since(r.began), r.count
	r.count = 0
	s.mu.Lock()
	s.status.LastTook = took
	s.mu.Unlock()
	s.log.Debug("collector told", "messages", count, "took", took)
	s.p.updated.Do(func() {
		if s.p.cfg.Updated != nil {
			s.p.cfg.Updated()
		}
	})
}

// broke notes a failure. The same one over and over is told once.
func (s *sender) broke(l *link, err error) {
	s.mu.Lock()
	was := s.status.Connected
	s.status.Connected, s.status.Err = false, err
	s.status.Failures++
	if was {
		s.status.Since = s.p.cfg.Clock.Now().Wall
	}
	level := slog.LevelWarn
	if text := err.Error(); text == s.last {
		level = slog.LevelDebug
	} else {
		s.last = text
	}
	s.mu.Unlock()
	message := "collector cannot be reached"
	if l != nil {
		message = "connection to the collector lost"
	}
	s.log.Log(context.Background(), level, message, "err", err)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// shadowJob is a job of a pool: it comes from its shadow over the socket that came
// with the plan, its files over connections of their own. Everything that is told goes through
// one queue, so that the shadow hears it in the order in which it happened.
type shadowJob struct {
	a        *activation
	plan     *protocol.ShadowSide
	set      *protocol.PoolSettings
	clock    clock.Clock
	log      *slog.Logger
	machine  *classad.Ad
	caller   *shadow.Caller // nil until the conversation has begun
	queue    queue
	sessions *security.Sessions
	client   *security.Client
	endpoint *endpoint.Endpoint
	brokers  *brokers // nil without
	socket   *reach.CommandSocket
	shadows  shadows
	served   chan struct{} // closed when the socket's goroutine has ended

	// Of the transfer of files.
	input   *parting // from what sent input; nil without
	corrupt bool     // the checkpoint that came back is not what was stored
	// motions is what the job's ad showed after the last transfer.
	motions map[direction]motion
	anew    atomic.Bool // a shadow came back, which moves no files now
	// recordsTo is FILE_TRANSFER_STATS_LOG once something was written to it, and
	// recordsErr why no more is.
	recordsTo  io.Writer
	recordsErr error
	tries      int // output transfers that failed and may be tried again

	met          time.Time // when the shadow had told of the job
	began        time.Time // when the job was executed first
	io           ioHistory
	peak         int64      // the most resident memory at an update, KiB
	spent        usedBefore // by earlier runs of the job, which have saved its state
	checkpointNo int        // the next one; 0 before there was any

	user    *host.Identity // as the shadow says; nil where it was not asked
	missed  bool           // the job's time to start had passed
	failed  bool           // its output could not be sent, for good
	sentAll bool           // its output was sent
	spooled []string
	// credsDir is where the job's credentials are, "" for none.
	credsDir string
	told     string // directory of the job's manifest, "" as long as there is none
	creds    *fetched
	chirp    *chirpSide
	streams  *streams

	mu    sync.Mutex
	info  *classad.Ad // what the starter says of itself; nil before it has
	where fileServer  // changes with a reconnect, whatever is being sent
}

// fileServer is where the shadow gives and takes files.
type fileServer struct {
	address cedar.Sinful
	key     cedar.Secret
	session string // its id
	version string
}

func newShadowJob(a *activation, p *protocol.ShadowSide) *shadowJob {
	s := &shadowJob{a: a, plan: p, set: a.plan.Settings.Pool, clock: a.host.Clock, log: a.host.Log}
	if s.clock == nil {
		s.clock = clock.System()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.sessions = security.NewSessions(s.clock, 64)
	network := s.set.Reach.Network
	source, err := network.Outgoing()
	if err != nil {
		s.log.Warn("connections come from whatever address the system chooses", "err", err)
	}
	s.endpoint = endpoint.New(endpoint.Config{
		Subsystem: protocol.Subsystem, Version: p.Version, Network: network, Source: source, Reuse: a.host.Reuse,
		Name: func() string { return "STARTER " + s.address() }, Address: s.address, Public: s.self, Brokers: sync.OnceValues(s.brokerClient),
		Clock: s.clock, Log: s.log,
	})
	s.client = s.endpoint.Client(s.sessions)
	// Sessions are handed over by the shadow: nothing is ever negotiated.
	s.client.Configure(&security.Settings{
		Authorizer: &security.Authorizer{}, StepTimeout: 20 * time.Second, Deadline: 2 * time.Minute,
		MatchSessions: true, ResumeResponse: true,
	}, nil)
	return s
}

// address is where the starter is reached, "" before it is.
func (s *shadowJob) address() string {
	if s.socket == nil {
		return ""
	}
	return s.socket.Address()
}

// learn takes the conversation up and asks for the job.
func (s *shadowJob) learn(a *activation) {
	a.beside(func(ctx context.Context) func() []duty {
		caller, ad, err := s.begin(ctx)
		return func() []duty {
			if caller != nil {
				s.caller = caller
				a.gone = caller.Lost()
			}
			switch {
			case err == nil:
			case caller == nil || errors.Is(err, shadow.ErrLost):
				a.life.lost = true
				return a.unfit(err, int(reason.ShadowException))
			default:
				return a.unfit(err, int(reason.StarterError))
			}
			s.motions = map[direction]motion{inward: inward.of(ad), outward: outward.of(ad)}
			if from, ok := ad.EvalString("ShadowIpAddr", nil); ok {
				s.shadows.take(from)
			}
			if s.user != nil {
				a.plan.RunAs = s.user
			}
			s.serveSocket()
			return a.learned(ad, nil)
		}
	})
}

func (s *shadowJob) begin(ctx context.Context) (*shadow.Caller, *classad.Ad, error) {
	const op = "starter.shadow"
	if s.a.host.Socket == nil {
		return nil, nil, errs.E(op, errs.Unsupported, s.a.plan.Activation, errors.New("no connection can be handed to this starter"))
	}
	nc, err := s.a.host.Socket()
	if err != nil {
		return nil, nil, errs.E(op, errs.Broken, s.a.plan.Activation, err)
	}
	conn, err := cedar.Resume(nc, cedar.Limits{}, s.plan.Stream)
	if err != nil {
		_ = nc.Close()
		return nil, nil, errs.E(op, errs.Broken, s.a.plan.Activation, err)
	}
	caller := shadow.New(conn, shadow.Options{Timeout: s.set.Wire, Log: s.log, Clock: s.clock})
	if s.machine, err = classad.ParseAd(s.a.plan.MachineAd, classad.Old); err != nil {
		return caller, nil, errs.E(op, errs.Invalid, "machine ad", err)
	}
	where := reach.Config{
		Claim: s.plan.Claim, Family: s.plan.Family, Address: s.plan.Address, Job: visitors{s}, Settings: s.set.Reach, Secure: s.secure, Endpoint: s.endpoint,
		Platform: s.plan.Platform, Commands: []listen.Command{s.endpoint.Reverser.Command()},
	}
	if make := s.a.host.SharedPort; make != nil {
		where.SharedPort = func(dir, id string) (listen.NamedSocket, error) { return make(s.plan.Cookie, dir, id) }
	}
	if s.brokers, err = s.newBrokers(); err != nil {
		s.log.Warn("the starter is not reached through a broker", "err", err)
	} else if s.brokers != nil {
		where.Broker, where.Changed = s.registerAt, s.moved
	}
	if s.socket, err = reach.Open(ctx, where); err != nil {
		return caller, nil, err
	}
	ad, err := caller.JobInfo(ctx)
	if err != nil {
		return caller, nil, err
	}
	s.met = s.clock.Now().Wall
	if s.a.plan.AskUser != "" {
		if s.user, err = s.stranger(ctx, caller); err != nil {
			return caller, nil, err
		}
	}
	return caller, ad, s.taught(ad)
}

// taught has the shadow's ad say where files are given and taken from now on.
func (s *shadowJob) taught(ad *classad.Ad) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where.learn(ad)
}

// server is where files are given and taken now.
func (s *shadowJob) server() fileServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where
}

// learn reads where files are given and taken from an ad of the shadow.
func (f *fileServer) learn(ad *classad.Ad) error {
	if v, ok := ad.EvalString("ShadowVersion", nil); ok {
		f.version = v
	}
	if key, ok := ad.EvalString("TransferKey", nil); ok {
		f.key = cedar.Secret(key)
	}
	text, ok := ad.EvalString("TransferSocket", nil)
	if !ok {
		return nil // it matters only if files are moved
	}
	address, err := cedar.ParseSinful(text)
	if err != nil {
		return errs.E("starter.shadow", errs.Invalid, "TransferSocket", err)
	}
	f.address = address
	return nil
}

// serveSocket takes commands from now on.
func (s *shadowJob) serveSocket() {
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.socket.Serve(context.Background()); err != nil {
			s.log.Warn("the starter cannot be reached any more", "err", err)
		}
	}()
	s.a.say(protocol.Contact{Address: s.socket.Address()})
}

// read says how the job runs here, away from its access point.
func (s *shadowJob) read(a *activation, ad *classad.Ad) (*job, error) {
	move, err := movesFiles(ad, s.set.FileSystemDomain)
	if err != nil {
		return nil, err
	}
	if home := a.home(); home != "" {
		ad.SetString("OSHomeDir", home)
	}
	ad.Delete("SpooledOutputFiles") // the output is what the job left, not what is in the spool
	j, err := readJob(ad, "", a.box.Scratch(), move)
	if err == nil {
		j.streamed()
	}
	return j, err
}

// movesFiles decides whether files are moved: ShouldTransferFiles, where
// IF_NEEDED depends on whether both sides see the same file systems.
func movesFiles(ad *classad.Ad, domain string) (bool, error) {
	const op = "starter.job"
	word, ok := ad.EvalString("ShouldTransferFiles", nil)
	if !ok {
		return false, errs.E(op, errs.Invalid, "ShouldTransferFiles", errors.New("the job does not say whether its files are moved; want YES, NO or IF_NEEDED"))
	}
	move := false
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "YES", "ALWAYS":
		move = true
	case "NO", "NEVER":
	case "IF_NEEDED":
		theirs, _ := ad.EvalString("FileSystemDomain", nil)
		move = !strings.EqualFold(theirs, domain) || domain == ""
	default:
		return false, errs.E(op, errs.Invalid, "ShouldTransferFiles", fmt.Errorf("%q is none of YES, NO and IF_NEEDED", word))
	}
	if !move {
		return false, nil
	}
	switch when, _ := ad.EvalString("WhenToTransferOutput", nil); strings.ToUpper(when) {
	case "ON_EXIT", "ON_EXIT_OR_EVICT", "ON_SUCCESS":
		return true, nil
	default:
		return false, errs.E(op, errs.Invalid, "WhenToTransferOutput", fmt.Errorf("%q is none of ON_EXIT, ON_EXIT_OR_EVICT and ON_SUCCESS", when))
	}
}

// introduce makes the starter and the shadow known to each other.
func (s *shadowJob) introduce(ctx context.Context) error {
	if s.socket.Brokered() {
		s.brokers.await(ctx)
	}
	info := starterInfo(s.plan, s.set, s.a.plan.SlotFullName, s.address(), s.a.box.Scratch(), s.machine, s.a.job.ad)
	s.mu.Lock()
	s.info = info
	s.mu.Unlock()
	full := info.Clone()
	full.SetValue("SlotAd", classad.AdValue(s.machine))
	if err := s.caller.RegisterStarter(ctx, full); err != nil {
		return err
	}
	if err := s.share(ctx); err != nil {
		return err
	}
	return s.caller.RegisterJob(ctx, provisioned(s.machine))
}

// share asks the shadow for the sessions and keeps that for files.
func (s *shadowJob) share(ctx context.Context) error {
	shared, ok, err := s.caller.Sessions(ctx)
	if err != nil || !ok {
		return err
	}
	t := shared.Transfer
	s.sessions.Forget(t.ID)
	if _, err := s.sessions.AddShared(t.ID, t.Info, t.Key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.where.session = t.ID
	return nil
}

// bring introduces the starter, brings the input and waits until the job may
// start.
func (s *shadowJob) bring(a *activation) {
	if a.job.transfer {
		a.say(protocol.TransferInStart{})
	}
	a.beside(func(ctx context.Context) func() []duty {
		err := s.introduce(ctx)
		var got carried
		if err == nil {
			err = s.openCreds(ctx)
		}
		if err == nil && a.job.transfer {
			got, err = s.receive(ctx)
		}
		if err == nil {
			err = s.verify(ctx)
		}
		if err == nil {
			err = s.manifestIn()
		}
		missed := false
		var opened *streams
		if err == nil {
			s.chirp, err = a.openChirp(s.caller, chirp.AllowFrom(a.job.ad, a.plan.Settings.Chirp), s.log)
		}
		if err == nil {
			missed, err = s.awaitStart(ctx, a.job.ad)
		}
		if err == nil && !missed {
			kind := shadow.StreamOut
			if a.job.keepsStd() {
				kind = shadow.StreamAppend
			}
			opened, err = s.openStreams(ctx, kind)
		}
		return func() []duty {
			a.record.BytesIn = got.bytes
			s.streams = opened
			if a.job.transfer {
				a.say(protocol.TransferInDone{Files: got.files, Bytes: got.bytes})
			}
			switch {
			case err == nil && missed:
				s.missed = true
				return a.life.prepared(&protocol.Hold{Code: int(reason.MissedDeferredTime), Reason: "The job missed its time to start"})
			case err == nil:
				return a.life.prepared(nil)
			case errors.Is(err, context.Canceled):
				return a.life.prepared(nil)
			case errors.Is(err, shadow.ErrLost):
				a.life.lost = true
				return a.unfit(err, int(reason.ReconnectFailed))
			}
			var stream *streamError
			if errors.As(err, &stream) {
				return a.life.prepared(stream.hold())
			}
			if h := holdOf(err); h != nil {
				h.Reason = "Failed to transfer files: " + h.Reason
				return a.life.prepared(h)
			}
			var f *transfer.WireFailure
			if errors.As(err, &f) && !f.Retry && f.HoldCode != 0 { // its subcode says: not here
				h := requeue(f)
				return a.unfitFor(err, eviction{reason: "Failed to transfer files: " + h.Reason, code: h.Code, subcode: h.Subcode})
			}
			return a.unfit(err, int(reason.StarterError))
		}
	})
}

func (s *shadowJob) starting(a *activation) { s.manifestEnv(a.jobEnv) }

// executed tells that the job begins: the shadow writes event 001 and counts
// NumJobStarts. HTCondor's starter says so before it tries, so that a program
// which the system refuses to execute counts as well; one that the machine had
// no means to start does not. The job does not wait for the answer: what is told
// later comes later.
func (s *shadowJob) executed(*activation) {
	s.streams.started()
	if s.began.IsZero() {
		s.began = s.clock.Now().Wall
	}
	s.queue.add(func() {
		if err := s.caller.BeginExecution(context.Background()); err != nil {
			s.log.Warn("the shadow was not told that the job begins", "err", err)
		}
	})
}

// changed tells how the job is now. While something else waits to be told a
// measurement is left out, a change of state never is.
func (s *shadowJob) changed(a *activation) {
	if a.life.held || a.life.apart || a.family == nil {
		return
	}
	state := "Running"
	if a.life.suspended {
		state = "Suspended"
	}
	s.update(a, state)
}

// scriptFailed tells how a program before or after the job has ended, as HTCondor
// does with nothing else: a hold, which comes next, carries no such attributes.
func (s *shadowJob) scriptFailed(a *activation) {
	if a.life.held || a.life.apart {
		return
	}
	ad := classad.NewAd()
	ad.SetInt("_condor_JOBINFO_MAXINTERVAL", int64(a.plan.Settings.Update/time.Second))
	for _, script := range a.scripts.ads {
		ad.Update(script)
	}
	s.register(ad)
}

func (s *shadowJob) update(a *activation, state string) {
	s.register(s.condition(a, state).ad())
}

// register tells the shadow how the job is.
func (s *shadowJob) register(ad *classad.Ad) {
	s.queue.add(func() {
		if err := s.caller.RegisterJob(context.Background(), ad); err != nil {
			s.log.Warn("an update did not reach the shadow", "err", err)
		}
	})
}

// condition is how the job is.
func (s *shadowJob) condition(a *activation, state string) condition {
	u := a.record.Usage
	u = s.spent.and(u)
	s.peak = max(s.peak, u.RSSKiB)
	c := condition{
		state: state, interval: a.plan.Settings.Update, usage: u, peakRSS: s.peak,
		diskKiB: a.disk.KiB, files: a.disk.Files, moved: a.job != nil && a.job.transfer, started: a.record.Started,
		address: s.address(), metric: s.set.MemoryUsage, nested: s.caller.AtLeast(25, 3, 0),
		vacated: a.life.evicted, metered: a.metered, window: s.set.Window,
	}
	if state != "" && !s.began.IsZero() {
		now := s.clock.Now().Wall
		c.counted, c.recent = max(0, now.Sub(s.began)), s.io.recent(now, blockIOOf(u), c.window)
	}
	c.scripts = a.scripts.ads
	if a.family != nil {
		c.proc, c.grouped = a.family.Main(), a.family.Grouped()
	}
	if state == "Exited" {
		c.ended, c.status = a.exitAt, a.record.Status
		c.peakRSS = max(c.peakRSS, u.PeakRSSKiB)
	}
	if state != "Exited" || a.life.phase == telling {
		c.delayed = s.chirp.delayed()
	}
	if c.moved && a.box != nil {
		c.stdout, c.stderr = a.box.Written()
	}
	if s.sentAll {
		c.isSpooled, c.spooled = true, strings.Join(s.spooled, ",")
	}
	return c
}

// hold has the shadow hold the job, at once.
func (s *shadowJob) hold(a *activation) {
	h := *a.life.hold
	s.queue.add(func() { s.sayHold(context.Background(), h) })
}

func (s *shadowJob) sayHold(ctx context.Context, h protocol.Hold) error {
	return s.caller.Log(ctx, shadow.HoldEvent(h.Reason, h.Code, h.Subcode))
}

func (s *shadowJob) close(ctx context.Context) {
	s.input.cut()
	if s.caller != nil {
		if err := s.queue.settled(ctx); err != nil {
			s.log.Warn("the shadow does not listen to what is left to be told", "err", err)
		}
		s.caller.End()
		s.queue.wait()
	}
	// Those who wait for the shadow see that it is gone.
	s.creds.close()
	s.streams.close()
	s.chirp.close()
	if s.socket != nil {
		s.socket.Close()
		if s.served != nil {
			<-s.served
		}
	}
}

// queue does one thing after the other, in a goroutine of its own while there
// is any.
type queue struct {
	mu   sync.Mutex
	todo []func()
	busy bool
	idle sync.WaitGroup
}

func (q *queue) add(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, do)
	if !q.busy {
		q.busy = true
		q.idle.Go(q.drain)
	}
}

func (q *queue) drain() {
	for {
		q.mu.Lock()
		if len(q.todo) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		do := q.todo[0]
		q.todo = q.todo[1:]
		q.mu.Unlock()
		do()
	}
}

// settled waits until all that was added so far is done, or ctx ends.
func (q *queue) settled(ctx context.Context) error {
	done := make(chan struct{})
	q.add(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *queue) wait() { q.idle.Wait() }

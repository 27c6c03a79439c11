// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// mostTries is how often output is sent again after a failure that may pass.
const mostTries = 4

// carried is what a transfer moved.
type carried struct {
	files int
	bytes int64
}

// open opens a connection for files.
func (s *shadowJob) open(ctx context.Context, command int) (*cedar.Conn, error) {
	const op = "starter.transfer"
	where := s.server()
	if where.address.IsZero() || where.key == "" {
		return nil, errs.E(op, errs.Invalid, "TransferSocket", errors.New("the shadow does not say where files are"))
	}
	// A broker may have to find the shadow first, which may be gone.
	limit, cancel := context.WithTimeout(ctx, s.set.Wire)
	defer cancel()
	conn, _, err := s.client.Command(limit, where.address, command, security.Options{Session: where.session})
	if err != nil {
		return nil, again("opening a connection for files", err)
	}
	if err := transfer.Begin(conn, where.key); err != nil {
		_ = conn.Close()
		return nil, again("opening a connection for files", err)
	}
	return conn, nil
}

// again is a failure that may pass.
func again(doing string, err error) error {
	return &transfer.WireFailure{Reason: doing + ": " + err.Error(), Retry: true, Broken: true, Err: err}
}

func (s *shadowJob) side(conn *cedar.Conn) transfer.Side {
	return transfer.Side{
		Conn: conn, PeerVersion: s.server().version, Log: s.ownLog(), Record: s.records(), Errno: s.a.host.Errno,
		Timeout:  s.set.Wire,
		Progress: s.a.flow.add,
	}
}

// receive brings the input, again if the shadow wants that after a failure.
func (s *shadowJob) receive(ctx context.Context) (carried, error) {
	for n := 1; ; n++ {
		got, ready, err := s.fetch(ctx)
		switch {
		case err == nil || !ready:
			return got, err
		case n < mostInput && s.fetchAgain(ctx):
			continue
		}
		s.unready(ctx)
		return got, err
	}
}

// fetch brings the input once. ready says of a failure that the shadow could
// begin another transfer.
func (s *shadowJob) fetch(ctx context.Context) (_ carried, ready bool, err error) {
	a := s.a
	conn, err := s.open(ctx, command.FiletransUpload)
	if err != nil {
		return carried{}, false, err
	}
	defer func() {
		switch f := new(transfer.WireFailure); {
		case err == nil:
			s.input = part(conn)
			return
		case errors.As(err, &f) && !f.Broken:
			left(ctx, conn)
			ready = s.reaped(ctx, inward)
		}
		_ = conn.Close()
	}()
	o := transfer.ReceiveOptions{Plugins: s.plugins(), Owner: a.owner()}
	if remaps := a.job.text("TransferInputRemaps"); remaps != "" {
		if o.Rename, err = transfer.Renames(remaps); err != nil {
			return carried{}, false, err
		}
	}
	if cmd := a.job.text("Cmd"); a.job.flag("TransferExecutable") && cmd != "" {
		o.Executable = filepath.Base(cmd)
	}
	if err := a.writeAds(); err != nil { // for plugins; the job gets its own when it starts
		s.log.Info("plugins find no ad of the job", "err", err)
	}
	var got transfer.Stats
	err = a.asUser(func() (err error) {
		got, err = transfer.Receive(ctx, s.side(conn), a.box.Root(), o)
		return err
	})
	if len(got.PluginResults) > 0 {
		if rerr := s.caller.RegisterJob(ctx, pluginResults("Input", got.PluginResults)); rerr != nil && err == nil {
			err = rerr
		}
	}
	return carried{got.Files, got.Total()}, false, err
}

// childEnds is how long the child of a shadow may take to end that has said all
// it had to say.
const childEnds = 10 * time.Second

// left waits until the shadow's child that moved files on conn, of which
// nothing more comes, is gone.
func left(ctx context.Context, conn *cedar.Conn) {
	defer conn.Bind(ctx)()
	nc := conn.NetConn()
	_ = nc.SetReadDeadline(time.Now().Add(childEnds))
	if ctx.Err() != nil {
		return // that may have been in place of the deadline by which ctx ends it
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(nc, 4096))
}

// parting is left beside other things.
type parting struct {
	conn *cedar.Conn
	over chan struct{}
}

func part(conn *cedar.Conn) *parting {
	p := &parting{conn: conn, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		left(context.Background(), conn)
		_ = conn.Close()
	}()
	return p
}

func (p *parting) await(ctx context.Context) {
	if p != nil {
		select {
		case <-p.over:
		case <-ctx.Done():
		}
	}
}

func (p *parting) cut() {
	if p != nil {
		_ = p.conn.Close()
		<-p.over
	}
}

// unready sends what there is of a job whose input did not come: the files for
// failures. They are worth nothing more than to be tried once.
func (s *shadowJob) unready(ctx context.Context) {
	ending := s.ending()
	ending.Failed = true
	plan, err := transfer.PlanOutput(s.a.job.ad, ending)
	if err == nil {
		_, err = s.upload(ctx, plan, ofOutput)
	}
	if err != nil {
		s.log.Info("the files for failures were not sent", "err", err)
	}
	ad := classad.NewAd()
	ad.SetBool("ExecuteDirWasEncrypted", false)
	s.register(ad)
}

// pluginResults is the update that tells of plugins.
func pluginResults(which string, results []*classad.Ad) *classad.Ad {
	list := make([]*classad.Expr, len(results))
	for i, r := range results {
		list[i] = classad.Literal(classad.AdValue(r))
	}
	ad := classad.NewAd()
	ad.SetValue(which+"PluginResultList", classad.List(list...))
	return ad
}

// owner gives the job's user what plugins with the starter's own rights make in
// the scratch directory; nil if there are none, for all else is made by that user.
func (a *activation) owner() func(root *os.Root, name string, dir bool) error {
	u, pool := a.plan.RunAs, a.plan.Settings.Pool
	if u == nil || pool == nil || !pool.Plugins.WithRoot {
		return nil
	}
	return func(root *os.Root, name string, _ bool) error {
		given := make(chan error, 1)
		go func() { given <- a.host.Access.Give(u, root, name) }() // with the rights of the starter
		return <-given
	}
}

// holdOf is the hold that a failed transfer asks for, nil if it asks for none.
func holdOf(err error) *protocol.Hold {
	var f *transfer.WireFailure
	if !errors.As(err, &f) || f.Retry || !reason.Holds(reason.Code(f.HoldCode), f.HoldSubcode) {
		return nil
	}
	return &protocol.Hold{Code: f.HoldCode, Subcode: f.HoldSubcode, Reason: f.Reason}
}

// requeue is the event by which a job starts again elsewhere after a transfer
// that failed. A subcode that says so itself stays, as that of a plugin which is
// not there (-1001); any other would have the job held.
func requeue(f *transfer.WireFailure) *protocol.Hold {
	h := &protocol.Hold{Code: f.HoldCode, Subcode: f.HoldSubcode, Reason: f.Reason}
	if h.Code == 0 {
		h.Code = int(reason.TransferOutputError)
	}
	if reason.Holds(reason.Code(h.Code), h.Subcode) {
		h.Subcode = -int(reason.VacateBase)
	}
	return h
}

// awaitStart waits until a job with a DeferralTime may start, or one whose
// shadow is too young. missed says that its window has passed.
func (s *shadowJob) awaitStart(ctx context.Context, ad *classad.Ad) (missed bool, err error) {
	now := s.clock.Now().Wall
	wait, missed := deferral(ad, now)
	if !missed && !s.caller.AtLeast(25, 8, 0) {
		wait = max(wait, untilOld(ad, now.Sub(s.met)))
	}
	if missed || wait <= 0 {
		return missed, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// old is how old a shadow has to be when a job with an AllowedExecuteDuration
// begins: it counts in whole seconds, and before 25.8.0 takes a beginning in the
// second of its own for that of an earlier run, which nothing limits. HTCondor
// keeps a second between input and job anyway.
const old = time.Second

// untilOld is how long a job has to wait until its shadow, which is known for
// some time, is old enough for it.
func untilOld(ad *classad.Ad, known time.Duration) time.Duration {
	if _, limited := ad.Lookup("AllowedExecuteDuration"); !limited {
		return 0
	}
	return min(old, max(0, old-known)) // a clock that was set back says nothing
}

// deferral is how long a job has to wait for its DeferralTime; missed says
// that this is past by more than its DeferralWindow.
func deferral(ad *classad.Ad, now time.Time) (wait time.Duration, missed bool) {
	env := &classad.Env{My: ad, Now: now}
	at, ok := ad.EvalInt("DeferralTime", env)
	if !ok || at <= 0 {
		return 0, false
	}
	offset, _ := ad.EvalInt("DeferralOffset", env)
	window, _ := ad.EvalInt("DeferralWindow", env)
	wait = time.Unix(at, 0).Sub(now.Add(-time.Duration(offset) * time.Second))
	switch {
	case wait >= 0:
		return wait, false
	case -wait > time.Duration(window)*time.Second:
		return 0, true
	}
	return 0, false
}

// send tells that the job has exited, and sends its output.
func (s *shadowJob) send(a *activation) {
	if a.life.held {
		a.perform(a.life.finished(nil))
		return
	}
	s.peak = max(s.peak, a.record.Usage.PeakRSSKiB)
	some, _ := a.output()
	if a.life.apart {
		owed := dutyTell
		if some {
			owed = dutyOutput
		}
		a.perform(a.life.unheard(owed, away))
		return
	}
	if s.saving(a) {
		s.checkpoint(a)
		return
	}
	if !a.scripts.after { // else the shadow knows
		s.exited(a)
	}
	if !some {
		a.perform(a.life.finished(nil))
		return
	}
	want, said := promised(a.job.ad, "JobSuccess")
	whole := !said || as(a.record.Status, want)
	final := a.life.evicted == nil || a.life.evicted.final
	plan, err := s.outputPlan(whole, final)
	a.say(protocol.TransferOutStart{})
	a.beside(func(ctx context.Context) func() []duty {
		var sent transfer.Stats
		if err == nil {
			sent, err = s.upload(ctx, plan, ofOutput)
		}
		return func() []duty {
			a.record.BytesOut = sent.Total()
			a.say(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Total()})
			return s.sent(sent, err)
		}
	})
}

// exited tells that the job's main process has ended, once.
func (s *shadowJob) exited(a *activation) {
	if a.life.held || a.life.apart {
		return
	}
	s.executionExited()
	s.register(s.condition(a, "Exited").exit().ad())
}

// executionExited ends the time that the shadow counts as execution. That of a job
// which goes on after its checkpoint begins anew with its next run.
func (s *shadowJob) executionExited() {
	if s.caller.AtLeast(9, 4, 1) {
		event := classad.NewAd()
		event.SetString("EventType", "ActivationExecutionExit")
		s.queue.add(func() {
			if err := s.caller.Notify(context.Background(), event); err != nil {
				s.log.Debug("the shadow was not told that the job has exited", "err", err)
			}
		})
	}
}

// sent goes on after an output transfer.
func (s *shadowJob) sent(got transfer.Stats, err error) []duty {
	a := s.a
	var f *transfer.WireFailure
	switch {
	case err == nil:
		s.sentAll, s.spooled = true, slices.DeleteFunc(got.Spooled, func(name string) bool {
			return name == sandbox.StdoutFile || name == sandbox.StderrFile
		})
		return a.life.finished(nil)
	case errors.Is(err, context.Canceled):
		return a.life.finished(nil)
	case errors.Is(err, shadow.ErrLost):
		return a.life.unheard(dutyOutput, connection(s.caller.Connected()))
	case errors.As(err, &f) && f.Retry && s.tries < mostTries:
		s.tries++
		s.log.Warn("the output did not reach the shadow; it is sent again when the shadow asks for the job", "err", err)
		s.caller.Break(err)
		return a.life.unheard(dutyOutput, connection(s.caller.Connected()))
	}
	s.failed = true
	h := holdOf(err)
	if h == nil {
		h = &protocol.Hold{Code: int(reason.TransferOutputError), Reason: err.Error()}
		if f != nil {
			h = requeue(f)
		}
	}
	return a.life.finished(h)
}

// outputPlan says what is sent.
func (s *shadowJob) outputPlan(whole, final bool) (transfer.SendPlan, error) {
	s.manifest("out", nil)
	ending := s.ending()
	ending.Failed = !whole
	if s.told != "" {
		ending.Added = append(ending.Added, s.told)
	}
	if !final {
		ending.Occasion = transfer.AtEviction
	}
	switch err := s.findChanged(&ending); {
	case errors.Is(err, fs.ErrNotExist):
		ending.Gone = final
	case err != nil:
		return transfer.SendPlan{}, err
	}
	return transfer.PlanOutput(s.a.job.ad, ending)
}

// findChanged notes what is new or changed since the job began, or was by an
// earlier run. The error is fs.ErrNotExist if the job has removed its scratch
// directory.
func (s *shadowJob) findChanged(e *transfer.Ending) error {
	return s.a.asUser(func() (err error) {
		e.Earlier = transfer.Earlier(s.a.box.Root(), s.a.job.ad)
		e.Changed, err = transfer.Changed(s.a.box.Root(), s.a.before)
		return err
	})
}

// ending is what is known of the scratch directory when output is sent.
func (s *shadowJob) ending() transfer.Ending {
	a := s.a
	ending := transfer.Ending{Occasion: transfer.AtExit, Scratch: a.box.Scratch()}
	for _, f := range []struct {
		file stdFile
		to   *string
	}{{a.job.stdout, &ending.Stdout}, {a.job.stderr, &ending.Stderr}} {
		if name, err := filepath.Rel(a.box.Scratch(), f.file.path); f.file.path != "" && err == nil && filepath.IsLocal(name) {
			*f.to = name
		}
	}
	ending.Quiet = map[string]bool{sandbox.JobAdFile: true, sandbox.MachineAdFile: true}
	return ending
}

// uploading says which files are sent, in the word with which the attributes that
// tell of it begin.
type uploading string

const (
	ofCheckpoint uploading = "Checkpoint"
	ofOutput     uploading = "Output" // after it the shadow moves no files any more
)

// upload sends files.
func (s *shadowJob) upload(ctx context.Context, plan transfer.SendPlan, which uploading) (transfer.Stats, error) {
	if err := s.queue.settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if err := s.streams.settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if !s.caller.Connected() {
		return transfer.Stats{}, shadow.ErrLost
	}
	s.inputOver(ctx)
	conn, err := s.open(ctx, command.FiletransDownload)
	if err != nil {
		return transfer.Stats{}, err
	}
	defer func() { _ = conn.Close() }()
	var sent transfer.Stats
	err = s.a.asUser(func() (err error) {
		sent, err = transfer.Send(ctx, s.side(conn), s.a.box.Root(), plan, transfer.SendOptions{Plugins: s.plugins(), Outside: s.outside()})
		return err
	})
	f := new(transfer.WireFailure)
	if which == ofCheckpoint && (err == nil || errors.As(err, &f) && !f.Broken) {
		if left(ctx, conn); !s.reaped(ctx, outward) {
			s.log.Warn("the shadow does not show that it is done with the files it was sent")
		}
	}
	// Also, and most of all, when it failed: the results say why.
	if len(sent.PluginResults) > 0 {
		if rerr := s.caller.RegisterJob(ctx, pluginResults(string(which), sent.PluginResults)); err == nil {
			err = rerr
		}
	}
	return sent, err
}

// inputOver waits until the shadow is done with the input that it sent.
func (s *shadowJob) inputOver(ctx context.Context) {
	if s.input == nil {
		return
	}
	s.input.await(ctx)
	s.input = nil
	if !s.anew.Load() && !s.reaped(ctx, inward) {
		s.log.Warn("the shadow does not show that it is done with the input")
	}
}

// tell tells how it went: that the job is to be held, or that it is over.
func (s *shadowJob) tell(a *activation) {
	if s.caller == nil || a.life.lost {
		a.perform(a.life.told())
		return
	}
	if a.life.apart {
		a.perform(a.life.unheard(dutyTell, away))
		return
	}
	hold, state := a.life.hold, ""
	if a.life.ran {
		state = "Exited"
	}
	how := s.condition(a, state)
	if s.failed {
		how = how.exit()
	}
	ad := how.ad()
	wait, why := waitStatus(a.record.Status), exitReason(a.record.Status, a.life.ran, a.life.evicted, s.missed)
	if s.missed {
		hold = nil
	}
	if e := a.life.evicted; hold == nil && e != nil && e.asked == "starter" && !a.life.ran {
		// It could not be set up here. A shadow that is told of an exit before of
		// a beginning takes it for both: event 001, and one more of NumJobStarts.
		hold = &protocol.Hold{Code: e.code, Subcode: e.subcode, Reason: e.reason}
		if s.corrupt {
			hold.Code = 0 // HTCondor sends none, which the shadow takes for StarterError
		}
	}
	ran := a.life.ran
	mock := s.failed && ran
	timeout := time.Duration(0)
	if e := a.life.evicted; e != nil && e.hard {
		timeout = a.moment()
	}
	a.beside(func(ctx context.Context) func() []duty {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		// Also a call that cannot be sent, since nobody reads it, ends then.
		defer context.AfterFunc(ctx, func() { s.caller.Break(context.Cause(ctx)) })()
		err := s.queue.settled(ctx)
		if err == nil && state != "" && timeout == 0 {
			err = s.streams.settled(ctx)
		}
		switch {
		case err != nil:
		case hold != nil:
			if !ran {
				s.inputOver(ctx) // else what the job received is missing in the event log
			}
			if mock {
				err = s.caller.JobTermination(ctx, ad)
			}
			if err == nil {
				err = s.sayHold(ctx, *hold)
			}
		default:
			err = s.caller.JobExit(ctx, wait, why, ad)
		}
		return func() []duty {
			if errors.Is(err, shadow.ErrLost) {
				return a.life.unheard(dutyTell, connection(s.caller.Connected()))
			}
			a.problem(err)
			return a.life.told()
		}
	})
}

// hardTell bounds telling the end of a job that was killed: who ordered that
// does not wait for it.
const hardTell = 10 * time.Second

// moment is how long a shadow may take that keeps a starter from ending at once.
func (a *activation) moment() time.Duration {
	if a.host.Moment > 0 {
		return a.host.Moment
	}
	return hardTell
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/jobqueue"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Signal is an order of the schedd.
type Signal uint8

// The orders. A schedd sends Leave to a job that is held or removed: the queue says
// which, and not the signal.
const (
	Leave     Signal = iota + 1 // SIGUSR1
	Vacate                      // SIGTERM, and HTCondor's DC_SIGSOFTKILL
	VacateNow                   // SIGQUIT, and HTCondor's DC_SIGHARDKILL
)

// Config is all that a starter of the local universe needs of its process.
type Config struct {
	Env    []string
	Stdin  io.Reader
	PID    int
	Config *config.Snapshot // as a starter reads it
	Host   starter.Host
	// Account finds users, where this process is root; nil where it is not.
	Account func(name string) (*host.Identity, error)
	Signals <-chan Signal
	// Orphaned is closed when the schedd is gone.
	Orphaned <-chan struct{}
	// Update writes attributes of a job into the queue, as user.
	Update func(ctx context.Context, user string, id jobqueue.ID, attrs *classad.Ad) error
	// Status reads JobStatus of a job in the queue.
	Status func(ctx context.Context, id jobqueue.ID) (int64, error)
	// Address is where the starter is reached, for the event log.
	Address string
	Log     *slog.Logger
}

// stay is the stay of one job.
type stay struct {
	Config
	id     jobqueue.ID
	header eventlog.Header
	ad     *classad.Ad
	user   string // who owns the job in the queue
	logs   eventLogs
	system jobpolicy.System
	told   chan protocol.Report
	queue  chan *classad.Ad // what is to be written while the job runs
}

// Run runs the job and returns the exit status for the schedd.
func (c Config) Run(ctx context.Context, o Options) int {
	s := &stay{Config: c, id: o.ID, system: jobpolicy.SystemFrom(c.Config), header: eventlog.Header{Cluster: o.ID.Cluster, Proc: o.ID.Proc, Subproc: o.Subproc}}
	in := c.Stdin
	if o.Input != "-" {
		f, err := os.Open(o.Input)
		if err != nil {
			return s.failed("the job's ad is not there", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	var err error
	if s.ad, err = readAd(in, o); err != nil {
		return s.failed("the job cannot be begun", err)
	}
	s.user, _ = s.ad.EvalString("User", nil)
	u, err := userOf(s.ad, c.Account)
	if err != nil {
		return s.hold(ctx, reason.FailedToAccessUserAccount, "Unable to switch to the user of the job: "+err.Error())
	}
	plan, err := planOf(s.ad, u, c.Config, o, c.PID)
	if err != nil {
		return s.failed("the configuration cannot be used", err)
	}
	if s.logs, err = openLogs(s.ad, u, c.Host.Access); err != nil {
		s.Log.Error("the job's event log cannot be written, and the job is held", "job", s.id.String(), "err", err)
		return s.hold(ctx, reason.UnableToInitUserLog, "Failed to initialize user log")
	}
	defer s.logs.close()
	rec, left := s.activate(ctx, plan)
	return s.conclude(ctx, rec, left)
}

// failed says what kept the starter from beginning. The job goes back to idle.
func (s *stay) failed(what string, err error) int {
	s.Log.Error(what, "job", s.id.String(), "err", err)
	return Failed
}

// hold has a job held that was not begun.
func (s *stay) hold(ctx context.Context, code reason.Code, why string) int {
	rec := protocol.ExitRecord{Held: &protocol.Hold{Code: int(code), Reason: why}}
	return s.conclude(ctx, rec, false)
}

// activate runs the activation, and obeys signals meanwhile. left says that the schedd
// told the job to go since it is held or removed.
func (s *stay) activate(ctx context.Context, plan *protocol.Plan) (rec protocol.ExitRecord, left bool) {
	orders := make(chan protocol.Order, 8)
	ended := make(chan struct{})
	s.told, s.queue = make(chan protocol.Report, 64), make(chan *classad.Ad, 4)
	h := s.Host
	h.Stop = nil // signals are orders here
	written := make(chan struct{})
	go s.write(ctx, written)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for r := range s.told {
			if end, ok := r.(protocol.Ended); ok {
				rec = end.Record
			}
			s.hear(r)
		}
		close(s.queue)
	}()
	go func() {
		defer close(ended)
		if err := starter.Activate(ctx, s.Env, orders, func(r protocol.Report) { s.told <- r }, h); err != nil {
			s.Log.Error("something of the job is left", "job", s.id.String(), "err", err)
		}
		close(s.told)
	}()
	orders <- plan
	signals, orphaned := s.Signals, s.Orphaned
	send := func(o protocol.Order) {
		select {
		case orders <- o:
		case <-ended: // nobody reads it any more
		}
	}
	for {
		select {
		case sig := <-signals:
			left = left || sig == Leave
			send(s.order(ctx, sig))
		case <-orphaned:
			s.Log.Warn("the schedd is gone, and the job ends", "job", s.id.String())
			orphaned = nil
			send(protocol.HardKill{Leave: protocol.Leave{Asked: "starter", Reason: "The schedd is gone", Code: int(reason.StarterError)}})
		case <-ended:
			<-heard
			<-written
			return rec, left
		}
	}
}

// order is what a signal asks for.
func (s *stay) order(ctx context.Context, sig Signal) protocol.Order {
	switch sig {
	case Leave:
		return protocol.SoftKill{Leave: protocol.Leave{Manner: s.manner(ctx), Asked: "schedd", Reason: "The schedd holds or removes the job", Code: int(reason.JobRemoved)}, Deadline: s.deadline()}
	case Vacate:
		return protocol.SoftKill{Leave: protocol.Leave{Asked: "schedd", Reason: "Job vacated by schedd", Code: int(reason.ScheddVacate)}, Deadline: s.deadline()}
	default:
		return protocol.HardKill{Leave: protocol.Leave{Asked: "schedd", Reason: "Job vacated by schedd", Code: int(reason.ScheddVacate)}}
	}
}

// asking bounds the question why the job has to go.
const asking = 5 * time.Second

// held is the JobStatus of a job that is.
const held = 5

// manner is why a job has to go that is held or removed, which is in the queue: by it
// the job gets its HoldKillSig or RemoveKillSig. HTCondor's starter sends the second to
// both.
func (s *stay) manner(ctx context.Context) protocol.Manner {
	if _, own := s.ad.Lookup("HoldKillSig"); !own {
		return protocol.MannerRemove
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	status, err := s.Status(ctx, s.id)
	switch {
	case err != nil:
		s.Log.Warn("the schedd does not say whether the job is held or removed", "job", s.id.String(), "err", err)
	case status == held:
		return protocol.MannerHold
	}
	return protocol.MannerRemove
}

// leaving is how long a job may take to go that does not say it. HTCondor's starter
// waits for ever here, where no startd kills a job that stays.
const leaving = 10 * time.Minute

// deadline is how long the job may take to go: its KillSigTimeout.
func (s *stay) deadline() time.Duration {
	if n, ok := s.ad.EvalInt("KillSigTimeout", nil); ok && n >= 0 {
		return max(time.Duration(min(n, 1<<30))*time.Second, time.Millisecond)
	}
	return leaving
}

// hear takes what the activation reports.
func (s *stay) hear(r protocol.Report) {
	now := time.Now()
	switch r := r.(type) {
	case protocol.Running:
		s.event(now, eventlog.Execute{Host: s.Address})
		starts, _ := s.ad.EvalInt("NumJobStarts", nil)
		attrs := classad.NewAd()
		attrs.SetInt("NumJobStarts", starts+1)
		// By it the schedd knows how long the job's program runs (AllowedExecuteDuration).
		attrs.SetInt("JobCurrentStartExecutingDate", now.Unix())
		s.ad.Update(attrs)
		s.queue <- attrs
	case protocol.Held:
		if r.Hold.Code == int(reason.MissedDeferredTime) {
			break // no error of anybody
		}
		s.event(now, eventlog.RemoteError{Daemon: "starter", Host: s.Address, Text: r.Hold.Reason, ReasonCode: r.Hold.Code, ReasonSubcode: r.Hold.Subcode})
	}
}

func (s *stay) event(at time.Time, e eventlog.Event) {
	h := s.header
	h.Time = at
	if err := s.logs.write(h, e); err != nil {
		s.Log.Error("the job's event log was not written", "job", s.id.String(), "event", e.Code().String(), "err", err)
	}
}

// patience bounds one attempt to write into the queue.
const patience = 5 * time.Minute

// write writes into the queue what is known while the job runs.
func (s *stay) write(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for attrs := range s.queue {
		if err := s.update(ctx, attrs); err != nil {
			s.Log.Warn("the job's attributes in the queue were not written", "job", s.id.String(), "err", err)
		}
	}
}

func (s *stay) update(ctx context.Context, attrs *classad.Ad) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Update(ctx, s.user, s.id, attrs)
}

// conclude writes the last event, and what the schedd has to know before this process
// ends. It tries again for a while, as the schedd may be busy; the job would run again
// that is not known to have ended.
func (s *stay) conclude(ctx context.Context, rec protocol.ExitRecord, told bool) int {
	for _, p := range rec.Problems {
		s.Log.Warn("problem", "job", s.id.String(), "err", p)
	}
	out := Ended(s.ad, &s.system, &rec, told, time.Now())
	s.event(time.Now(), out.Event)
	if out.Attrs.Len() == 0 {
		return out.Status
	}
	tries, _ := s.Config.Config.Int("LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES")
	pause, _ := s.Config.Config.Duration("LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY")
	for n := int64(0); ; n++ {
		err := s.update(ctx, out.Attrs)
		if err == nil {
			return out.Status
		}
		s.Log.Error("the schedd did not take how the job ended", "job", s.id.String(), "attempt", n+1, "of", tries+1, "err", err)
		if n >= tries {
			return Failed
		}
		select {
		case <-time.After(pause):
		case <-s.Orphaned:
			return Failed
		case <-ctx.Done():
			return Failed
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Job is a job of a pool.
type Job struct {
	Config
	conv    *conversation
	reached *reached
	mover   *mover
	visits  visitors
	account account
	place   *job.Place  // nil before the job has one
	machine *classad.Ad // of the plan

	user         *host.Identity // as the shadow says; nil where it was not asked
	creds        *fetched
	chirp        *job.Chirp
	checkpointNo int // the next one; 0 before there was any
	ending       ending

	mu      sync.Mutex
	streams *streams // of the present run; nil without
	sent    bool     // its output was
	spooled []string // of what was sent
}

// ending is what is known of the job's end. It belongs to the work that is done
// beside the activation, one at a time.
type ending struct {
	missed  bool // the job's time to start had passed
	corrupt bool // the checkpoint that came back is not what was stored
	failed  bool // its output could not be sent, for good
	tries   int  // output transfers that failed and may be tried again
}

// mostTries is how often output is sent again after a failure that may pass.
const mostTries = 4

// New makes a job. Nothing is asked of its shadow before Learn.
func New(c Config) *Job {
	j := &Job{Config: c}
	v := &conversation{clock: c.Clock, log: c.Log}
	if v.clock == nil {
		v.clock = clock.System()
	}
	v.sessions = security.NewSessions(v.clock, 64)
	j.conv = v
	j.mover = &mover{cfg: &j.Config, conv: v}
	j.reached = newReached(&j.Config, v)
	j.visits.job = j
	v.client = j.reached.endpoint.Client(v.sessions)
	// Sessions are handed over by the shadow: nothing is ever negotiated.
	v.client.Configure(&security.Settings{
		Authorizer: &security.Authorizer{}, StepTimeout: 20 * time.Second, Deadline: 2 * time.Minute,
		MatchSessions: true, ResumeResponse: true,
	}, nil)
	return j
}

// Learn takes the conversation up and asks for the job.
func (j *Job) Learn(ctx context.Context) (job.Learned, error) {
	if err := j.conv.open(&j.Config); err != nil {
		return job.Learned{}, gone(err, reason.ShadowException)
	}
	got := job.Learned{Lost: j.conv.caller.Lost()}
	ad, err := j.ask(ctx)
	switch {
	case errors.Is(err, shadow.ErrLost):
		return got, gone(err, reason.ShadowException)
	case err != nil:
		return got, unfit(err, reason.StarterError)
	}
	j.mover.counters = map[direction]transferCounters{inward: inward.of(ad), outward: outward.of(ad)}
	if from, ok := ad.EvalString("ShadowIpAddr", nil); ok {
		j.visits.shadows.take(from)
	}
	j.reached.serve()
	got.Ad, got.User = ad, j.user
	return got, nil
}

// ask opens the command socket and asks for the job and whom it runs as.
func (j *Job) ask(ctx context.Context) (*classad.Ad, error) {
	var err error
	if j.machine, err = classad.ParseAd(j.Plan.MachineAd, classad.Old); err != nil {
		return nil, errs.E("starter.shadow", errs.Invalid, "machine ad", err)
	}
	if err := j.reached.open(ctx, &j.visits); err != nil {
		return nil, err
	}
	ad, err := j.conv.caller.JobInfo(ctx)
	if err != nil {
		return nil, err
	}
	j.conv.met = j.conv.clock.Now().Wall
	if j.Plan.AskUser != "" {
		if j.user, err = j.stranger(ctx, j.conv.caller); err != nil {
			return nil, err
		}
	}
	return ad, j.mover.updateFileServer(ad)
}

// Read says how the job runs here, away from its access point.
func (j *Job) Read(ad *classad.Ad, scratch, home string) (*job.Job, error) {
	files, err := movesFiles(ad, j.Plan.Settings.Pool.FileSystemDomain)
	if err != nil {
		return nil, err
	}
	if home != "" {
		ad.SetString("OSHomeDir", home)
	}
	ad.Delete("SpooledOutputFiles") // the output is what the job left, not what is in the spool
	of, err := job.Read(ad, "", scratch, files)
	if err == nil {
		of.Stream()
	}
	return of, err
}

// movesFiles decides whether files are moved: ShouldTransferFiles, where
// IF_NEEDED depends on whether both sides see the same file systems.
func movesFiles(ad *classad.Ad, domain string) (runner.Files, error) {
	const op = "starter.job"
	word, ok := ad.EvalString("ShouldTransferFiles", nil)
	if !ok {
		return 0, errs.E(op, errs.Invalid, "ShouldTransferFiles", errors.New("the job does not say whether its files are moved; want YES, NO or IF_NEEDED"))
	}
	files := runner.InPlace
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "YES", "ALWAYS":
		files = runner.Moved
	case "NO", "NEVER":
	case "IF_NEEDED":
		theirs, _ := ad.EvalString("FileSystemDomain", nil)
		if !strings.EqualFold(theirs, domain) || domain == "" {
			files = runner.Moved
		}
	default:
		return 0, errs.E(op, errs.Invalid, "ShouldTransferFiles", fmt.Errorf("%q is none of YES, NO and IF_NEEDED", word))
	}
	if files == runner.InPlace {
		return files, nil
	}
	switch when, _ := ad.EvalString("WhenToTransferOutput", nil); strings.ToUpper(when) {
	case "ON_EXIT", "ON_EXIT_OR_EVICT", "ON_SUCCESS":
		return files, nil
	default:
		return 0, errs.E(op, errs.Invalid, "WhenToTransferOutput", fmt.Errorf("%q is none of ON_EXIT, ON_EXIT_OR_EVICT and ON_SUCCESS", when))
	}
}

// Bring introduces the starter, brings the input and waits until the job may
// start.
func (j *Job) Bring(ctx context.Context, p *job.Place) (job.Brought, error) {
	j.place, j.mover.place = p, p
	if p.Job.Moves {
		j.Report(protocol.TransferInStart{})
	}
	moved, err := j.bring(ctx)
	if p.Job.Moves {
		j.Report(protocol.TransferInDone{Files: moved.files, Bytes: moved.bytes})
	}
	return job.Brought{Files: moved.files, Bytes: moved.bytes, Chirp: j.chirp.Config(), Creds: j.mover.creds, Piped: j.piped()}, notBrought(err)
}

func (j *Job) bring(ctx context.Context) (moved carried, err error) {
	of := j.place.Job
	if err := j.introduce(ctx); err != nil {
		return moved, err
	}
	if err := j.openCreds(ctx); err != nil {
		return moved, err
	}
	if of.Moves {
		if moved, err = j.receive(ctx); err != nil {
			return moved, err
		}
	}
	if err := j.verify(ctx); err != nil {
		return moved, err
	}
	if err := j.mover.manifestIn(); err != nil {
		return moved, err
	}
	chirps := j.Plan.Settings.Chirp
	j.chirp, err = j.place.OpenChirp(chirp.Config{
		Remote: j.conv.caller, Allow: chirp.AllowFrom(of.Ad, chirps), Settings: chirps, Log: j.Log, Acknowledge: j.Acknowledge,
	})
	if err != nil {
		return moved, err
	}
	missed, err := j.conv.awaitStart(ctx, of.Ad)
	if err != nil {
		return moved, err
	}
	if missed {
		j.ending.missed = true
		return moved, job.HeldFor(&protocol.Hold{Code: int(reason.MissedDeferredTime), Reason: "The job missed its time to start"})
	}
	kind := shadow.StreamOut
	if of.KeepsStd() {
		kind = shadow.StreamAppend
	}
	opened, err := j.openStreams(ctx, kind)
	j.stream(opened)
	return moved, err
}

// introduce makes the starter and the shadow known to each other.
func (j *Job) introduce(ctx context.Context) error {
	j.reached.await(ctx)
	info := starterInfo(j.Plan.Shadow, j.Plan.Settings.Pool, j.Plan.SlotFullName, j.reached.address(), j.place.Box.Scratch(), j.machine, j.place.Job.Ad)
	j.visits.introduced(info)
	full := info.Clone()
	full.SetValue("SlotAd", classad.AdValue(j.machine))
	if err := j.conv.caller.RegisterStarter(ctx, full); err != nil {
		return err
	}
	if err := j.share(ctx); err != nil {
		return err
	}
	return j.conv.caller.RegisterJob(ctx, provisioned(j.machine))
}

// share has the shadow share the session with which files are moved.
func (j *Job) share(ctx context.Context) error {
	session, err := j.conv.share(ctx)
	if err == nil && session != "" {
		j.mover.session(session)
	}
	return err
}

// receive brings the input, again if the shadow wants that after a failure.
func (j *Job) receive(ctx context.Context) (carried, error) {
	for n := 1; ; n++ {
		got, ready, err := j.mover.fetch(ctx)
		switch {
		case err == nil || !ready:
			return got, err
		case n < mostInput && j.conv.fetchAgain(ctx):
			continue
		}
		j.unready(ctx)
		return got, err
	}
}

// unready sends what there is of a job whose input did not come: the files for
// failures. They are worth nothing more than to be tried once.
func (j *Job) unready(ctx context.Context) {
	plan, err := j.mover.failedPlan()
	if err == nil {
		_, err = j.upload(ctx, plan, ofOutput)
	}
	if err != nil {
		j.conv.log.Info("the files for failures were not sent", "err", err)
	}
	ad := classad.NewAd()
	ad.SetBool("ExecuteDirWasEncrypted", false)
	j.conv.register(ad)
}

// upload sends files when all that was to be told or streamed before has reached
// the shadow.
func (j *Job) upload(ctx context.Context, plan transfer.SendPlan, which uploading) (transfer.Stats, error) {
	if err := j.conv.queue.settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if err := j.streaming().settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if !j.conv.caller.Connected() {
		return transfer.Stats{}, shadow.ErrLost
	}
	return j.mover.upload(ctx, plan, which)
}

// stream makes streams those of the run that is to begin.
func (j *Job) stream(next *streams) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.streams = next
}

// streaming are the streams of the present run; nil without.
func (j *Job) streaming() *streams {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.streams
}

// piped are the job's ends of the streams.
func (j *Job) piped() [3]*os.File {
	if st := j.streaming(); st != nil {
		return st.job
	}
	return [3]*os.File{}
}

// Starting writes the job's environment into its manifest.
func (j *Job) Starting(env []string) { j.mover.manifestEnv(env) }

// Executed tells that the job begins. HTCondor's starter says so before it tries, so
// that a program which the system refuses to execute counts as well; one that the
// machine had no means to start does not.
func (j *Job) Executed() {
	j.streaming().started()
	j.account.begin(j.conv.clock.Now().Wall)
	j.conv.begins()
}

// Changed tells how the job is now. While something else waits to be told a
// measurement is left out, a change of state never is.
func (j *Job) Changed(s job.State) {
	switch s.Moment {
	case job.ScriptFailed:
		// As HTCondor does with nothing else: a hold, which comes next, carries no such
		// attributes.
		ad := classad.NewAd()
		ad.SetInt("_condor_JOBINFO_MAXINTERVAL", int64(j.Plan.Settings.Update/time.Second))
		for _, script := range s.Scripts {
			ad.Update(script)
		}
		j.conv.register(ad)
	case job.Exited:
		j.conv.executionExited()
		j.conv.register(j.condition(s, words[s.Moment]).exit().ad())
	default:
		c := j.condition(s, words[s.Moment])
		c.delayed = j.chirp.Delayed()
		j.conv.register(c.ad())
	}
}

// condition is how the job is.
func (j *Job) condition(s job.State, word string) condition {
	set := j.Plan.Settings.Pool
	c := condition{
		State: s, word: word, interval: j.Plan.Settings.Update, address: j.reached.address(), metric: set.MemoryUsage,
		nested: j.conv.caller.AtLeast(25, 3, 0), window: set.Window,
	}
	j.account.measure(&c, j.conv.clock.Now().Wall)
	if p := j.place; p != nil && p.Job.Moves {
		c.moved = true
		c.stdout, c.stderr = p.Box.Written()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sent {
		c.isSpooled, c.spooled = true, strings.Join(j.spooled, ",")
	}
	return c
}

// Total is what all runs of the job used.
func (j *Job) Total(present host.Usage) host.Usage { return j.account.total(present) }

// Held has the shadow hold the job, at once.
func (j *Job) Held(h protocol.Hold) {
	j.conv.queue.add(func() { _ = j.conv.sayHold(context.Background(), h) })
}

// Lease is what is left of the job's lease.
func (j *Job) Lease() time.Duration {
	length := time.Duration(0)
	if j.place != nil {
		length = shadow.LeaseLength(j.place.Job.Ad)
	}
	return shadow.Lease{Length: length, Contact: j.conv.caller.Contact()}.Left(j.conv.clock.Now())
}

// Rejoined gets to know the shadow that took the job up again, before anything
// else is told.
func (j *Job) Rejoined() {
	j.conv.queue.add(func() {
		if err := j.share(context.Background()); err != nil {
			j.conv.log.Warn("the shadow that came back shares no session", "err", err)
		}
	})
	j.conv.queue.add(j.streaming().rejoined)
}

// Connected reports whether a shadow is there.
func (j *Job) Connected() bool { return j.conv.caller.Connected() }

// Send sends the output.
func (j *Job) Send(ctx context.Context, e job.Ending) (job.Sent, error) {
	if e.Wanted == job.Nothing {
		return job.Sent{}, nil
	}
	j.Report(protocol.TransferOutStart{})
	plan, err := j.mover.outputPlan(e)
	var got transfer.Stats
	if err == nil {
		got, err = j.upload(ctx, plan, ofOutput)
	}
	sent := job.Sent{Files: got.Files, Bytes: got.Total()}
	j.Report(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Bytes})
	var f *transfer.WireFailure
	switch {
	case err == nil:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.sent, j.spooled = true, slices.DeleteFunc(got.Spooled, func(name string) bool {
			return name == sandbox.StdoutFile || name == sandbox.StderrFile
		})
		return sent, nil
	case errors.Is(err, context.Canceled):
		return sent, err
	case errors.Is(err, shadow.ErrLost):
		return sent, job.ErrAway
	case errors.As(err, &f) && f.Retry && j.ending.tries < mostTries:
		j.ending.tries++
		j.conv.log.Warn("the output did not reach the shadow; it is sent again when the shadow asks for the job", "err", err)
		j.conv.caller.Break(err)
		return sent, job.ErrAway
	}
	j.ending.failed = true
	return sent, notSent(err)
}

// Tell tells how it went: that the job is to be held, or that it is over.
func (j *Job) Tell(ctx context.Context, e job.End) error {
	if j.conv.caller == nil {
		return nil
	}
	hold, word := e.Hold, ""
	if e.Ran {
		word = words[job.Exited]
	}
	how := j.condition(e.State, word)
	how.delayed = j.chirp.Delayed()
	if j.ending.failed {
		how = how.exit()
	}
	ad := how.ad()
	if j.ending.missed {
		hold = nil
	}
	if v := e.Evicted; hold == nil && v != nil && v.Asked == job.AskedByStarter && !e.Ran {
		// It could not be set up here. A shadow that is told of an exit before of
		// a beginning takes it for both: event 001, and one more of NumJobStarts.
		hold = &protocol.Hold{Code: v.Code, Subcode: v.Subcode, Reason: v.Reason}
		if j.ending.corrupt {
			hold.Code = 0 // HTCondor sends none, which the shadow takes for StarterError
		}
	}
	urgent := e.Evicted != nil && e.Evicted.Hard
	if urgent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.Farewell())
		defer cancel()
	}
	// Also a call that cannot be sent, since nobody reads it, ends then.
	defer context.AfterFunc(ctx, func() { j.conv.caller.Break(context.Cause(ctx)) })()
	err := j.conv.queue.settled(ctx)
	if err == nil && e.Ran && !urgent {
		err = j.streaming().settled(ctx)
	}
	switch {
	case err != nil:
	case hold != nil:
		err = j.tellHold(ctx, e, *hold, ad)
	default:
		err = j.conv.caller.JobExit(ctx, waitStatus(e.Status), exitReason(e.Status, e.Ran, e.Evicted, j.ending.missed), ad)
	}
	if errors.Is(err, shadow.ErrLost) {
		return job.ErrAway
	}
	return err
}

// tellHold tells that the job is to be held.
func (j *Job) tellHold(ctx context.Context, e job.End, hold protocol.Hold, ad *classad.Ad) error {
	if !e.Ran {
		j.mover.inputOver(ctx) // else what the job received is missing in the event log
	}
	if j.ending.failed && e.Ran {
		if err := j.conv.caller.JobTermination(ctx, ad); err != nil {
			return err
		}
	}
	return j.conv.sayHold(ctx, hold)
}

// Close ends the conversation, when all is told or ctx ends, and what was opened for
// the job.
func (j *Job) Close(ctx context.Context) {
	j.mover.input.cut()
	j.conv.close(ctx)
	// Those who wait for the shadow see that it is gone.
	j.creds.close()
	j.streaming().close()
	j.chirp.Close()
	j.reached.close()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/runner"
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
	checkpointNo int  // the next one; 0 before there was any
	met          bool // the starter is introduced to the shadow
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

// New makes a job. Nothing is asked of its shadow before Learn.
func New(c Config) *Job {
	j := &Job{Config: c}
	v := &conversation{clock: c.Clock, log: c.Log, begun: make(chan struct{})}
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

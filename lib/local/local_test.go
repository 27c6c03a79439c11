// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

const slotText = `Name = "slot1@node1"
MachineResources = "Cpus Memory Disk Swap"
Cpus = 2
Memory = 2048
Disk = 1000000
State = "Unclaimed"
KeyboardIdle = 34
Start = Owner != "mallory" && KeyboardIdle >= 0
WithinResourceLimits = TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory
Requirements = Start && WithinResourceLimits
Rank = 0.0
`

const jobText = `ClusterId = 7
Owner = "alice"
JobUniverse = 5
Cmd = "/bin/true"
Iwd = "/home/alice"
Out = "out"
UserLog = "/home/alice/job.log"
RequestCpus = 1
RequestMemory = 64
RequestDisk = 1024
JobLeaseDuration = 2400
Requirements = TARGET.Memory >= RequestMemory
`

func parse(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func jobs(t testing.TB, n int, extra ...string) []*classad.Ad {
	t.Helper()
	ads := make([]*classad.Ad, n)
	for i := range ads {
		more := ""
		if i < len(extra) {
			more = extra[i]
		}
		ads[i] = parse(t, fmt.Sprintf("%sProcId = %d\n%s", jobText, i, more))
	}
	return ads
}

// stage plays the engine, by hand.
type stage struct {
	t       *testing.T
	ap      *AP
	clock   *clock.Fake
	events  []string // "7.0 SUBMIT" …
	log     []eventlog.Event
	changes []string
	errs    []error
	offers  []Offer
}

func newStage(t *testing.T, ads []*classad.Ad) *stage {
	t.Helper()
	s := &stage{t: t, clock: clock.NewFake(time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC))}
	ap, err := New(Config{
		Jobs: ads, User: "alice@node1", Host: "node1", Address: "<127.0.0.1:0>",
		Log: func(path string, h eventlog.Header, ev eventlog.Event) error {
			if path != "/home/alice/job.log" {
				return fmt.Errorf("log %s", path)
			}
			s.events = append(s.events, fmt.Sprintf("%d.%d %v", h.Cluster, h.Proc, ev.Code()))
			s.log = append(s.log, ev)
			return nil
		},
		Env:     func(now clock.Instant) *classad.Env { return &classad.Env{Now: now.Wall} },
		Changed: func(c Change) { s.changes = append(s.changes, fmt.Sprintf("%v %s", c.Job, c.What)) },
		Problem: func(err error) { s.errs = append(s.errs, err) },
	}, func(attr string) bool { return strings.EqualFold(attr, "Owner") })
	if err != nil {
		t.Fatal(err)
	}
	s.ap = ap
	s.offers = []Offer{{Slot: slot.ID{N: 1}, Ad: parse(t, slotText)}}
	ap.Submit(s.clock.Now())
	return s
}

// claim expects a claim request, grants it as slot1_<sub> and returns the
// activation request that follows.
func (s *stage) claim(sub int) (claim.ID, ep.ActivateRequested) {
	s.t.Helper()
	ev, ok := s.ap.Negotiate(s.clock.Now(), s.offers)
	if !ok {
		s.t.Fatal("no claim is asked for")
	}
	req := ev.(ep.ClaimRequested)
	id := claim.NewID("<127.0.0.1:0>", 1, int64(sub), "secret")
	name := fmt.Sprintf("slot1_%d@node1", sub)
	ad := parse(s.t, strings.Replace(slotText, "slot1@node1", name, 1))
	out := s.ap.Reply(s.clock.Now(), ep.Reply{Ref: req.Ref, Granted: &ep.Grant{Claim: id, Slot: slot.ID{N: 1, Sub: sub}, Name: name, Ad: ad}})
	if len(out) != 1 {
		s.t.Fatalf("a granted claim must be activated, got %v", out)
	}
	return id, out[0].(ep.ActivateRequested)
}

func (s *stage) activate(req ep.ActivateRequested, n int64) claim.ActivationID {
	s.t.Helper()
	act := claim.NewActivationID("slot1_1", n)
	if out := s.ap.Reply(s.clock.Now(), ep.Reply{Ref: req.Ref, Activation: act}); len(out) != 0 {
		s.t.Fatalf("unexpected %v", out)
	}
	s.report(act, protocol.Sandbox{Dir: "/execute/dir_9/scratch"})
	s.report(act, protocol.TransferInStart{})
	s.report(act, protocol.TransferInDone{Bytes: 10})
	s.report(act, protocol.Running{})
	return act
}

func (s *stage) report(act claim.ActivationID, r protocol.Report) {
	s.ap.Report(s.clock.Now(), act, protocol.Told{At: s.clock.Now().Wall, What: r})
}

func (s *stage) end(act claim.ActivationID, rec protocol.ExitRecord) []ep.Event {
	s.clock.Advance(2 * time.Second)
	rec.Ended = s.clock.Now().Wall
	s.report(act, protocol.Ended{Record: rec})
	return s.ap.StarterExited(s.clock.Now(), act, "")
}

func exited(code int) protocol.ExitRecord {
	return protocol.ExitRecord{Status: host.ExitStatus{Exited: true, Code: code}, Usage: host.Usage{UserCPU: 1500 * time.Millisecond, ImageSizeKiB: 5000, PeakRSSKiB: 3000}}
}

// row: S0-007
func TestClaimIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 2))
	id, req := s.claim(1)
	if v, _ := req.Job.EvalInt("ProcId", nil); v != 0 {
		t.Errorf("the first job must go first, got 7.%d", v)
	}
	out := s.end(s.activate(req, 1), exited(0))
	if len(out) != 1 {
		t.Fatalf("got %v", out)
	}
	again, ok := out[0].(ep.ActivateRequested)
	if !ok || again.Claim != id {
		t.Fatalf("the same claim must be activated again, got %#v", out[0])
	}
	out = s.end(s.activate(again, 2), exited(3))
	if len(out) != 1 {
		t.Fatalf("got %v", out)
	}
	if rel, ok := out[0].(ep.ReleaseRequested); !ok || rel.Claim != id {
		t.Fatalf("with no job left the claim must be given back, got %#v", out[0])
	}
	if s.ap.Finished() {
		t.Error("a claim is still held")
	}
	s.ap.ClaimEnded(s.clock.Now(), ep.ClaimEnded{Claim: id, ByClient: true})
	if !s.ap.Finished() {
		t.Error("all is done")
	}
	if d := cmp.Diff(Counts{Total: 2, Done: 2, Failed: 1}, s.ap.Counts()); d != "" {
		t.Error(d)
	}
	want := []string{
		"7.0 SUBMIT", "7.1 SUBMIT",
		"7.0 FILE_TRANSFER", "7.0 FILE_TRANSFER", "7.0 EXECUTE", "7.0 JOB_TERMINATED",
		"7.1 FILE_TRANSFER", "7.1 FILE_TRANSFER", "7.1 EXECUTE", "7.1 JOB_TERMINATED",
	}
	if d := cmp.Diff(want, s.events); d != "" {
		t.Error(d)
	}
	term := s.log[5].(eventlog.Terminated)
	if term.Remote.User != 1500*time.Millisecond || term.Received != 10 {
		t.Errorf("usage is lost: %+v", term)
	}
	if got := len(term.Resources); got != 5 { // Cpus Memory Disk TimeExecute TimeSlotBusy
		t.Errorf("resource table has %d rows: %+v", got, term.Resources)
	}
	if len(s.errs) > 0 {
		t.Error(s.errs)
	}
}

func TestEvictedJobRunsAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 1))
	id, req := s.claim(1)
	act := s.activate(req, 1)
	s.report(act, protocol.Suspended{Count: 3})
	if c := s.ap.Counts(); c.Suspended != 1 || c.Running != 0 {
		t.Errorf("%+v", c)
	}
	s.clock.Advance(7 * time.Second)
	s.ap.ClaimEnded(s.clock.Now(), ep.ClaimEnded{Claim: id, Code: 1011, Reason: "PREEMPT expression evaluated to True"})
	if c := s.ap.Counts(); c.Idle != 1 || c.Total != 1 {
		t.Errorf("%+v", c)
	}
	if out := s.ap.StarterExited(s.clock.Now(), act, ""); len(out) != 0 {
		t.Errorf("the claim is gone, nothing can be asked of it: %v", out)
	}
	want := []string{"7.0 SUBMIT", "7.0 FILE_TRANSFER", "7.0 FILE_TRANSFER", "7.0 EXECUTE", "7.0 JOB_SUSPENDED", "7.0 JOB_UNSUSPENDED", "7.0 JOB_EVICTED"}
	if d := cmp.Diff(want, s.events); d != "" {
		t.Error(d)
	}
	if ev := s.log[6].(eventlog.Evicted); ev.ReasonCode != 1011 || ev.Reason != "PREEMPT expression evaluated to True" {
		t.Errorf("%+v", ev)
	}
	_, req = s.claim(2)
	if n, _ := req.Job.EvalInt("CumulativeSuspensionTime", nil); n != 7 {
		t.Errorf("CumulativeSuspensionTime = %d", n)
	}
}

// TestJobSetsAttributes has a job change its own ad: the queue goes by the new
// one from then on, and takes no other job for one that the same slots accept.
func TestJobSetsAttributes(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 2))
	id, req := s.claim(1)
	act := s.activate(req, 1)
	s.report(act, protocol.Attributes{Ad: "Requirements = false\nJobPrio = 5\nPeriodicRemove = JobStatus == 1"})
	s.report(act, protocol.Attributes{Ad: "ChirpStep = 3", Delayed: true})
	s.report(act, protocol.Attributes{Ad: "no ad"})
	s.report(act, protocol.Event{Text: "a line"})
	if len(s.errs) != 1 {
		t.Errorf("what is no ad was taken: %v", s.errs)
	}
	s.errs = nil
	if ad, ok := s.ap.Ad(ID{7, 0}); !ok || ad.Eval("ChirpStep", nil).String() != "3" {
		t.Errorf("the ad is %v", ad)
	}
	want := []string{"7.0 SUBMIT", "7.1 SUBMIT", "7.0 FILE_TRANSFER", "7.0 FILE_TRANSFER", "7.0 EXECUTE",
		"7.0 ATTRIBUTE_UPDATE", "7.0 ATTRIBUTE_UPDATE", "7.0 ATTRIBUTE_UPDATE", "7.0 GENERIC"}
	if d := cmp.Diff(want, s.events); d != "" {
		t.Error(d)
	}
	s.ap.ClaimEnded(s.clock.Now(), ep.ClaimEnded{Claim: id, Code: 1011, Reason: "PREEMPT"})
	s.ap.StarterExited(s.clock.Now(), act, "")
	_, req = s.claim(2) // of the first job, were its ad as it was
	if n, _ := req.Job.EvalInt("ProcId", nil); n != 1 {
		t.Errorf("the job 7.%d starts, want 7.1", n)
	}
	s.clock.Advance(2 * time.Second)
	s.ap.Look(s.clock.Now())
	if j, ok := s.ap.Job(ID{7, 0}); !ok || j.Status != Removed {
		t.Errorf("the job's own PeriodicRemove was not asked: %+v", j)
	}
}

func TestHeldJobLetsOthersRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 2))
	_, req := s.claim(1)
	act := claim.NewActivationID("slot1_1", 1)
	s.ap.Reply(s.clock.Now(), ep.Reply{Ref: req.Ref, Activation: act})
	hold := &protocol.Hold{Code: 6, Subcode: 2, Reason: "Error from slot1_1@node1: Failed to execute '/no/such': (errno=2: 'No such file or directory')"}
	s.report(act, protocol.Held{Hold: *hold})
	out := s.end(act, protocol.ExitRecord{Held: hold})
	if len(out) != 1 {
		t.Fatalf("got %v", out)
	}
	if next, ok := out[0].(ep.ActivateRequested); !ok {
		t.Errorf("the other job must run, got %#v", out[0])
	} else if v, _ := next.Job.EvalInt("ProcId", nil); v != 1 {
		t.Errorf("job 7.%d was started", v)
	}
	if d := cmp.Diff([]string{"7.0 SUBMIT", "7.1 SUBMIT", "7.0 REMOTE_ERROR", "7.0 JOB_HELD"}, s.events); d != "" {
		t.Error(d)
	}
	if ev := s.log[2].(eventlog.RemoteError); ev.Text != "Failed to execute '/no/such': (errno=2: 'No such file or directory')" || ev.ReasonCode != 6 || ev.ReasonSubcode != 2 {
		t.Errorf("%+v", ev)
	}
	if ev := s.log[3].(eventlog.Held); ev.Reason != hold.Reason || ev.ReasonCode != 6 || ev.ReasonSubcode != 2 {
		t.Errorf("%+v", ev)
	}
}

// A job that is to be removed may be held by its starter before it has left its slot,
// as when its output cannot be sent. Its policy is asked again then, and again.
func TestHeldWhileItIsToLeave(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"PeriodicRemove = NumJobStarts > 0":                                          "7.0 started, 7.0 held, 7.0 removed",
		"PeriodicRemove = JobStatus == 2\nPeriodicRelease = HoldReasonCode =?= 12\n": "7.0 started, 7.0 held, 7.0 released",
	} {
		s := newStage(t, jobs(t, 1, policy))
		id, req := s.claim(1)
		act := s.activate(req, 1)
		s.clock.Advance(2 * time.Second)
		if out := s.ap.Look(s.clock.Now()); len(out) != 1 {
			t.Fatalf("%s: %v, want the order to leave", policy, out)
		}
		s.end(act, protocol.ExitRecord{Evicted: true, Held: &protocol.Hold{Code: 12, Reason: "no room for the output"}})
		s.ap.ClaimEnded(s.clock.Now(), ep.ClaimEnded{Claim: id})
		s.clock.Advance(2 * time.Second)
		s.ap.Look(s.clock.Now())
		if got := strings.Join(s.changes, ", "); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

func TestOnExitPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, attrs string
		code        int
		status      Status
		last        eventlog.Code
	}{
		{"hold", "OnExitHold = ExitCode == 5\nOnExitHoldReason = \"five\"\n", 5, Held, eventlog.CodeHeld},
		{"hold not true", "OnExitHold = ExitCode == 5\n", 4, Completed, eventlog.CodeTerminated},
		{"keep", "OnExitRemove = ExitCode == 0\n", 5, Idle, eventlog.CodeEvicted},
		{"undefined keeps nothing", "OnExitRemove = NoSuchThing\n", 5, Completed, eventlog.CodeTerminated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, jobs(t, 1, tt.attrs))
			_, req := s.claim(1)
			s.end(s.activate(req, 1), exited(tt.code))
			st, _ := s.ap.Job(ID{7, 0})
			if tt.status == Idle {
				// It is at once asked for again, under the claim it had.
				if len(s.ap.asked) != 1 {
					t.Errorf("the job is not tried again: %+v", st)
				}
			} else if st.Status != tt.status {
				t.Errorf("status %v, want %v", st.Status, tt.status)
			}
			if got := s.log[len(s.log)-1].Code(); got != tt.last {
				t.Errorf("last event %v, want %v", got, tt.last)
			}
		})
	}
}

// A job whose starter crashes is tried again, each time later.
func TestStarterThatCrashes(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 1))
	for n, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		_, req := s.claim(n + 1)
		act := s.activate(req, int64(n+1))
		out := s.ap.StarterExited(s.clock.Now(), act, "the starter died on signal 9")
		if len(out) != 1 {
			t.Fatalf("got %v", out)
		}
		if _, ok := out[0].(ep.ReleaseRequested); !ok {
			t.Errorf("the claim must be given back, got %#v", out[0])
		}
		s.ap.ClaimEnded(s.clock.Now(), ep.ClaimEnded{Claim: req.Claim, ByClient: true})
		if ev := s.log[len(s.log)-1].(eventlog.Evicted); ev.ReasonCode != 1007 || ev.Reason != "the starter died on signal 9" {
			t.Errorf("%+v", ev)
		}
		s.clock.Advance(wait - time.Millisecond)
		if _, ok := s.ap.Negotiate(s.clock.Now(), s.offers); ok {
			t.Fatalf("try %d comes before %v", n+2, wait)
		}
		if st, _ := s.ap.Job(ID{7, 0}); !strings.Contains(st.Waiting, "tried again later: the starter died") {
			t.Errorf("Waiting = %q", st.Waiting)
		}
		s.clock.Advance(time.Millisecond)
	}
	if got := backoff(60); got != lastRetry {
		t.Errorf("after many crashes %v", got)
	}
	_, req := s.claim(9)
	s.end(s.activate(req, 9), exited(0))
	if c := s.ap.Counts(); c.Done != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 1))
	ev, _ := s.ap.Negotiate(s.clock.Now(), s.offers)
	s.ap.Reply(s.clock.Now(), ep.Reply{Ref: ev.(ep.ClaimRequested).Ref, Err: errs.E("slot.Carve", errs.Exhausted, "slot1", errors.New("no cpus"))})
	if c := s.ap.Counts(); c.Idle != 1 || !s.ap.Quiet() {
		t.Errorf("a refused job is idle again: %+v", c)
	}
	if st, _ := s.ap.Job(ID{7, 0}); !strings.Contains(st.Waiting, "no cpus") {
		t.Errorf("Waiting = %q", st.Waiting)
	}
	if _, ok := s.ap.Negotiate(s.clock.Now(), s.offers); ok {
		t.Error("what was refused must not be asked for again in the same instant")
	}
	s.clock.Advance(firstRetry)
	id, req := s.claim(1)
	for _, by := range []ep.Asker{ep.Nobody, ep.Peer, ep.ControlSocket, ep.Reload} {
		if out := s.ap.Reply(s.clock.Now(), ep.Reply{Ref: ep.Ref{By: by, N: req.Ref.N}, Err: errs.E("ep.Activate", errs.Denied, "", errors.New("START is FALSE"))}); out != nil {
			t.Errorf("the answer to a request of %v, which has the same number, gives %v", by, out)
		}
	}
	out := s.ap.Reply(s.clock.Now(), ep.Reply{Ref: req.Ref, Err: errs.E("ep.Activate", errs.Denied, "", errors.New("START is FALSE"))})
	if rel, ok := out[0].(ep.ReleaseRequested); !ok || rel.Claim != id {
		t.Errorf("a claim that cannot be used must be given back: %#v", out)
	}
	if out := s.ap.Reply(s.clock.Now(), ep.Reply{Ref: ep.Ref{By: ep.OwnQueue, N: 4711}}); out != nil {
		t.Errorf("an answer nobody asked for must change nothing: %v", out)
	}
}

func TestPriorityAndStop(t *testing.T) {
	t.Parallel()
	s := newStage(t, jobs(t, 3, "", "JobPrio = 5\n", "JobPrio = -1\n"))
	_, req := s.claim(1)
	if v, _ := req.Job.EvalInt("ProcId", nil); v != 1 {
		t.Errorf("the job with the highest priority must go first, got 7.%d", v)
	}
	act := s.activate(req, 1)
	s.ap.Stop()
	if _, ok := s.ap.Negotiate(s.clock.Now(), s.offers); ok {
		t.Error("nothing new may start after Stop")
	}
	out := s.end(act, exited(0))
	if _, ok := out[0].(ep.ReleaseRequested); !ok {
		t.Errorf("got %#v", out)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	fits := func(job *classad.Ad) error {
		if m, _ := job.EvalInt("RequestMemory", nil); m > 2048 {
			return fmt.Errorf("RequestMemory %d > 2048 of the largest slot", m)
		}
		return nil
	}
	for _, tt := range []struct {
		name, attrs, start string
		want               string // "" for a job that may run some day
	}{
		{"fits", "", "", ""},
		{"too big", "RequestMemory = 9000000\n", "", "RequestMemory 9000000 > 2048 of the largest slot"},
		{"job wants another system", "Requirements = TARGET.OpSys == \"WINDOWS\"\n", "", "the job's Requirements are never true for slot1@node1"},
		{"owner is not welcome", "Owner = \"mallory\"\n", "", "START of slot1@node1 never accepts this job"},
		{"START is false", "", "Start = false\n", "START = false"},
		{"keyboard is busy just now", "", "Start = KeyboardIdle > 900\n", ""},
		{"not before noon", "", "Start = time() > 2000000000\n", ""},
		{"clock by way of another attribute", "", "Start = Later\nLater = ClockMin > 1439\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, jobs(t, 2, tt.attrs))
			for name, e := range parse(t, tt.start).All() {
				s.offers[0].Ad.Set(name, e)
			}
			got := s.ap.Judge(s.clock.Now(), s.offers, fits)
			if tt.want == "" {
				if len(got) != 0 {
					t.Fatalf("judged: %v", got)
				}
				return
			}
			if len(got) == 0 || got[0].Job != (ID{7, 0}) || !strings.Contains(got[0].Why, tt.want) {
				t.Fatalf("got %v, want %q", got, tt.want)
			}
			if c := s.ap.Counts(); c.Impossible != len(got) || c.Total != 2 {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	const elsewhere = "UserLog = \"/elsewhere\"\n"
	s := newStage(t, jobs(t, 2, elsewhere, elsewhere))
	_, req := s.claim(1)
	if req.Job == nil {
		t.Fatal("the job goes on without its log")
	}
	s.end(s.activate(req, 1), exited(0))
	// Two jobs with several events each: one line.
	if len(s.errs) != 1 || s.errs[0].Error() != "job 7.0: the event log lacks what happens: log /elsewhere" {
		t.Errorf("got %q", s.errs)
	}
}

func BenchmarkNegotiate(b *testing.B) {
	ap, err := New(Config{Jobs: jobs(b, 500), User: "alice@node1"}, func(string) bool { return false })
	if err != nil {
		b.Fatal(err)
	}
	full := []Offer{{Slot: slot.ID{N: 1}, Ad: parse(b, strings.Replace(slotText, "Cpus = 2", "Cpus = 0", 1))}}
	now := clock.NewFake(time.Unix(1_800_000_000, 0)).Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ap.Negotiate(now, full); ok {
			b.Fatal("a full slot accepts nothing")
		}
	}
}

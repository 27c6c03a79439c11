// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep/eptest"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// elsewhere are the groups of recorded runs that this world does not play:
// drains, hooks, slots that fetch work, programs that come and go. lib/simulate
// plays them.
var elsewhere = []string{
	"backfill", "drain2", "drain3", "env", "exec", "fetch", "fetch2", "fetch3", "history", "hold", "jobhook", "jobhook2", "match", "match2",
	"pslotpre", "slotattrs", "update", "userprio",
}

// goldens are the recorded runs that are played here.
func goldens(t testing.TB) []eptest.Run {
	t.Helper()
	return slices.DeleteFunc(eptest.Runs(t), func(r eptest.Run) bool { return slices.Contains(elsewhere, r.Group) })
}

// poolBase is what every recorded pool had besides its case's own lines.
const poolBase = "POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\nRunBenchmarks = False\n"

// pool plays the access point and the matchmaker of a recorded run.
type pool struct {
	*stage
	g       eptest.Run
	jobs    map[string]string // submit texts by name
	queue   []*queued
	granted map[string]*holding // by public claim id
	asked   map[uint64]*queued
	cluster int
	silent  bool                      // the access point is stopped
	left    map[slot.ID]time.Duration // retirement as the matchmaker last heard of it
}

// queued is one job in the queue.
type queued struct {
	cluster, proc int
	ad            *classad.Ad
	keepIdle      time.Duration
	state         string // idle, asked, running, done
	ref           uint64 // of the request that waits
	holding       *holding
	removed       bool
}

// holding is a claim of the access point.
type holding struct {
	id      claim.ID
	slot    slot.ID
	job     *queued
	act     claim.ActivationID
	closing bool
	gone    bool
}

// others are things that the access point did in a recorded run without being
// asked by an action: its own policies, and giving back what could not start.
var others = map[string][]struct {
	at float64
	do string
}{
	"policy-exit-15":  {{10.2, "run condor_hold 1"}},
	"policy-exit-17":  {{5, "run condor_hold 1"}},
	"policy-exec-02":  {{11.1, "release"}},
	"policy-exec2-02": {{11.1, "release"}},
}

// submission turns a submit text into job ads.
func (p *pool) submission(name string) {
	text, ok := p.jobs[name]
	if !ok {
		p.t.Fatalf("no submit text %q", name)
	}
	p.cluster++
	sub := map[string]string{}
	count := 1
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "queue"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil {
				count = n
			}
			continue
		}
		if k, v, ok := strings.Cut(line, "="); ok {
			sub[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	var more strings.Builder
	for key, attr := range map[string]string{
		"job_max_vacate_time": "JobMaxVacateTime", "max_job_retirement_time": "MaxJobRetirementTime",
		"job_lease_duration": "JobLeaseDuration", "request_cpus": "RequestCpus", "request_memory": "RequestMemory", "request_disk": "RequestDisk",
	} {
		if v := sub[key]; v != "" {
			fmt.Fprintf(&more, "%s = %s\n", attr, v)
		}
	}
	for k, v := range sub {
		if name, ok := strings.CutPrefix(k, "+"); ok {
			fmt.Fprintf(&more, "%s = %s\n", name, v)
		}
	}
	keep, _ := strconv.Atoi(sub["keep_claim_idle"])
	for n := range count {
		ad := job(p.t, behaviour(sub), more.String())
		ad.SetInt("ClusterId", int64(p.cluster))
		ad.SetInt("ProcId", int64(n))
		p.queue = append(p.queue, &queued{cluster: p.cluster, proc: n, ad: ad, state: "idle", keepIdle: time.Duration(keep) * time.Second})
	}
}

// behaviour is how the recorded programs behave: they begin a second after
// the activation, and a hard kill takes the starter a second.
func behaviour(sub map[string]string) script {
	sc := script{begins: time.Second, onHard: 200 * time.Millisecond, onKill: 2 * time.Second, reap: 100 * time.Millisecond, runs: time.Hour}
	args := strings.Fields(sub["arguments"])
	seconds := func(i int) time.Duration {
		if i < len(args) {
			n, _ := strconv.Atoi(strings.Trim(args[i], `"'`))
			return time.Duration(n) * time.Second
		}
		return 0
	}
	exe := sub["executable"]
	switch {
	case strings.HasSuffix(exe, "/sleep"):
		sc.runs, sc.wall = seconds(0), true
	case strings.Contains(sub["arguments"], "ignore.sh"):
		sc.runs, sc.onSoft, sc.onHard = seconds(1), -1, time.Second
	case strings.Contains(sub["arguments"], "clean.sh"):
		// A shell that is cleaning up is not hurried by a fast shutdown.
		sc.runs, sc.onSoft, sc.onHard = seconds(1), seconds(2), time.Second
	case strings.Contains(sub["arguments"], "usr1.sh"):
		sc.runs = seconds(1)
	case strings.Contains(sub["arguments"], "k9.sh"), strings.Contains(sub["arguments"], "exit 3"), strings.HasSuffix(exe, "/cat"):
		sc.runs = 0
	case strings.Contains(exe, "/no/such"), strings.Contains(exe, "/nox"), strings.Contains(exe, "badint"), strings.Contains(exe, "noformat"):
		// The job goes on hold at once, but the recorded access point keeps the
		// slot for longer than these runs were watched.
		sc.begins, sc.onHard, sc.onKill = time.Hour, -1, 100*time.Millisecond
	}
	if strings.Contains(exe, "gone.sh") || strings.Contains(sub["transfer_input_files"], "in1.txt") {
		sc.begins, sc.fails = 0, true // its input cannot be had
	}
	if strings.Contains(sub["input"], "/no/such") {
		sc.begins = time.Hour
	}
	return sc
}

func newPool(t *testing.T, g eptest.Run) *pool {
	cpus := 2
	g.Knobs = maps.Clone(g.Knobs)
	p := &pool{g: g, jobs: map[string]string{}, granted: map[string]*holding{}, asked: map[uint64]*queued{}, left: map[slot.ID]time.Duration{}}
	p.stage = newStage(t, cpus, poolBase+g.Config)
	name := "a"
	sections := strings.Split(g.Job, "\n--- ")
	for i, text := range sections {
		if len(sections) > 1 || strings.HasPrefix(text, "a:\n") {
			head, rest, ok := strings.Cut(text, ":\n")
			if ok {
				name, text = strings.TrimSpace(head), rest
			}
		}
		if i == 0 && len(sections) == 1 {
			name = "a"
		}
		p.jobs[name] = text
	}
	p.onReply = p.replied
	p.onEnded = p.claimEnded
	p.onGone = p.starterLeft
	return p
}

// negotiate matches idle jobs with slots: one new dynamic slot a cycle, as the
// recorded pools had it, every static slot at once.
func (p *pool) negotiate() {
	if p.silent || p.complete {
		return
	}
	taken := map[slot.ID]bool{}
	for _, q := range p.queue {
		if q.state != "idle" {
			continue
		}
		if h := p.spare(); h != nil {
			q.state = "asked"
			p.start(h, q)
			continue
		}
		for v := range p.eng.Views() {
			if taken[v.ID] || !p.wants(&v, q) {
				continue
			}
			taken[v.ID] = true
			p.ref++
			q.state, q.ref = "asked", p.ref
			p.asked[p.ref] = q
			p.step(ClaimRequested{Ref: asked(p.ref), Slot: v.ID, Job: q.ad.Clone(), Client: claim.Client{User: "alice@example"}, Lease: 40 * time.Minute})
			break
		}
	}
}

// spare returns a claim that is kept for a next job.
func (p *pool) spare() *holding {
	for _, h := range p.granted {
		if h.job == nil && h.act != "" && !h.closing && p.pair(h.slot) == policy.ClaimedIdle {
			return h
		}
	}
	return nil
}

// wants says whether the matchmaker sends the job to the slot.
func (p *pool) wants(v *SlotView, q *queued) bool {
	if v.Claimable() {
		return true
	}
	if v.Kind == slot.Partitionable {
		return false
	}
	if v.Pair.State != policy.Claimed || v.Activation == "" || !strings.Contains(p.g.Config, "TARGET.Prio") {
		return false
	}
	mine, _ := q.ad.EvalInt("Prio", nil)
	its, _ := v.Job.EvalInt("Prio", nil)
	if mine <= its {
		return false
	}
	if strings.Contains(p.g.Config, "NEGOTIATOR_CONSIDER_EARLY_PREEMPTION = true") {
		return true
	}
	left, known := p.left[v.ID]
	return known && left <= 0
}

// hear is the update that the matchmaker gets now and then.
func (p *pool) hear() {
	clear(p.left)
	for v := range p.eng.Views() {
		if v.Activation != "" {
			p.left[v.ID], _ = p.eng.RetirementLeft(v.ID)
		}
	}
}

func (p *pool) replied(r Reply) {
	q, ok := p.asked[r.Ref.N]
	if !ok {
		return
	}
	delete(p.asked, r.Ref.N)
	switch {
	case r.Err != nil && q.holding != nil: // an activation was refused
		h := q.holding
		q.state, q.holding, h.job = "idle", nil, nil
		p.after(0, func() { p.release(h) })
	case r.Err != nil:
		q.state = "idle"
	case r.Granted != nil:
		h := &holding{id: r.Granted.Claim, slot: r.Granted.Slot}
		p.granted[h.id.Public] = h
		p.after(0, func() { p.start(h, q) })
	case r.Activation != "":
		q.state = "running"
		q.holding.act = r.Activation
	}
}

func (p *pool) start(h *holding, q *queued) {
	if h.gone {
		return
	}
	if q.removed {
		p.release(h)
		return
	}
	p.ref++
	q.holding, h.job = h, q
	p.asked[p.ref] = q
	p.step(ActivateRequested{Ref: asked(p.ref), Claim: h.id, Job: q.ad.Clone()})
}

func (p *pool) release(h *holding) {
	if !h.gone && !h.closing && !p.complete {
		p.step(ReleaseRequested{Claim: h.id})
	}
}

func (p *pool) claimEnded(e ClaimEnded) {
	if h := p.granted[e.Claim.Public]; h != nil {
		h.gone = true
		delete(p.granted, e.Claim.Public)
	}
}

// starterLeft lets a job that was not done go back to the queue, and the claim
// to the next job or back to the machine.
func (p *pool) starterLeft(a *actor) {
	h := p.granted[a.start.Claim.Public]
	var q *queued
	if h != nil {
		q = h.job
		h.job = nil
	}
	for _, other := range p.queue {
		if other.holding != nil && other.holding.act == a.id {
			q = other
		}
	}
	if q == nil {
		return
	}
	q.holding = nil
	finished := a.done && !a.fails && !q.removed
	switch {
	case finished, q.removed, a.fails:
		q.state = "done"
	default:
		q.state = "idle"
	}
	if h == nil || h.gone || p.silent {
		return
	}
	if h.closing {
		return
	}
	if finished {
		for _, next := range p.queue {
			if next.state == "idle" && !next.removed {
				next.state = "asked"
				p.after(0, func() { p.start(h, next) })
				return
			}
		}
		if q.keepIdle > 0 {
			p.after(q.keepIdle, func() { p.release(h) })
			return
		}
	}
	p.after(0, func() { p.release(h) })
}

// remove takes a job away as condor_rm, condor_hold or condor_vacate_job do.
func (p *pool) remove(q *queued, how Deactivation) {
	q.removed = true
	if q.state == "asked" && q.holding == nil {
		p.step(ClaimWithdrawn{Ref: asked(q.ref)})
		delete(p.asked, q.ref)
		q.state = "done"
		return
	}
	h := q.holding
	if h == nil || h.gone {
		q.state = "done"
		return
	}
	p.ref++
	ref := p.ref
	suspended := p.pair(h.slot) == policy.ClaimedSuspended
	p.step(DeactivateRequested{Ref: asked(ref), Claim: h.id, How: how})
	if p.replies[ref].Closing {
		h.closing = true
		return
	}
	// The recorded access point gives the claim back when it hears of the end,
	// mostly before the starter is reaped.
	p.watchEnd(h, suspended)
}

func (p *pool) watchEnd(h *holding, late bool) {
	if h.gone {
		return
	}
	if pair := p.pair(h.slot); pair == policy.ClaimedCleaning && !late {
		p.release(h)
		return
	}
	p.after(50*time.Millisecond, func() { p.watchEnd(h, late) })
}

// act carries out one recorded action.
func (p *pool) act(do string) bool {
	if p.complete {
		return true // nobody is there any more
	}
	verb, rest, _ := strings.Cut(do, " ")
	switch verb {
	case "snap":
	case "submit":
		p.submission(rest)
	case "set":
		text := strings.ReplaceAll(rest, ";", "\n")
		for line := range strings.Lines(text) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			p.g.Knobs[k] = v
		}
		p.after(990*time.Millisecond, p.knobs)
	case "config":
		p.g.Config += "\n" + rest
		p.step(Reconfigured{Snapshot: parse(p.t, p.inv, poolBase+p.g.Config)})
	case "sigstarter":
		for _, a := range p.starters {
			if rest == "STOP" {
				a.onSoft, a.onHard = -1, -1
			} else {
				a.crash = true
				a.gen++
				a.plan(2*time.Second, func() { a.phase = "gone"; a.gone(hostKilled) })
			}
		}
	case "release":
		for _, h := range p.granted {
			p.release(h)
		}
	case "signal":
		switch rest {
		case "schedd STOP":
			p.silent = true
		case "schedd KILL": // another one takes its jobs over
		default:
			return false
		}
	case "sigshadow":
		p.silent = rest == "STOP"
	case "run":
		return p.command(rest)
	default:
		return false
	}
	return true
}

func (p *pool) command(cmd string) bool {
	words := strings.Fields(cmd)
	each := func(f func(*queued)) {
		for _, q := range slices.Clone(p.queue) {
			if q.state == "done" {
				continue
			}
			if len(words) > 1 && words[len(words)-1] != "-all" && words[len(words)-1] != strconv.Itoa(q.cluster) {
				continue
			}
			f(q)
		}
	}
	switch words[0] {
	case "condor_vacate":
		ev := VacateRequested{Manner: Graceful}
		for _, w := range words[1:] {
			if w == "-fast" {
				ev.Manner = Fast
			} else if id, err := slot.ParseID(w); err == nil {
				ev.Slot = id
			}
		}
		p.step(ev)
	case "condor_rm", "condor_hold":
		each(func(q *queued) { p.remove(q, Gracefully) })
	case "condor_vacate_job":
		how := Gracefully
		if slices.Contains(words, "-fast") {
			how = Forcibly
		}
		each(func(q *queued) { p.remove(q, how) })
	case "condor_suspend":
		each(func(q *queued) { p.step(SuspendRequested{Claim: q.holding.id}) })
	case "condor_continue":
		each(func(q *queued) { p.step(ContinueRequested{Claim: q.holding.id}) })
	case "condor_restart":
		p.step(ShutdownRequested{Manner: Graceful})
	case "condor_off":
		if !slices.Contains(words, "-startd") {
			return true
		}
		switch {
		case slices.Contains(words, "-peaceful"):
			p.step(ShutdownRequested{Manner: Peaceful})
		case slices.Contains(words, "-fast"):
			p.step(ShutdownRequested{Manner: Fast})
		case slices.Contains(words, "-graceful"):
			p.step(ShutdownRequested{Manner: Graceful})
		default:
			return false
		}
	case "printf", "rm", "echo", "condor_on":
	default:
		return false
	}
	return true
}

var hostKilled = host.ExitStatus{Signal: 9}

func (p *pool) knobs() {
	if p.g.Knobs == nil {
		return
	}
	var b strings.Builder
	sample := machine.Sample{At: p.now, Fresh: machine.AllReadings}
	for k, v := range p.g.Knobs {
		n, _ := strconv.ParseFloat(v, 64)
		switch k {
		case "KeyboardIdle":
			sample.KeyboardIdle = time.Duration(n) * time.Second
		case "LoadAvg":
			sample.LoadAvg = n
		default:
			fmt.Fprintf(&b, "%s = %s\n", k, v)
		}
	}
	p.step(Sampled{Sample: sample})
	p.publish(b.String())
}

// play runs the case and returns its moves in the recorded scale of time, and
// false if the case has an action that this world does not know.
func (p *pool) play() ([]eptest.Move, bool) {
	early := 8.0 // the pool stood for a while before the first match
	if p.g.T0 == "pool ready" {
		early = 1.2
	}
	sec := func(f float64) time.Duration { return time.Duration(math.Round(f*1000)) * time.Millisecond }
	known := true
	if p.g.Knobs == nil {
		p.g.Knobs = map[string]string{}
	}
	p.knobs()
	for _, a := range p.g.Actions {
		at := a.T
		if strings.HasPrefix(a.Do, "submit") && at <= 0 {
			at -= 0.05 // before the match that it leads to
		} else if strings.HasPrefix(a.Do, "submit") {
			at += 0.1 // a submission takes a moment
		}
		p.after(sec(early+at), func() { known = p.act(a.Do) && known })
	}
	for _, do := range others[p.g.ID] {
		p.after(sec(early+do.at), func() { p.act(do.do) })
	}
	for at := 0.0; at < p.g.End; at += 2 {
		p.after(sec(early+at), p.negotiate)
	}
	for at := 5.0; at < early+p.g.End; at += 5 {
		p.after(sec(at), p.hear)
	}
	p.run(sec(early + p.g.End))
	var out []eptest.Move
	for i, m := range p.moves {
		out = append(out, eptest.Move{T: p.at[i].Seconds() - early, Slot: m.Name, From: m.From.String(), To: m.To.String(), Reason: m.Decision.Reason})
	}
	return out, known
}

// diverging are the runs that do not come out as recorded, and why.
var diverging = map[string]string{
	"policy-claimed-02": "IS_OWNER is undefined at first, which ends the reference daemon; here it keeps the slot for its owner",
	"policy-owner2-07":  "the same",
	"policy-preempt-07": "WANT_VACATE is undefined, which ends the reference daemon; here the job may leave gently",
	"policy-lease3-02":  "the reference daemon waits for its own unanswered calls before the lease counts",
	"policy-killing-04": "the daemon itself is killed",
	"policy-off-04":     "the daemon is started again by its master",
}

// TestReplay plays the recorded runs in virtual time: the same configuration,
// jobs that behave the same, the same commands at the same moments.
func TestReplay(t *testing.T) {
	t.Parallel()
	eptest.Replay(t, goldens(t), diverging, replay)
}

// replay plays one run.
func replay(t *testing.T, run *eptest.Run) ([]eptest.Move, error) {
	got, known := newPool(t, *run).play()
	if !known {
		return nil, errors.New("has actions that are not played here")
	}
	return got, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// carveCase is one line of testdata/carve.jsonl: a recorded pool in which jobs
// were given slots, and all ads of its EP at some moments. Moves are those by
// which slots were claimed and jobs activated: when a matchmaker sends which
// job is its own affair, so the replay sends them at the recorded moments.
type carveCase struct {
	ID, Desc, Config string
	Scripts          map[string]string
	Jobs             map[string]string
	Actions          []struct {
		T  float64
		Do string
	}
	Moves    []carveMove
	Detected struct{ Cpus int }
	Snaps    []struct {
		Label  string
		T      float64
		Slots  []carveAd
		Daemon carveAd
		// Unstable tells that another run of the case went otherwise. The
		// replay follows the run that was recorded, so nothing is left out.
		Unstable bool
	}
}

type carveMove struct {
	T        float64
	Slot, To string
}

// carveAd is an ad as its differences from what most ads of its kind show.
type carveAd struct {
	Kind    string
	Attrs   map[string]string
	Without []string
}

// carveCases returns the cases and, by kind of ad, what most ads show.
func carveCases(t *testing.T) (map[string]map[string]string, []carveCase) {
	t.Helper()
	f, err := os.Open("testdata/carve.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var head struct{ Base map[string]map[string]string }
	var cases []carveCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if head.Base == nil {
			if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var c carveCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return head.Base, cases
}

// full returns every recorded attribute of an ad.
func (a carveAd) full(base map[string]map[string]string) map[string]string {
	out := maps.Clone(base[a.Kind])
	for _, name := range a.Without {
		delete(out, name)
	}
	maps.Copy(out, a.Attrs)
	return out
}

const (
	carveUser = "alice@" + testHost

	// carveLead is how long the EP has been up at the recorded time 0.
	carveLead = 6 * time.Second

	// carveDisk is the disk of the one recorded machine that has no DISK in
	// its configuration: the recorded 1000448 KiB are 0.01606 of it.
	carveDisk = 62294000
)

// carvePool is a matchmaker and an access point that do what was recorded.
type carvePool struct {
	*stage
	c       carveCase
	base    map[string]map[string]string
	names   map[string]map[string]bool // by kind of ad, every attribute of it that was recorded anywhere
	cluster int
	queue   []*queued
	held    map[string]*holding // by the slot's name
	next    int                 // in c.Moves
	snaps   int
	diffs   []string
}

// differs notes something that did not go as recorded.
func (p *carvePool) differs(format string, args ...any) {
	p.diffs = append(p.diffs, fmt.Sprintf(format, args...))
}

// carveDiverging are the cases that do not come out as recorded, why, and all
// that is different in them.
var carveDiverging = map[string]struct {
	why   string
	diffs []string
}{
	"slot-carve-59": {
		"the original leaves a ResourceConflict in the ad of a backfill slot when there is none any more, which a policy would act upon",
		[]string{`after slot2_1: ResourceConflict is missing, want "Cpus"`},
	},
}

func newCarvePool(t *testing.T, c carveCase, base map[string]map[string]string) *carvePool {
	text := poolBase + c.Config + "\n"
	if !strings.Contains(c.Config, "DISK =") {
		text += fmt.Sprintf("DISK = %d\n", carveDisk)
	}
	inv, snap := inventory(t, c.Detected.Cpus, text)
	var found []slot.Inventory
	for _, script := range c.Scripts {
		_, printed, _ := strings.Cut(script, "cat <<'E'\n")
		printed, _, _ = strings.Cut(printed, "\nE\n")
		ad, err := classad.ParseAd(printed, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, slot.Inventory{Resource: "GPUs", Ad: ad})
	}
	layout, err := slot.LayoutFrom(snap, inv, found...)
	if err != nil {
		t.Fatal(err)
	}
	ledger, problems := slot.Build(layout, inv)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := &carvePool{stage: stageWith(t, inv, snap, ledger), c: c, base: base, held: map[string]*holding{}}
	p.onGone = p.jobOver
	return p
}

// at is when something recorded happens here.
func (p *carvePool) at(t float64) time.Duration {
	return carveLead + time.Duration(math.Round(t*1000))*time.Millisecond
}

// play carries the recorded actions out. What was recorded in the same tenth
// of a second comes in the order: submissions, commands, moves, snapshots. A
// command stands where it was first seen to work.
func (p *carvePool) play() {
	end := 0.0
	for _, a := range p.c.Actions {
		verb, rest, _ := strings.Cut(a.Do, " ")
		switch verb {
		case "submit":
			p.after(p.at(a.T)-30*time.Millisecond, func() { p.submission(p.c.Jobs[rest]) })
		case "run":
			p.after(p.at(a.T)-10*time.Millisecond, func() { p.remove(strings.Fields(rest)) })
		case "snap":
		default:
			p.t.Fatalf("unknown action %q", a.Do)
		}
	}
	for i, s := range p.c.Snaps {
		p.after(p.at(s.T)+40*time.Millisecond, func() { p.compare(i) })
		end = max(end, s.T)
	}
	for i, m := range p.c.Moves {
		p.after(p.at(m.T), func() { p.next = i + 1; p.move(m) })
	}
	stop := carveLead + p.at(end)
	for d := time.Second; d < stop; d += time.Second {
		p.after(d, func() { p.step(Sampled{Sample: machine.Sample{At: p.now, Fresh: machine.AllReadings}}) })
	}
	if len(p.c.Moves) == 0 {
		for t := 0.5; t < end; t += 2 {
			p.after(p.at(t), p.refused)
		}
	}
	p.run(p.at(end) + time.Second)
	if p.snaps != len(p.c.Snaps) {
		p.differs("%d snapshots compared of %d", p.snaps, len(p.c.Snaps))
	}
}

// carveCommands are the attributes that submit commands set.
var carveCommands = map[string]string{
	"request_cpus": "RequestCpus", "request_memory": "RequestMemory", "request_disk": "RequestDisk",
	"request_gpus": "RequestGPUs", "require_gpus": "RequireGPUs", "request_bolts": "RequestBolts",
}

// submission queues the jobs of a submit text. What a slot ad shows of the job
// comes from here: the sizes are those of the recorded program, the words of
// the negotiator those of a pool without groups.
func (p *carvePool) submission(text string) {
	p.cluster++
	attrs := map[string]string{
		"RequestCpus":              "1",
		"RequestMemory":            "ifthenelse(MemoryUsage =!= undefined,MemoryUsage,(ImageSize + 1023) / 1024)",
		"RequestDisk":              "1048576",
		"ImageSize":                "45",
		"ExecutableSize":           "45",
		"DiskUsage":                "45",
		"User":                     strconv.Quote(carveUser),
		"RemoteNegotiatingGroup":   `"<none>"`,
		"RemoteAutoregroup":        "false",
		"SomethingThatStaysAtHome": "1", // no slot shows it
	}
	count, runs := 1, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(line, "queue "); ok {
			count, _ = strconv.Atoi(n)
			continue
		}
		k, v, _ := strings.Cut(line, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		switch {
		case k == "arguments":
			runs, _ = strconv.Atoi(v)
		case k == "gpus_minimum_capability":
			attrs["RequireGPUs"] = "Capability >= " + v
		case k == "gpus_minimum_memory":
			attrs["RequireGPUs"] = "GlobalMemoryMb >= " + v
		case strings.HasPrefix(k, "request_"), strings.HasPrefix(k, "require_"):
			attrs[carveCommands[k]] = v
		case strings.HasPrefix(k, "+"):
			attrs[k[1:]] = v
		}
	}
	for n := range count {
		ad := job(p.t, script{begins: time.Second, runs: time.Duration(runs) * time.Second, reap: time.Millisecond, wall: true}, "")
		for k, v := range attrs {
			if err := ad.SetText(k, v); err != nil {
				p.t.Fatal(err)
			}
		}
		ad.SetInt("ClusterId", int64(p.cluster))
		ad.SetInt("ProcId", int64(n))
		ad.SetString("GlobalJobId", fmt.Sprintf("%s#%d.%d#%d", carveUser, p.cluster, n, p.now.Wall.Unix()))
		p.queue = append(p.queue, &queued{cluster: p.cluster, proc: n, ad: ad, state: "idle"})
	}
}

func (p *carvePool) idle() *queued {
	for _, q := range p.queue {
		if q.state == "idle" {
			return q
		}
	}
	p.differs("%v: no job is left for a recorded move", p.elapsed())
	return nil
}

// ask sends a job to a slot, or to the partitionable slot above it.
func (p *carvePool) request(id slot.ID, q *queued) Reply {
	r, _ := p.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: id, Job: q.ad.Clone(), Client: claim.Client{
			User: carveUser, Owner: carveUser, Schedd: carveUser, Host: "127.0.0.1",
		}}
	})
	return r
}

// move makes a recorded move happen: a slot is claimed, or a job is started
// under a claim.
func (p *carvePool) move(m carveMove) {
	if m.To == "Claimed/Idle" {
		id, err := slot.ParseID(m.Slot)
		if err != nil {
			p.t.Fatal(err)
		}
		q := p.idle()
		if q == nil {
			return
		}
		r := p.request(id.Parent(), q)
		if r.Granted == nil {
			p.differs("%.1f: the claim of %s is refused: %v", m.T, m.Slot, r.Err)
			return
		}
		if r.Granted.Slot != id {
			p.differs("%.1f: %v was claimed, want %s", m.T, r.Granted.Slot, m.Slot)
		}
		q.state = "asked"
		p.held[m.Slot] = &holding{id: r.Granted.Claim, slot: r.Granted.Slot, job: q}
		return
	}
	h := p.held[m.Slot]
	if h == nil {
		p.differs("%.1f: nobody holds %s", m.T, m.Slot)
		return
	}
	if h.job == nil { // the claim is used again
		if h.job = p.idle(); h.job == nil {
			return
		}
	}
	r, _ := p.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: h.id, Job: h.job.ad.Clone()} })
	if r.Err != nil {
		p.differs("%.1f: no job starts in %s: %v", m.T, m.Slot, r.Err)
		return
	}
	h.act, h.job.state = r.Activation, "running"
	// The first word of a starter on what its job uses.
	p.after(10*time.Second, func() {
		p.step(JobUsage{Activation: r.Activation, Usage: host.Usage{ImageSizeKiB: 24732, RSSKiB: 1216, PeakRSSKiB: 1216, Procs: 1}, DiskKiB: 14, Files: 7})
	})
}

// refused sends every idle job to every slot: in these runs none was taken.
func (p *carvePool) refused() {
	for _, q := range p.queue {
		for v := range p.eng.Views() {
			if r := p.request(v.ID, q); r.Err == nil {
				p.differs("%v: %s takes job %d.%d", p.elapsed(), v.Name, q.cluster, q.proc)
			}
		}
	}
}

// remove is condor_rm: of everything, or of jobs "cluster" or "cluster.proc".
func (p *carvePool) remove(words []string) {
	if words[0] != "condor_rm" {
		p.t.Fatalf("unknown command %q", words)
	}
	for _, q := range p.queue {
		one := fmt.Sprintf("%d.%d", q.cluster, q.proc)
		if words[1] != "-all" && !slices.Contains(words[1:], one) && !slices.Contains(words[1:], strconv.Itoa(q.cluster)) {
			continue
		}
		for _, h := range p.held {
			if h.job == q && h.act != "" {
				p.step(DeactivateRequested{Claim: h.id, How: Gracefully})
			}
		}
		q.state = "done"
	}
}

// jobOver gives the claim back unless the record uses it for another job.
func (p *carvePool) jobOver(a *actor) {
	for name, h := range p.held {
		if h.act != a.id {
			continue
		}
		h.job.state, h.job, h.act = "done", nil, ""
		i := slices.IndexFunc(p.c.Moves[p.next:], func(m carveMove) bool { return m.Slot == name })
		if i >= 0 && p.c.Moves[p.next+i].To == "Claimed/Busy" {
			return
		}
		delete(p.held, name)
		p.after(0, func() { p.step(ReleaseRequested{Claim: h.id}) })
		return
	}
}

// compare holds all ads of the moment against the recorded ones.
func (p *carvePool) compare(i int) {
	p.snaps++
	want := p.c.Snaps[i]
	if len(p.eng.slots.all) != len(want.Slots) {
		p.differs("%s: there are %d slots, want %d", want.Label, len(p.eng.slots.all), len(want.Slots))
		return
	}
	for k, sl := range p.eng.slots.all {
		p.compareAd(want.Label+" "+sl.name, want.Slots[k].Kind, sl.ad.Snapshot(p.now), want.Slots[k].full(p.base))
	}
	p.compareAd(want.Label+" daemon", "Daemon", p.eng.ads.Daemon(nil, p.now), want.Daemon.full(p.base))
}

// Values of these classes are measured, or numbers that an operating system
// gives out; of them the type is compared and that they are there.
var carveMeasured = map[string]classad.Kind{
	"CpusUsage":       classad.KindReal,    // processors that the recorded sleep kept busy
	"CPUsUsage":       classad.KindReal,    // the same, as a starter spells it
	"ImageSize":       classad.KindInteger, // address space of the recorded sleep
	"ResidentSetSize": classad.KindInteger, // memory of the recorded sleep
	"StarterPid":      classad.KindInteger, // a process id
	"JobPid":          classad.KindInteger, // a process id
}

// These grow by the second. The recorded moments are rounded to the second
// and ads were renewed once a second, so they may be off by so much.
var carveClocks = map[string]float64{
	"TotalJobRunTime":   2,
	"TotalClaimRunTime": 2,
	// The sum over slots of processors times run time: two seconds of all.
	"ExpectedMachineGracefulDrainingBadput": 16,
	"ExpectedMachineQuickDrainingBadput":    16,
}

// carveTime is a moment relative to the first Claimed/Busy of the run.
var carveTime = regexp.MustCompile(`T([+-][0-9]+)`)

// timesOf cuts the recorded times, or the present ones, out of a text.
func timesOf(text string, zero int64) (rest string, times []int64) {
	rest = carveTime.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.ParseInt(s[1:], 10, 64)
		times = append(times, zero+n)
		return "T"
	})
	if times == nil {
		rest = carveEpoch.ReplaceAllStringFunc(text, func(s string) string {
			n, _ := strconv.ParseInt(s, 10, 64)
			times = append(times, n)
			return "T"
		})
	}
	return rest, times
}

// carveEpoch is a moment in the time of the stage.
var carveEpoch = regexp.MustCompile(`\b18000000[0-9][0-9]\b`)

// compareAd compares every attribute of an ad that was recorded, and demands
// that none is there which was recorded in other ads of the kind only.
func (p *carvePool) compareAd(what, kind string, got *classad.Ad, want map[string]string) {
	zero := p.begun.Wall.Unix() + int64(carveLead/time.Second)
	totals := classad.NewAd()
	totals.SetInt("TotalVirtualMemory", p.inv.SwapKiB)
	totals.SetInt("TotalDisk", p.inv.Execute.FreeKiB)
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		known[strings.ToLower(name)] = true
		text := strings.NewReplacer("${HOST}", testHost, "${USER}", "alice").Replace(want[name])
		have, ok := got.Lookup(name)
		if !ok {
			p.differs("%s: %s is missing, want %s", what, name, text)
			continue
		}
		if kind, measured := carveMeasured[name]; measured {
			if v := have.Eval(nil); v.Kind() != kind {
				p.differs("%s: %s = %s, want some %v", what, name, have, kind)
			}
			continue
		}
		if text == "<time>" { // a moment of this run
			if n, ok := have.Eval(nil).AsInt(); !ok || n < p.begun.Wall.Unix() || n > p.now.Wall.Unix() {
				p.differs("%s: %s = %s, want a time of this run", what, name, have)
			}
			continue
		}
		if within, clock := carveClocks[name]; clock {
			n, _ := strconv.ParseFloat(text, 64)
			if v, ok := have.Eval(nil).AsNumber(); !ok || math.Abs(v-n) > within {
				p.differs("%s: %s = %s, want %s within %v", what, name, have, text, within)
			}
			continue
		}
		if carveTime.MatchString(text) {
			wantText, wantTimes := timesOf(text, zero)
			haveText, haveTimes := timesOf(have.String(), zero)
			near := slices.EqualFunc(wantTimes, haveTimes, func(a, b int64) bool { return max(a-b, b-a) <= 2 })
			if wantText != haveText || !near {
				p.differs("%s: %s = %s, want %s around %d", what, name, have, text, zero)
			}
			continue
		}
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			p.t.Fatal(err)
		}
		if have.String() == e.String() {
			continue
		}
		// Amounts of what is not configured were recorded as a share, in five
		// digits, of the machine's total.
		if strings.HasPrefix(text, "TotalDisk") || strings.HasPrefix(text, "TotalVirtualMemory") {
			a, aok := have.Eval(nil).AsNumber()
			b, bok := e.Eval(&classad.Env{My: totals}).AsNumber()
			total, _ := totals.EvalReal(strings.FieldsFunc(text, func(r rune) bool { return r == '*' })[0], nil)
			if aok && bok && math.Abs(a-b) <= 1+total/100_000 {
				continue
			}
		}
		p.differs("%s: %s = %s, want %s", what, name, have, e)
	}
	for name, e := range got.All() {
		if p.names[kind][strings.ToLower(name)] && !known[strings.ToLower(name)] {
			p.differs("%s: %s = %s, want none", what, name, e)
		}
	}
}

// recordedNames returns by kind of ad every attribute that was recorded
// anywhere, in lower case. Those that run with the time were given no time to
// show themselves in some snapshots.
//
// The recorded EP learnt a job's process id with the first word of its starter
// on what the job uses; here it is known and shown once the job runs.
func recordedNames(base map[string]map[string]string, cases []carveCase) map[string]map[string]bool {
	names := map[string]map[string]bool{"Daemon": {}}
	slots := map[string]bool{}
	note := func(a carveAd) {
		into := slots
		if a.Kind == "Daemon" {
			into = names["Daemon"]
		}
		for name := range a.full(base) {
			if _, clock := carveClocks[name]; !clock {
				into[strings.ToLower(name)] = true
			}
		}
	}
	for _, c := range cases {
		for _, s := range c.Snaps {
			note(s.Daemon)
			for _, a := range s.Slots {
				note(a)
			}
		}
	}
	delete(slots, "jobpid")
	for _, kind := range []string{"Partitionable", "Dynamic", "Static"} {
		names[kind] = slots
	}
	return names
}

// TestCarveReplay plays the 43 recorded pools in which jobs got slots, and
// compares every recorded attribute of every ad in every snapshot.
//
// row: S0-003, S0-009, S0-039, S0-044
func TestCarveReplay(t *testing.T) {
	t.Parallel()
	base, cases := carveCases(t)
	if len(cases) != 43 {
		t.Fatalf("%d cases", len(cases))
	}
	names := recordedNames(base, cases)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			p := newCarvePool(t, c, base)
			p.names = names
			p.play()
			known := carveDiverging[c.ID]
			if !slices.Equal(p.diffs, known.diffs) {
				t.Errorf("%s\n%s\nknown to differ: %q\n%s", c.Desc, strings.Join(p.diffs, "\n"), known.diffs, c.Config)
			} else if known.why != "" {
				t.Log("differs:", known.why)
			}
		})
	}
}

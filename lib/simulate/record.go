// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Record is one run of the reference daemons in a pool of their own: what they
// were given and what was done to them.
type Record struct {
	ID      string            `json:"id"`
	Config  string            `json:"config"`
	Knobs   map[string]string `json:"knobs"`   // machine attributes
	Scripts map[string]string `json:"scripts"` // programs, by name
	Job     string            `json:"job"`     // submit texts, headed "name:" and parted by "--- name:"
	T0      string            `json:"t0"`      // what second 0 is: "first Claimed/Busy" or "pool ready"
	Actions []Action          `json:"actions"`
	End     float64           `json:"end"` // seconds
}

// Action is one thing that was done, at a second of the run.
type Action struct {
	T  float64 `json:"t"`
	Do string  `json:"do"`
}

// Moved is one move of a slot in the scale of a record.
type Moved struct {
	T    float64 `json:"t"`
	Slot string  `json:"slot"`
	From string  `json:"from"`
	To   string  `json:"to"`
	// Reason is what the core says; it is not part of the answer.
	Reason string `json:"-"`
}

// poolBase is what every recorded pool had besides its own lines.
const poolBase = "POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\nRunBenchmarks = False\nSTARTD_DETECT_GPUS = false\n"

// Limits of a record: more is a mistake.
const (
	maxRecordEnd = 1e6 // seconds
	maxActions   = 10000
)

// The world of the recorded pools.
const (
	recordedEpoch = 1_800_000_000
	recordedCycle = 2 * time.Second
	recordedLease = 40 * time.Minute
	matchDelay    = 2 * time.Second // from a submission to its match
)

// replay is one record being played.
type replay struct {
	r       *Record
	w       *world
	more    string // lines added to the configuration
	texts   map[string]string
	knobs   map[string]string
	files   map[string]bool // made by commands; false: cannot be executed, or gone
	removed map[string]bool // gone again
	cluster int
	moves   []Moved
	early   float64
	err     error
}

// Replay plays a record again: the same configuration, jobs that behave the
// same, the same commands at the same moments, and an access point that
// negotiates every two seconds. parse reads a configuration for a machine. The
// moves are in the record's scale of time.
func Replay(r *Record, parse func(inv *machine.Inventory, text string) (*config.Snapshot, error)) ([]Moved, error) {
	const op = "simulate.Replay"
	if !(r.End >= 0 && r.End <= maxRecordEnd) || len(r.Actions) > maxActions {
		return nil, errs.E(op, errs.Invalid, r.ID, fmt.Errorf("end %g with %d actions: want 0 to %g seconds and at most %d actions", r.End, len(r.Actions), float64(maxRecordEnd), maxActions))
	}
	p := &replay{r: r, texts: submitTexts(r.Job), knobs: maps.Clone(r.Knobs), files: map[string]bool{}, removed: map[string]bool{}, early: 8} // the pool stood for a while before the first match
	if r.T0 == "pool ready" {
		p.early = 1.2
	}
	if p.knobs == nil {
		p.knobs = map[string]string{}
	}
	node := Node{
		Machine: Machine{Host: "host.example", Cpus: 2, MemoryMiB: 4096, DiskKiB: 20 << 20, SwapKiB: 1 << 20, Source: "record"},
		Load: func(inv *machine.Inventory, more string) (*config.Snapshot, error) {
			return parse(inv, poolBase+r.Config+"\n"+more)
		},
	}
	w, err := newWorld(node, "", time.Unix(recordedEpoch, 0).UTC(), 1, time.UTC, 0, p.moved)
	if err != nil {
		return nil, err
	}
	p.w = w
	p.plan()
	if err := w.run(seconds(p.early + r.End)); err != nil {
		return nil, err
	}
	return p.moves, p.err
}

func seconds(f float64) time.Duration { return time.Duration(math.Round(f*1000)) * time.Millisecond }

func (p *replay) moved(m ep.Transitioned) {
	at := 0.0
	if p.w != nil {
		at = p.w.elapsed().Seconds()
	}
	p.moves = append(p.moves, Moved{
		T: math.Round((at-p.early)*100) / 100, Slot: m.Name, From: m.From.String(), To: m.To.String(), Reason: m.Decision.Reason,
	})
}

// plan puts everything that is known beforehand on the agenda.
func (p *replay) plan() {
	w := p.w
	w.ap.oneEach, w.ap.lease = true, recordedLease
	if len(p.knobs) > 0 {
		p.publish()
	}
	for _, a := range p.r.Actions {
		at := a.T
		if strings.HasPrefix(a.Do, "submit") && at <= 0 {
			at -= 0.05 // before the match that it leads to
		} else if strings.HasPrefix(a.Do, "submit") {
			at += matchDelay.Seconds() - 0.1 // the matchmaker is called, and comes
			w.after(seconds(p.early+a.T)+matchDelay, w.ap.negotiate)
		}
		w.after(seconds(p.early+at), func() {
			if err := p.act(a.Do); err != nil && p.err == nil {
				p.err = errs.E("simulate.Replay", errs.Invalid, p.r.ID, fmt.Errorf("action %q at %g: %w", a.Do, a.T, err))
			}
		})
	}
	for at := time.Duration(0); at < seconds(p.r.End); at += recordedCycle {
		w.after(seconds(p.early)+at, w.ap.negotiate)
	}
	p.fetchWork()
	for at := 5.0; at < p.early+p.r.End; at += 5 {
		w.after(seconds(at), w.ap.hear)
	}
}

// submitTexts parts the submit texts of a record by name; one alone is "a".
func submitTexts(text string) map[string]string {
	out := map[string]string{}
	name := "a"
	sections := strings.Split(text, "\n--- ")
	for i, text := range sections {
		if i > 0 || strings.HasPrefix(text, "a:\n") || len(sections) > 1 {
			if head, rest, ok := strings.Cut(text, ":\n"); ok {
				name, text = strings.TrimSpace(head), rest
			}
		}
		out[name] = text
	}
	return out
}

// submission puts the jobs of a submit text into the queue.
func (p *replay) submission(name string) error {
	text, ok := p.texts[name]
	if !ok {
		return fmt.Errorf("there is no submit text of that name: want one of %v", slices.Sorted(maps.Keys(p.texts)))
	}
	p.cluster++
	k, err := newKind(name, text, p.w)
	if err != nil {
		return err
	}
	for n, t := range k.jobs {
		q := k.job(p.w, n, p.cluster)
		q.plays = func() Behaviour { return p.behaviour(t) }
		p.w.ap.submit(q)
	}
	return nil
}

// act carries out one recorded action.
func (p *replay) act(do string) error {
	w := p.w
	verb, rest, _ := strings.Cut(do, " ")
	if w.life.over {
		if strings.HasPrefix(rest, "condor_on") && strings.Contains(rest, "-startd") {
			w.again(200 * time.Millisecond)
		}
		if verb != "submit" && verb != "set" {
			return nil // it has ended
		}
	}
	switch verb {
	case "snap":
	case "submit":
		return p.submission(rest)
	case "set":
		for _, item := range strings.Split(rest, ";") {
			k, v, _ := strings.Cut(strings.TrimSpace(item), "=")
			p.knobs[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
		w.after(990*time.Millisecond, p.publish) // the program that reads them runs every second
	case "config":
		p.more += rest + "\n"
		return w.reconfigure(p.more)
	case "sigstarter":
		p.signalStarters(rest)
	case "release":
		for _, h := range w.ap.claims() {
			w.ap.release(h)
		}
	case "signal":
		return p.signal(rest)
	case "sigshadow":
		p.signalShadows(rest)
	case "run":
		return p.command(rest)
	default:
		return errors.New("there is no such verb: want submit, set, run, signal, sigstarter, sigshadow, config or snap")
	}
	return nil
}

// signal passes a signal to a daemon.
func (p *replay) signal(rest string) error {
	daemon, sig, _ := strings.Cut(rest, " ")
	switch {
	case daemon == "schedd" && sig == "STOP":
		p.w.ap.silent = true
	case daemon == "schedd" && sig == "CONT":
		p.w.ap.speak()
	case daemon == "schedd": // another one takes its jobs over
	case daemon == "startd" && (sig == "KILL" || sig == "STOP"):
		p.w.die()
		p.w.again(restartDelay)
	case daemon == "startd" && sig == "TERM":
		p.w.step(ep.ShutdownRequested{Manner: ep.Graceful})
	case daemon == "startd" && sig == "QUIT":
		p.w.step(ep.ShutdownRequested{Manner: ep.Fast})
	case daemon == "startd" && sig == "HUP":
		return p.w.reconfigure(p.more)
	case daemon == "negotiator", daemon == "collector":
	default:
		return errors.New("there is no such daemon or signal")
	}
	return nil
}

// signalStarters stops or kills the starters.
func (p *replay) signalStarters(sig string) {
	for _, a := range p.w.actors() {
		switch sig {
		case "STOP":
			a.OnSoft, a.OnHard = Never, Never
		case "CONT":
		default:
			a.crash(2 * time.Second)
		}
	}
}

// signalShadows stops or kills who watches over the jobs.
func (p *replay) signalShadows(sig string) {
	ap := p.w.ap
	if sig == "STOP" {
		ap.silent = true
		return
	}
	for _, h := range ap.claims() {
		q := h.job
		if q == nil {
			continue
		}
		if !ap.silent {
			ap.release(h)
			continue
		}
		// The starter waits for the lease of the job to run out.
		lease, ok := q.ad.EvalInt("JobLeaseDuration", nil)
		if a := p.w.starters[q.act]; a != nil && ok {
			p.w.after(time.Duration(lease)*time.Second, func() {
				if a.phase < ended {
					a.forsake()
				}
			})
		}
	}
}

// command carries out a command of the pool's owner.
func (p *replay) command(cmd string) error {
	w := p.w
	words := strings.Fields(cmd)
	if len(words) == 0 {
		return errors.New("there is no command")
	}
	last := words[len(words)-1]
	each := func(f func(*queued)) {
		for _, q := range slices.Clone(w.ap.all) {
			if q.state == done || q.state == removed {
				continue
			}
			id := strconv.Itoa(q.cluster)
			if len(words) > 1 && !strings.HasPrefix(last, "-") && last != id && last != id+"."+strconv.Itoa(q.proc) {
				continue
			}
			f(q)
		}
	}
	has := func(flag string) bool { return slices.Contains(words, flag) }
	switch words[0] {
	case "condor_vacate":
		ev := ep.VacateRequested{Manner: ep.Graceful}
		if has("-fast") {
			ev.Manner = ep.Fast
		}
		for _, word := range words[1:] {
			name, _, _ := strings.Cut(word, "@")
			if id, err := slot.ParseID(name); err == nil {
				ev.Slot = id
			}
		}
		w.step(ev)
	case "condor_rm":
		each(func(q *queued) { w.ap.remove(q, ep.Gracefully, removed, "condor_rm") })
	case "condor_hold":
		each(func(q *queued) { w.ap.byOwner(q, "condor_hold") })
	case "condor_release":
		each(w.ap.letGo)
	case "condor_vacate_job":
		how := ep.Gracefully
		if has("-fast") {
			how = ep.Forcibly
		}
		each(func(q *queued) { w.ap.remove(q, how, waiting, "condor_vacate_job") })
	case "condor_suspend":
		each(func(q *queued) {
			if q.holding != nil {
				w.step(ep.SuspendRequested{Claim: q.holding.id})
			}
		})
	case "condor_continue":
		each(func(q *queued) {
			if q.holding != nil {
				w.step(ep.ContinueRequested{Claim: q.holding.id})
			}
		})
	case "condor_userprio":
		if i := slices.Index(words, "-setfactor"); i >= 0 && i+2 < len(words) {
			name, _, _ := strings.Cut(words[i+1], "@")
			f, err := strconv.ParseFloat(words[i+2], 64)
			if err != nil {
				return err
			}
			w.ap.factors[name] = f
		}
	case "condor_restart":
		w.life.restarts = true
		w.step(ep.ShutdownRequested{Manner: ep.Graceful})
	case "condor_off":
		if !has("-startd") {
			return nil
		}
		switch {
		case has("-peaceful"):
			w.step(ep.ShutdownRequested{Manner: ep.Peaceful})
		case has("-fast"):
			w.step(ep.ShutdownRequested{Manner: ep.Fast})
		default:
			w.step(ep.ShutdownRequested{Manner: ep.Graceful})
		}
	case "condor_reconfig":
		return w.reconfigure(p.more)
	case "condor_drain":
		// What the daemon refuses is no fault of the record.
		if err := w.drain(strings.TrimPrefix(cmd, "condor_drain")); err != nil && errs.KindOf(err) == errs.Invalid {
			return err
		}
	case "echo", "printf", "rm", "touch", "chmod":
		p.shell(cmd)
	}
	return nil // other commands of the record touch no slot
}

// shell notes which programs a command line makes, and which it takes away.
func (p *replay) shell(cmd string) {
	for _, part := range strings.FieldsFunc(cmd, func(r rune) bool { return r == ';' || r == '&' }) {
		words := strings.Fields(part)
		switch {
		case len(words) == 0:
		case words[0] == "rm":
			p.files[words[len(words)-1]] = false
			p.removed[words[len(words)-1]] = true
		case words[0] == "chmod" && len(words) == 3:
			p.files[words[2]] = strings.ContainsAny(words[1], "x1357")
		case slices.Contains(words, ">"):
			name := words[len(words)-1]
			if _, known := p.files[name]; !known {
				p.files[name] = true
			}
		}
	}
}

// publish shows the knobs as the recorded machine's own program did.
func (p *replay) publish() {
	attrs := classad.NewAd()
	sample := machine.Sample{At: p.w.now, Fresh: machine.AllReadings, FreeSwapKiB: p.w.inv.SwapKiB, FreeDiskKiB: p.w.inv.Execute.AvailableKiB, TotalDiskKiB: p.w.inv.Execute.TotalKiB}
	for _, k := range slices.Sorted(maps.Keys(p.knobs)) {
		v := p.knobs[k]
		n, _ := strconv.ParseFloat(v, 64)
		switch k {
		case "KeyboardIdle":
			sample.KeyboardIdle = time.Duration(n) * time.Second
		case "LoadAvg":
			sample.LoadAvg = n
		default:
			// What does not parse is a line that the daemon would pass over.
			_ = attrs.SetText(k, v)
		}
	}
	p.w.step(ep.Sampled{Sample: sample})
	p.w.step(ep.Published{Source: "knobs", Attrs: attrs})
}

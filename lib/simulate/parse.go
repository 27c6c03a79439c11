// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

// word is a word of a line and where it stands.
type word struct {
	text   string
	column int
}

// parser reads a scenario line by line.
type parser struct {
	sc       *Scenario
	lines    []string
	line     int // number of the line being read, from 1
	problems Problems
	seen     map[string]int // lines of what may be there once
}

// Parse reads a scenario. name is its file's, for messages. The error is
// Problems.
func Parse(name, text string) (*Scenario, error) {
	p := &parser{line: 1, seen: map[string]int{}, sc: &Scenario{
		Name: name, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Cycle: time.Minute,
		Machine: Machine{Cpus: 1, MemoryMiB: 4096, DiskKiB: 100 << 20, SwapKiB: 1 << 20},
	}}
	switch {
	case len(text) > maxText:
		p.bad(1, "", "the scenario is too long", "at most 4 MiB")
		return nil, p.problems
	case !utf8.ValidString(text):
		p.bad(1, "", "the scenario is not UTF-8 text", "")
		return nil, p.problems
	}
	p.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(p.lines) > maxLines {
		p.bad(1, "", "the scenario has too many lines", "at most 200000")
		return nil, p.problems
	}
	for p.line = 1; p.line <= len(p.lines) && len(p.problems) < maxProblems; p.line++ {
		raw := strings.TrimSuffix(p.lines[p.line-1], "\r")
		if t := strings.TrimSpace(raw); t == "" || t[0] == '#' {
			continue
		}
		if raw[0] == ' ' || raw[0] == '\t' {
			p.bad(1, "", "this line is indented, but nothing above it takes lines", "lines only below config, job or reconfig")
			continue
		}
		p.statement(split(raw), raw)
	}
	p.whole()
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return p.sc, nil
}

// whole looks at what only the whole scenario tells.
func (p *parser) whole() {
	sc := p.sc
	if p.seen["end"] == 0 && len(p.problems) == 0 {
		p.line = len(p.lines)
		p.bad(1, "", "the scenario has no end", "a line such as: end 8h")
	}
	happening := 0.0
	configured := time.Duration(0) // the time of the reconfig before
	for i := range sc.Events {
		e := &sc.Events[i]
		p.line = e.Line
		times := 1.0
		if e.Every > 0 {
			if e.Until == 0 {
				e.Until = sc.End
			}
			times += math.Max(0, float64(min(e.Until, sc.End)-e.At)/float64(e.Every))
		}
		happening += times * float64(max(1, e.Count))
		known := slices.ContainsFunc(sc.Jobs, func(k JobKind) bool { return k.Name == e.Name })
		switch e.Verb {
		case Submit:
			if !known {
				p.bad(e.Column, e.Name, "there is no job of that name", "the name of a job line")
			}
		case Hold, Remove, Release, SuspendJob, ContinueJob:
			if e.Name != "" && e.Name != "all" && !known && !numbered(e.Name) {
				p.bad(e.Column, e.Name, "there is no job of that name", "the name of a job line, a number such as 3.0, or all")
			}
		case Reconfigure:
			// The lines are read where they stand, so what stands below wins.
			if e.At < configured {
				p.bad(e.Column, "reconfig", "a reconfig above this one comes later", "reconfigs in the order of their times")
			}
			configured = e.At
		}
	}
	if happening > maxHappening {
		p.bad(1, "", "far too much happens", "at most 5000000 repeated events and jobs")
	}
}

// numbered reports whether a name is the number of a job, such as 3.0.
func numbered(name string) bool {
	cluster, proc, ok := strings.Cut(name, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return ok && digits(cluster) && digits(proc)
}

func split(line string) []word {
	var out []word
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		j := i
		for j < len(line) && line[j] != ' ' && line[j] != '\t' {
			j++
		}
		if line[i] == '#' {
			break
		}
		out = append(out, word{line[i:j], i + 1})
		i = j
	}
	return out
}

func (p *parser) bad(column int, value, message, want string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{File: p.sc.Name, Line: p.line, Column: column, Value: value, Message: message, Want: want})
	}
}

// once refuses a second line of the same sort.
func (p *parser) once(w word) {
	if at := p.seen[w.text]; at > 0 {
		p.bad(w.column, w.text, "this was said before, in line "+strconv.Itoa(at), "one such line")
	}
	p.seen[w.text] = p.line
}

// statement reads one line and the block below it.
func (p *parser) statement(ws []word, raw string) {
	head, rest := ws[0], ws[1:]
	one := func(want string) (word, bool) {
		if len(rest) != 1 {
			p.bad(head.column, head.text, "one value must follow", want)
			return word{}, false
		}
		return rest[0], true
	}
	switch head.text {
	case "start":
		p.once(head)
		p.start(rest, head)
	case "end":
		p.once(head)
		if w, ok := one("a time such as 8h"); ok {
			if p.sc.End = p.duration(w); p.sc.End <= 0 || p.sc.End > maxEnd {
				p.bad(w.column, w.text, "the end is out of range", "more than 0s and at most 400d")
			}
		}
	case "seed":
		p.once(head)
		if w, ok := one("a number"); ok {
			n, err := strconv.ParseUint(w.text, 10, 64)
			if err != nil {
				p.bad(w.column, w.text, "this is no seed", "a whole number")
			}
			p.sc.Seed = n
		}
	case "cycle":
		p.once(head)
		if w, ok := one("a time such as 60s"); ok {
			if p.sc.Cycle = p.duration(w); p.sc.Cycle < time.Second {
				p.bad(w.column, w.text, "the matchmaker cannot be that quick", "1s or more")
				p.sc.Cycle = time.Second
			}
		}
	case "machine":
		p.once(head)
		p.machine(rest, head)
	case "config":
		if len(rest) > 1 {
			p.bad(rest[1].column, rest[1].text, "there is a word too many", "config FILE, or config with indented lines below")
		}
		if len(rest) == 1 {
			p.once(head)
			p.sc.ConfigFile = rest[0].text
		}
		b := p.block()
		switch {
		case b.Text != "":
			p.sc.Config = append(p.sc.Config, b)
		case len(rest) == 0:
			p.bad(head.column, head.text, "there is no configuration", "config FILE, or config with indented lines below")
		}
	case "job":
		p.job(rest, head)
	case "at":
		p.event(rest, head, raw)
	default:
		p.bad(head.column, head.text, "there is no such statement", "start, end, seed, cycle, machine, config, job or at")
	}
}

// block takes the indented lines below the present one.
func (p *parser) block() Block {
	first := p.line + 1
	last := p.line
	for i := p.line; i < len(p.lines); i++ {
		l := strings.TrimSuffix(p.lines[i], "\r")
		if strings.TrimSpace(l) == "" {
			continue
		}
		if l[0] != ' ' && l[0] != '\t' {
			break
		}
		last = i + 1
	}
	if last < first {
		return Block{}
	}
	b := Block{Line: first, Text: strings.ReplaceAll(strings.Join(p.lines[first-1:last], "\n"), "\r", "") + "\n"}
	p.line = last
	return b
}

func (p *parser) start(rest []word, head word) {
	if len(rest) < 1 || len(rest) > 3 {
		p.bad(head.column, head.text, "a date must follow", "start 2026-03-02 08:00 +01:00")
		return
	}
	texts := make([]string, len(rest))
	for i, w := range rest {
		texts[i] = w.text
	}
	text := strings.Join(texts, " ")
	for _, layout := range []string{"2006-01-02 15:04:05 -07:00", "2006-01-02 15:04 -07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1980 && t.Year() < 2200 {
			p.sc.Start = t
			return
		}
	}
	p.bad(rest[0].column, text, "this is no date", "a date such as 2026-03-02, 2026-03-02 08:00 or 2026-03-02 08:00 +01:00, from 1980 to 2199")
}

func (p *parser) machine(rest []word, head word) {
	m := &p.sc.Machine
	if len(rest) == 0 {
		p.bad(head.column, head.text, "nothing is said of the machine", "cpus=N memory=MiB disk=KiB swap=KiB name=HOST, or the name of a JSON file")
	}
	for i, w := range rest {
		key, value, ok := strings.Cut(w.text, "=")
		if !ok && i == 0 {
			p.sc.MachineFile = w.text
			continue
		}
		amount := func(least, most int64) int64 {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < least || n > most {
				p.bad(w.column, w.text, "this is no amount for "+key, "a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
				return least
			}
			return n
		}
		switch key {
		case "cpus":
			m.Cpus = int(amount(1, maxCpus))
		case "memory":
			m.MemoryMiB = amount(1, maxAmount)
		case "disk":
			m.DiskKiB = amount(0, maxAmount)
		case "swap":
			m.SwapKiB = amount(0, maxAmount)
		case "name":
			m.Host = value
		default:
			p.bad(w.column, w.text, "a machine has no such thing", "cpus=, memory=, disk=, swap= or name=")
		}
	}
	m.Source = p.sc.Name
}

func (p *parser) job(rest []word, head word) {
	k := JobKind{Line: p.line, Behaviour: Behaviour{Begins: time.Second, Runs: time.Hour, OnHard: time.Second, OnKill: 2 * time.Second, Reap: 100 * time.Millisecond}}
	if len(rest) == 0 {
		p.bad(head.column, head.text, "the job has no name", "job NAME runs=1h")
	} else {
		k.Name = rest[0].text
		if slices.ContainsFunc(p.sc.Jobs, func(o JobKind) bool { return o.Name == k.Name }) {
			p.bad(rest[0].column, k.Name, "there is a job of that name already", "another name")
		}
		if k.Name == "all" || numbered(k.Name) {
			p.bad(rest[0].column, k.Name, "that word means other jobs", "another name")
		}
		rest = rest[1:]
	}
	for _, w := range rest {
		p.jobOption(&k, w)
	}
	k.Submit = p.block()
	if p.sc.Jobs = append(p.sc.Jobs, k); len(p.sc.Jobs) > maxKinds {
		p.bad(head.column, k.Name, "there are too many kinds of jobs", "at most 10000")
	}
}

func (p *parser) jobOption(k *JobKind, w word) {
	key, value, _ := strings.Cut(w.text, "=")
	at := word{value, w.column + len(key) + 1}
	or := func(never string) time.Duration {
		if value == never {
			return Never
		}
		return p.duration(at)
	}
	switch key {
	case "runs":
		least, most, ranged := strings.Cut(value, "..")
		k.Runs = p.duration(word{least, at.column})
		if ranged {
			if k.RunsMost = p.duration(word{most, at.column + len(least) + 2}); k.RunsMost < k.Runs {
				p.bad(at.column, value, "the range is upside down", "the shorter time first")
			}
		}
	case "begins":
		k.Begins = p.duration(at)
	case "soft":
		k.OnSoft = or("never")
	case "hard":
		k.OnHard = or("never")
	case "exit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > 255 {
			p.bad(at.column, value, "this is no exit status", "a number from 0 to 255")
		}
		k.Code = n
	case "fails":
		switch value {
		case "input":
			k.Fails = true
		case "exec":
			k.Stuck = k.Begins + shadowPatience
		default:
			p.bad(at.column, value, "a job cannot fail to start like that", "fails=input or fails=exec")
		}
	case "saves":
		switch value {
		case "never":
		case "leaving":
			k.Saves.OnEviction = true
		default:
			k.Saves.Every = p.duration(at)
		}
	case "clock":
		k.Wall = value == "wall"
		if value != "wall" && value != "run" {
			p.bad(at.column, value, "there is no such clock", "clock=run, which stands while the job is suspended, or clock=wall")
		}
	case "memory":
		p.memory(k, at)
	default:
		p.bad(w.column, w.text, "a job has no such option", "runs=, begins=, soft=, hard=, exit=, fails=, saves=, clock= or memory=")
	}
}

// memory reads what a job occupies: "100" or "100,1h:500", in MiB.
func (p *parser) memory(k *JobKind, at word) {
	for i, part := range strings.Split(at.text, ",") {
		when, amount, later := strings.Cut(part, ":")
		if !later {
			when, amount = "0s", part
		}
		n, err := strconv.ParseInt(amount, 10, 40)
		if err != nil || n < 0 || later == (i == 0) {
			p.bad(at.column, at.text, "this is no course of memory", "MiB, or MiB,TIME:MiB,… such as 100,1h:500")
			return
		}
		k.Memory = append(k.Memory, Step{At: p.duration(word{when, at.column}), KiB: n << 10})
	}
}

// duration reads a span such as 90, 90s, 15m, 2h30m, 1d12h or 1w.
func (p *parser) duration(w word) time.Duration {
	d, ok := duration(w.text)
	if !ok {
		p.bad(w.column, w.text, "this is no span of time", "a span such as 90s, 15m, 2h30m, 1d or 1w")
	}
	return d
}

func duration(text string) (time.Duration, bool) {
	var sum time.Duration
	for s := text; s != ""; {
		n := 0
		for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
			n++
		}
		f, err := strconv.ParseFloat(s[:n], 64)
		if err != nil {
			return 0, false
		}
		unit := time.Second
		switch rest := s[n:]; {
		case rest == "" && n == len(text):
		case strings.HasPrefix(rest, "ms"):
			unit = time.Millisecond
			n += 2
		case rest != "" && strings.IndexByte("smhdw", rest[0]) >= 0:
			unit = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[rest[0]]
			n++
		default:
			return 0, false
		}
		d := f * float64(unit)
		if !(d >= 0 && d <= float64(maxEnd)) {
			return 0, false
		}
		if sum += time.Duration(d); sum > maxEnd {
			return 0, false
		}
		s = s[n:]
	}
	return sum, text != ""
}

// moment reads a time of the timeline: a span from the beginning, or the time
// of day, the first such after the beginning.
func (p *parser) moment(w word) time.Duration {
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.Parse(layout, w.text)
		if err != nil {
			continue
		}
		h, m, s := p.sc.Start.Clock()
		at := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
		at -= time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
		if at < 0 {
			at += 24 * time.Hour
		}
		return at
	}
	return p.duration(w)
}

// event reads a line of the timeline.
func (p *parser) event(rest []word, head word, raw string) {
	e := Event{Line: p.line, Column: head.column, Count: 1}
	if len(rest) < 2 {
		p.bad(head.column, head.text, "a time and what happens must follow", "at 2h submit NAME")
		return
	}
	e.At = p.moment(rest[0])
	rest = rest[1:]
	for len(rest) > 1 && (rest[0].text == "every" || rest[0].text == "until") {
		if rest[0].text == "every" {
			if e.Every > 0 {
				p.bad(rest[0].column, "every", "this is said twice", "one every")
			}
			if e.Every = p.duration(rest[1]); e.Every < 100*time.Millisecond {
				p.bad(rest[1].column, rest[1].text, "this is too often", "100ms or more")
				e.Every = time.Hour
			}
		} else {
			if e.Until = p.moment(rest[1]); e.Every == 0 {
				p.bad(rest[0].column, "until", "nothing is repeated", "every SPAN until TIME")
			} else if e.Until <= e.At {
				p.bad(rest[1].column, rest[1].text, "it ends before it begins", "a later time")
			}
		}
		rest = rest[2:]
	}
	if len(rest) == 0 {
		p.bad(head.column, head.text, "nothing happens", "at 2h submit NAME")
		return
	}
	e.Column = rest[0].column
	i := slices.Index(verbs[:], rest[0].text)
	if i < 0 {
		p.bad(rest[0].column, rest[0].text, "this cannot happen", strings.Join(verbs[:], ", "))
		return
	}
	e.Verb = Verb(i)
	p.arguments(&e, rest[1:], rest[0], raw)
	if p.sc.Events = append(p.sc.Events, e); len(p.sc.Events) > maxEvents {
		p.bad(head.column, "", "the timeline is too long", "at most 100000 lines")
	}
}

// arguments reads what follows a verb.
func (p *parser) arguments(e *Event, rest []word, verb word, raw string) {
	count := func(least, most int, want string) bool {
		if len(rest) >= least && len(rest) <= most {
			return true
		}
		p.bad(verb.column, verb.text, "this verb wants other words", want)
		return false
	}
	switch e.Verb {
	case Submit:
		if !count(1, 2, "submit NAME, or submit NAME COUNT") {
			return
		}
		e.Name, e.Column = rest[0].text, rest[0].column
		if len(rest) == 2 {
			n, err := strconv.Atoi(rest[1].text)
			if err != nil || n < 1 || n > maxAtOnce {
				p.bad(rest[1].column, rest[1].text, "this is no number of jobs", "1 to 100000")
				n = 1
			}
			e.Count = n
		}
	case Type, Silence:
		if count(0, 1, verb.text+", or "+verb.text+" TIME") && len(rest) == 1 {
			e.For = p.duration(rest[0])
		}
	case Leave:
		count(0, 0, "leave")
	case Load:
		if !count(1, 2, "load NUMBER, or load NUMBER TIME") {
			return
		}
		f, err := strconv.ParseFloat(rest[0].text, 64)
		if err != nil || !(f >= 0 && f <= maxCpus) {
			p.bad(rest[0].column, rest[0].text, "this is no load", "a number from 0 to 65536")
		}
		e.Load = f
		if len(rest) == 2 {
			e.For = p.duration(rest[1])
		}
	case Set:
		if len(rest) < 3 || rest[1].text != "=" {
			p.bad(verb.column, verb.text, "this verb wants other words", "set ATTRIBUTE = EXPRESSION")
			return
		}
		e.Name, e.Text = rest[0].text, strings.TrimSpace(raw[rest[2].column-1:])
		if err := classad.NewAd().SetText(e.Name, e.Text); err != nil {
			p.bad(rest[2].column, e.Text, "this is no expression: "+err.Error(), "a ClassAd expression")
		}
	case Unset:
		if count(1, 1, "unset ATTRIBUTE") {
			e.Name = rest[0].text
		}
	case Vacate:
		e.Manner = ep.Graceful
		if count(1, 2, "vacate SLOT, vacate all, with fast behind it for no consideration") {
			e.Name = rest[0].text
			if _, err := slot.ParseID(e.Name); err != nil && e.Name != "all" {
				p.bad(rest[0].column, e.Name, "this is no slot", "a slot such as slot1 or slot1_1, or all")
			}
			if len(rest) == 2 {
				if rest[1].text != "fast" {
					p.bad(rest[1].column, rest[1].text, "there is no such way to vacate", "fast or nothing")
				}
				e.Manner = ep.Fast
			}
		}
	case Hold, Remove, Release, SuspendJob, ContinueJob:
		if count(1, 1, verb.text+" JOB, its kind, or all") {
			e.Name, e.Column = rest[0].text, rest[0].column
		}
	case Drain:
		if len(rest) > 0 {
			e.Text = strings.TrimSpace(raw[rest[0].column-1:])
		}
		if _, err := parseDrain(e.Text); err != nil {
			p.bad(verb.column, e.Text, err.Error(), "")
		}
	case Shutdown:
		e.Manner = ep.Graceful
		if count(0, 1, "shutdown, or shutdown peaceful, graceful or fast") && len(rest) == 1 {
			m := slices.IndexFunc([]ep.Manner{ep.Peaceful, ep.Graceful, ep.Fast}, func(m ep.Manner) bool { return m.String() == rest[0].text })
			if m < 0 {
				p.bad(rest[0].column, rest[0].text, "there is no such shutdown", "peaceful, graceful or fast")
				m = int(ep.Graceful)
			}
			e.Manner = ep.Manner(m)
		}
	case Reconfigure:
		if count(0, 0, "reconfig with indented lines below") {
			if e.Block = p.block(); e.Block.Text == "" {
				p.bad(verb.column, verb.text, "there is no configuration", "indented lines below")
			}
		}
	}
}

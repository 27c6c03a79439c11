// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
)

// Load reads the configuration that o describes: facts, root file,
// LOCAL_CONFIG_DIR, LOCAL_CONFIG_FILE, the person's own file, the environment
// and the overrides, in this order. The error is a Problems with every problem
// found; there is then no Snapshot.
func Load(o Options) (*Snapshot, error) {
	s, err := LoadPartly(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// LoadPartly is Load, but with an error there is what could be read. It serves
// to find the log in which to say so, and for nothing else.
func LoadPartly(o Options) (*Snapshot, error) {
	from, o := record(o)
	l := newLoader(&o)
	l.from = from
	if o.Root != "" && o.Root != "/dev/null" {
		l.set("CONFIG_ROOT", directoryOf(o.Root), Origin{Kind: Detected})
		l.readRoot(o.Root)
	}
	l.setFacts(isFixedFact)
	if o.Root != "" {
		l.readLocals()
	}
	return l.finish()
}

// Parse is Load with the root file given as text. name stands for the file in
// origins and messages. The local files that the text names are read too, if
// o has the functions for it.
func Parse(name, text string, o Options) (*Snapshot, error) {
	from, o := record(o)
	from.name, from.text, from.parsed = name, text, true
	l := newLoader(&o)
	l.from = from
	l.set("CONFIG_ROOT", directoryOf(name), Origin{Kind: Detected})
	l.readText(&source{name: name}, text)
	l.setFacts(isFixedFact)
	l.readLocals()
	s, err := l.finish()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// loader is one reading under way.
type loader struct {
	o        *Options
	from     *recording
	m        *macros
	problems Problems
	warnings int
	twice    []Problem // knobs whose value further up in the same file does not count
	sources  []string  // as opened, in order
	bytes    int
	stop     bool // an error statement or a limit was met
}

func newLoader(o *Options) *loader {
	subsys := o.Subsystem
	if subsys == "" {
		subsys = "TOOL"
	}
	l := &loader{o: o, m: &macros{subsys: subsys, local: o.LocalName, env: o.Env, seed: o.Seed, windows: o.Windows}}
	if o.LocalName != "" {
		l.m.both = subsys + "." + o.LocalName
	}
	l.m.table.entries = make([]entry, 0, 128)
	l.setFacts(func(string) bool { return true })
	return l
}

// fixedFacts are the facts that no file replaces: they say who and where this
// process is, and what the machine has.
var fixedFacts = [...]string{
	"TILDE", "HOSTNAME", "FULL_HOSTNAME", "USERNAME", "REAL_UID", "REAL_GID", "PID", "PPID", "IP_ADDRESS", "IP_ADDRESS_IS_IPV6",
	"IPV4_ADDRESS", "IPV6_ADDRESS", "DETECTED_CPUS", "DETECTED_CPUS_LIMIT",
}

func isFixedFact(name string) bool {
	return slices.ContainsFunc(fixedFacts[:], func(s string) bool { return equalFold(s, name) })
}

// setFacts stores the facts that are wanted, and what follows from o.
func (l *loader) setFacts(wanted func(string) bool) {
	detected := Origin{Kind: Detected}
	names := make([]string, 0, len(l.o.Facts))
	for name := range l.o.Facts {
		if wanted(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		l.set(name, l.o.Facts[name], detected)
	}
	local := l.m.local
	if local == "" {
		local = l.m.subsys
	}
	l.set("SUBSYSTEM", l.m.subsys, detected)
	l.set("LOCALNAME", local, detected)
	if l.m.table.find("", "CONDOR_VERSION") == nil {
		l.set("CONDOR_VERSION", Version, detected)
	}
}

// set stores a value that needs no reading, in place of an earlier one.
func (l *loader) set(name, value string, origin Origin) {
	l.keep(name, value, origin, nil)
}

// keep stores a value over an earlier one.
func (l *loader) keep(name, value string, origin Origin, earlier []Origin) {
	e := l.m.table.add(name)
	if e.departed && l.o.Trace != nil {
		l.o.Trace(name, e.raw, e.origin)
	}
	if was := e.origin; was.Kind == File && origin.Kind == File && was.File == origin.File && was.Line < origin.Line && len(earlier) == 0 && e.raw != value && isKnob(name) && len(l.twice) < maxProblems {
		l.twice = append(l.twice, Problem{File: origin.File, Line: origin.Line, Column: origin.Column, EndLine: origin.EndLine, Severity: Warning, Class: SetTwice, Knob: name, Value: value,
			Message: fmt.Sprintf("is set again: its value of line %d, %s, does not count", was.Line, clip(e.raw)), Want: "one of the two lines"})
	}
	e.departed = e.departed || strings.Contains(name, ".") || !matchesDefault(name, value, l.m.windows)
	e.raw, e.origin, e.earlier = value, origin, earlier
}

// isKnob reports whether a name is a knob, and not merely one that a family
// would take.
func isKnob(name string) bool {
	return findKnob(bareName(name)) != nil && !isLooseFamily(bareName(name), nil)
}

// assign stores a value in which references to name itself mean its value so
// far. appended says that the text was made by += and already holds that.
func (l *loader) assign(name, text string, origin Origin, appended bool) *Problem {
	if len(text) > maxValueBytes || len(name) > maxNameBytes {
		return &Problem{Class: TooMuch, Value: clip(text), Message: "the name or the value is too long"}
	}
	x := l.expansion(name)
	value, again := x.expandSelf(text, name)
	if l.bytes += len(value); l.bytes > maxTotalBytes {
		l.stop = true
		return &Problem{Class: TooMuch, Message: "the configuration is too large"}
	}
	var earlier []Origin
	if again || appended {
		if _, e, ok := l.m.raw(name); e != nil {
			earlier = append(slices.Clone(e.earlier[max(0, len(e.earlier)-maxEarlier+1):]), e.origin)
		} else if ok {
			earlier = []Origin{{Kind: Default}}
		}
	}
	l.keep(name, value, origin, earlier)
	if len(x.problems) > 0 {
		return x.problems[0]
	}
	return nil
}

func (l *loader) expansion(about string) *expansion {
	return &expansion{macros: l.m, about: about}
}

// value returns what a name expands to at this point of the reading.
func (l *loader) value(name string) string {
	raw, _, _ := l.m.raw(name)
	return l.expansion(name).expand(raw)
}

func (l *loader) report(p *Problem) {
	if len(l.problems)-l.warnings >= maxProblems || l.warnings >= maxProblems && p.Severity == Warning {
		l.stop = l.stop || p.Severity == Error
		return
	}
	l.problems = append(l.problems, p)
	if p.Severity == Warning {
		l.warnings++
	}
	if len(l.problems)-l.warnings == maxProblems {
		l.problems = append(l.problems, &Problem{File: p.File, Class: TooMuch, Message: "too many problems, reading stops here"})
		l.stop = true
	}
}

func (l *loader) readRoot(root string) {
	text, p := l.open(root, isPiped(root), RootMissing)
	if p == nil {
		l.readText(&source{name: root}, text)
		return
	}
	if p.Class == RootMissing {
		p.Message = "cannot read the root configuration: " + p.Message
	}
	if p.Class == BadCommand && text != "" {
		l.readText(&source{name: root}, text)
	}
	l.report(p)
}

// about fills in the name and the place of a setting.
func (l *loader) about(name string, p *Problem) *Problem {
	_, e, _ := l.m.raw(name)
	return l.m.place(p, name, e)
}

// place fills in the name and the place of the setting that p is about; e may
// be nil for a default.
func (m *macros) place(p *Problem, name string, e *entry) *Problem {
	p.Knob = name
	o := Origin{Kind: Default}
	if e != nil {
		o = e.origin
	}
	switch o.Kind {
	case File, Template:
		p.File, p.Line, p.Column, p.EndLine = o.File, o.Line, o.Column, o.EndLine
	default:
		p.File = o.String()
	}
	return p
}

// finish reads what stands above the files. The Snapshot is there with an error
// as well.
func (l *loader) finish() (*Snapshot, error) {
	l.readEnv()
	for _, t := range l.o.Later {
		l.readText(&source{name: t.Name}, t.Text)
	}
	for _, over := range l.o.Overrides {
		name := trim(over.Name)
		if !isValidName(name) {
			l.report(&Problem{File: "<command line>", Value: over.Name, Class: IllegalName, Message: "is not a name of a setting", Want: "letters, digits, _ and ."})
			continue
		}
		l.assignFrom(Origin{Kind: CommandLine, File: over.Where}, name, trim(over.Value))
	}
	l.setFacts(isFixedFact)
	if !l.stop {
		l.autoUse()
	}
	s := &Snapshot{m: l.m, warnings: l.problems, twice: l.twice, sources: l.sources, from: l.from, memory: newMemory(len(l.m.table.entries))}
	if l.problems.Failed() {
		return s, l.problems
	}
	return s, nil
}

// readEnv stores the _CONDOR_ variables.
func (l *loader) readEnv() {
	const prefix = "_CONDOR_"
	for _, kv := range l.o.Env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !hasPrefixFold(name, prefix) {
			continue
		}
		if name = trimRight(name[len(prefix):]); name == "" {
			continue
		}
		l.assignFrom(Origin{Kind: Environment}, name, trimLeft(value))
	}
}

// assignFrom assigns a value that comes from no line.
func (l *loader) assignFrom(origin Origin, name, value string) {
	if p := l.assign(name, value, origin, false); p != nil {
		p.File, p.Knob = origin.String(), name
		l.report(p)
	}
}

func isValidName(name string) bool {
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return false
		}
	}
	return name != ""
}

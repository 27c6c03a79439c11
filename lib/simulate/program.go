// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// The times of the recorded machine: a program begins a second after the
// activation, its starter is reaped at once, a hard kill takes a moment.
const (
	recordedBegin  = time.Second
	recordedHard   = 200 * time.Millisecond
	recordedKill   = 2 * time.Second
	recordedReap   = 100 * time.Millisecond
	shellHard      = time.Second // a shell that waits for its child is slower to go
	shadowPatience = 10*time.Second + 100*time.Millisecond
	longTime       = time.Hour // of a program about which nothing is known
)

// behaviour is how a recorded job behaves, read from its program: sleep, or a
// script of the record.
func (p *replay) behaviour(t *template) Behaviour {
	b := Behaviour{Begins: recordedBegin, Runs: longTime, OnHard: recordedHard, OnKill: recordedKill, Reap: recordedReap}
	text := func(attr string) string { s, _ := t.ad.EvalString(attr, nil); return s }
	cmd := strings.TrimPrefix(text("Cmd"), spool+"/")
	args := arguments(t.ad)
	for i, arg := range args {
		args[i] = strings.TrimPrefix(arg, spool+"/")
	}
	should := text("ShouldTransferFiles")
	signal := cmp.Or(strings.TrimPrefix(text("KillSig"), "SIG"), "TERM")
	cmd, ok := p.hooks(t.ad, &b, cmd)
	if !ok {
		return b
	}
	for _, input := range strings.Split(text("TransferInput"), ",") {
		name := strings.TrimPrefix(input, spool+"/")
		if made, known := p.made(name); input != "" && known && !made {
			b.Begins, b.Fails = 0, true
			return b
		}
	}
	if made, known := p.made(cmd); known && !made && should != "NO" && p.gone(cmd) {
		b.Begins, b.Fails = 0, true // it cannot be had
		return b
	}
	if !p.executable(cmd) {
		b.Stuck, b.OnKill = recordedBegin+shadowPatience, 100*time.Millisecond
		return b
	}
	if strings.HasPrefix(text("In"), "/no/") || should == "NO" && strings.HasPrefix(text("Out"), "/no/") {
		b.Stuck, b.OnKill = shadowPatience, 100*time.Millisecond
		return b
	}
	name := cmd[strings.LastIndexByte(cmd, '/')+1:]
	switch {
	case name == "sleep" && len(args) > 0:
		b.Runs, b.Wall = number(args, 0), true
	case name == "sh" || name == "bash" || strings.HasPrefix(name, "python"):
		if len(args) == 0 {
			b.Runs = 0
			break
		}
		body, rest := strings.Join(args[1:], " "), []string(nil)
		if args[0] != "-c" {
			body, rest = p.r.Scripts[strings.TrimPrefix(args[0], "scripts/")], args[1:]
		}
		b.program(body, rest, signal)
	case name == "cat" || name == "true" || name == "false" || name == "echo":
		b.Runs = 0
	default:
		if body, ok := p.r.Scripts[strings.TrimPrefix(cmd, "scripts/")]; ok {
			b.program(body, args, signal)
		}
	}
	if len(b.Memory) > 0 {
		b.Measured, b.FirstAt = p.interval("STARTER_UPDATE_INTERVAL", 300), p.interval("STARTER_INITIAL_UPDATE_INTERVAL", 2)
	}
	return b
}

func (p *replay) interval(knob string, otherwise int) time.Duration {
	if d, err := p.w.snap.Duration(knob); err == nil && d > 0 {
		return d
	}
	return time.Duration(otherwise) * time.Second
}

// made reports whether a file exists and can be used, as far as commands of the
// record told.
func (p *replay) made(name string) (made, known bool) {
	made, known = p.files["${DIR}/"+name]
	return made, known
}

// gone reports whether a file was taken away again, rather than being of no use.
func (p *replay) gone(name string) bool { return p.removed["${DIR}/"+name] }

// executable reports whether a program of the recorded machine can be run.
func (p *replay) executable(cmd string) bool {
	if made, known := p.made(cmd); known {
		return made
	}
	if strings.HasPrefix(cmd, "/no/") {
		return false
	}
	if name, ok := strings.CutPrefix(cmd, "scripts/"); ok {
		body, ok := p.r.Scripts[name]
		if !ok {
			return false
		}
		first, _, _ := strings.Cut(body, "\n")
		return strings.HasPrefix(first, "#!/") && !strings.HasPrefix(first, "#!/no/")
	}
	return true
}

// hooks lets the hooks of a job's keyword change how it behaves, and returns
// the program it runs then. The record has the text of the hooks. It is false
// if a hook does not let the job start.
func (p *replay) hooks(ad *classad.Ad, b *Behaviour, cmd string) (string, bool) {
	keyword := p.w.snap.String("STARTER_JOB_HOOK_KEYWORD")
	if keyword == "" {
		keyword, _ = ad.EvalString("HookKeyword", nil)
	}
	if keyword == "" {
		return cmd, true
	}
	hook := func(what string) (body string, set, there bool) {
		path := p.w.snap.String(keyword + "_HOOK_" + what)
		body, there = p.r.Scripts[path[strings.LastIndexByte(path, '/')+1:]]
		return body, path != "", there
	}
	for _, h := range []struct {
		what  string
		after time.Duration
	}{{"PREPARE_JOB_BEFORE_TRANSFER", 0}, {"PREPARE_JOB", recordedBegin}} {
		body, set, there := hook(h.what)
		if !set {
			continue
		}
		if !there {
			b.Begins, b.Fails, b.Again = 0, true, true
			return cmd, false
		}
		m := hookStatus.FindStringSubmatch(body)
		if strings.Contains(body, "kill -9 $$") || m != nil && m[1] != "0" && !strings.HasPrefix(m[1], "-") {
			code := 0
			if m != nil {
				code, _ = strconv.Atoi(m[1])
			}
			b.Stuck, b.Again = h.after+shadowPatience, m == nil || code >= 300
			b.OnKill = 100 * time.Millisecond
			return cmd, false
		}
		if m := hookCmd.FindStringSubmatch(body); m != nil {
			cmd = m[1]
		}
	}
	// The end of a job with an exit hook is told by the end of its starter.
	_, set, _ := hook("JOB_EXIT")
	b.Silent = set
	return cmd, true
}

var (
	hookStatus = regexp.MustCompile(`HookStatusCode\s*=\s*(-?[0-9]+)`)
	hookCmd    = regexp.MustCompile(`Cmd = "([^"]*)"`)
	loopCount  = regexp.MustCompile(`-lt (\$?[0-9]+)`)
	trapped    = regexp.MustCompile(`trap (?:"([^"]*)"|'([^']*)') (?:SIG)?([A-Z0-9]+)`)
	sleeping   = regexp.MustCompile(`sleep[ (]+(\$?[0-9.]+)`)
	exiting    = regexp.MustCompile(`exit (\$?[0-9]+)`)
	growing    = regexp.MustCompile(`bytearray\(([0-9]+)\*1024\*1024\)`)
	counting   = regexp.MustCompile(`range\(([0-9]+)\)`)
)

// maxRepeat is how often a loop of a recorded program goes round, at most.
const maxRepeat = 10_000

// program reads from the text of a script how long it runs and what it does
// with a signal.
func (b *Behaviour) program(body string, args []string, signal string) {
	value := func(word string) time.Duration {
		if i, ok := strings.CutPrefix(word, "$"); ok {
			n, _ := strconv.Atoi(i)
			return number(args, n-1)
		}
		f, _ := strconv.ParseFloat(word, 64)
		return time.Duration(f * float64(time.Second))
	}
	if strings.Contains(body, "kill -9 $$") {
		b.Runs = 0
		return
	}
	repeat, loops := time.Duration(1), false
	if m := loopCount.FindStringSubmatch(body); m != nil {
		b.Runs, loops = value(m[1]), true
	} else if m := counting.FindStringSubmatch(body); m != nil {
		n, _ := strconv.Atoi(m[1])
		repeat = time.Duration(min(n, maxRepeat))
	}
	plain := trapped.ReplaceAllString(body, "")
	if !loops {
		b.Runs = 0
		for _, m := range sleeping.FindAllStringSubmatch(plain, -1) {
			b.Runs += value(m[1])
		}
		b.Runs *= repeat
	}
	if m := growing.FindStringSubmatch(body); m != nil {
		mib, _ := strconv.ParseInt(m[1], 10, 32)
		for i := range int(repeat) {
			b.Memory = append(b.Memory, Step{At: b.Runs / repeat * time.Duration(i), KiB: mib * int64(i+1) << 10})
		}
	}
	for _, m := range trapped.FindAllStringSubmatch(body, -1) {
		do := m[1] + m[2]
		// A shell that is cleaning up is not hurried by a fast shutdown.
		b.OnHard = shellHard
		if m[3] != signal {
			continue
		}
		switch s := sleeping.FindStringSubmatch(do); {
		case s != nil:
			b.OnSoft = value(s[1])
		case !strings.Contains(do, "exit"):
			b.OnSoft = Never
		}
	}
	if strings.Contains(body, "trap") && len(exiting.FindStringSubmatch(plain)) > 1 {
		n, _ := strconv.Atoi(exiting.FindStringSubmatch(plain)[1])
		b.Code = n
	}
}

// number is the i-th argument as seconds.
func number(args []string, i int) time.Duration {
	if i < 0 || i >= len(args) {
		return 0
	}
	f, _ := strconv.ParseFloat(strings.Trim(args[i], `"'`), 64)
	return time.Duration(min(f, 1e9) * float64(time.Second))
}

// arguments are the words of a job's arguments.
func arguments(ad *classad.Ad) []string {
	if s, ok := ad.EvalString("Args", nil); ok {
		return strings.Fields(s)
	}
	s, _ := ad.EvalString("Arguments", nil)
	var out []string
	word, quoted, open := strings.Builder{}, false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' && quoted && i+1 < len(s) && s[i+1] == '\'':
			word.WriteByte(c)
			i++
		case c == '\'':
			quoted, open = !quoted, true
		case c == ' ' && !quoted:
			if open {
				out = append(out, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

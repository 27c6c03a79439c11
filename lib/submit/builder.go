// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// builder makes the ads of one queue statement.
type builder struct {
	problemList
	d    *Description
	q    *queue
	live []pair // macros of the job being made: loop variables and the job's numbers
	rand *rand.Rand

	attrs  []attr         // of the job being made, in the order they were set
	where  map[string]int // index in attrs by name in lower case
	parent *classad.Ad    // what the jobs of q have in common: the first job
	common map[string]*classad.Expr

	tentative bool // only mistakes that are there whatever the macros are

	value  *setting        // the command looked at last, for messages
	iwd    string          // of the job being made
	dirs   map[string]bool // initialdirs already looked at
	warned map[string]bool
}

type pair struct{ name, value string }

type attr struct {
	name string
	expr *classad.Expr
}

func (d *Description) builder(q *queue) *builder {
	h := fnv.New64a()
	h.Write([]byte(d.name + "\x00" + d.opts.Owner + "\x00" + strconv.Itoa(d.opts.Cluster)))
	seed := uint64(0)
	if !d.opts.Now.IsZero() {
		seed = uint64(d.opts.Now.UnixNano())
	}
	return &builder{d: d, q: q, where: map[string]int{}, dirs: map[string]bool{}, warned: map[string]bool{},
		rand: rand.New(rand.NewPCG(seed, h.Sum64()+uint64(q.first)))}
}

// job makes the ad of job i of the queue statement, nil when it has problems.
func (b *builder) job(q *queue, i int) *classad.Ad {
	b.attrs = b.attrs[:0]
	clear(b.where)
	it, step := item{}, i%q.count
	if len(q.items) > 0 {
		it = q.items[i/q.count]
	}
	proc := q.first + i
	b.live = b.live[:0]
	for j, v := range q.values(it) {
		b.live = append(b.live, pair{q.vars[j], v})
	}
	number := strconv.Itoa
	cluster, row := number(b.d.opts.Cluster), number(it.index)
	b.live = append(b.live,
		pair{"ClusterId", cluster}, pair{"Cluster", cluster},
		pair{"ProcId", number(proc)}, pair{"Process", number(proc)},
		pair{"ItemIndex", row}, pair{"Row", row}, pair{"Step", number(step)},
		pair{"JobId", cluster + "." + number(proc)})
	failed := len(b.problems)
	b.attributes(proc)
	if Problems(b.problems[failed:]).Failed() {
		return nil
	}
	return b.ad()
}

// ad makes an ad of the attributes. What is the same in the first job comes
// from the parent.
func (b *builder) ad() *classad.Ad {
	ad := classad.NewAd()
	if b.parent == nil {
		b.parent, b.common = classad.NewAd(), make(map[string]*classad.Expr, len(b.attrs))
		for _, a := range b.attrs {
			if a.name != "ProcId" {
				b.parent.Set(a.name, a.expr)
				b.common[a.name] = a.expr
			}
		}
	}
	same := 0
	for _, a := range b.attrs {
		if e, ok := b.common[a.name]; ok {
			same++
			if e == a.expr {
				continue
			}
		}
		ad.Set(a.name, a.expr)
	}
	if same < len(b.common) {
		// The first job has an attribute this one lacks: no parent then.
		for _, a := range b.attrs {
			ad.Set(a.name, a.expr)
		}
		return ad
	}
	ad.SetParent(b.parent)
	return ad
}

// lookup finds the text of a macro: a loop variable, a setting of the
// description, or a built-in one.
func (b *builder) lookup(name string) (string, bool) {
	fixed := len(b.q.vars)
	for i, p := range b.live {
		if i < fixed && strings.EqualFold(p.name, name) {
			return p.value, true
		}
	}
	if s := b.q.find(name); s != nil {
		s.used = true
		return s.raw, true
	}
	for _, p := range b.live {
		if strings.EqualFold(p.name, name) {
			return p.value, true
		}
	}
	return b.d.builtIn(name)
}

// builtIn gives the macros that need no job.
func (d *Description) builtIn(name string) (string, bool) {
	o := &d.opts
	yes := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	switch strings.ToLower(name) {
	case "arch":
		return o.Arch, true
	case "opsys":
		return o.OpSys, true
	case "islinux":
		return yes(o.OpSys == "LINUX"), true
	case "iswindows":
		return yes(o.OpSys == "WINDOWS"), true
	case "cluster", "clusterid", "joblistid":
		return strconv.Itoa(o.Cluster), true
	case "process", "procid", "row", "itemindex", "step", "taskid":
		return "0", true
	case "node":
		return "", true
	case "submit_file":
		return d.name, true
	case "submit_time":
		return strconv.FormatInt(o.Now.Unix(), 10), true
	case "year":
		return o.Now.Format("2006"), true
	case "month":
		return o.Now.Format("01"), true
	case "day":
		return o.Now.Format("02"), true
	}
	return "", false
}

func (b *builder) expander() *expander {
	return &expander{lookup: b.lookup, opts: &b.d.opts, seed: b.rand.Uint64()}
}

// get returns the expanded value of a command, under the first of its names
// that has one. An empty value is none.
func (b *builder) get(names ...string) (string, bool) {
	for _, name := range names {
		s := b.setting(name)
		if s == nil {
			continue
		}
		s.used = true
		if value := b.expand(s); value != "" {
			b.value = s
			if strings.Contains(value, "$$(") && !matchedLater(name) {
				b.bad(strings.Index(value, "$$("), Problem{Value: value, Message: "$$( ) is not supported here: it would need the machine that the job is matched with",
					Want: "a value that is known now; arguments and environment may have $$( )", Kind: errs.Unsupported})
			}
			return value, true
		}
	}
	return "", false
}

// matchedLater reports whether $$(Attr) in a command is left for the machine
// that the job is matched with. Files have to be known now.
func matchedLater(name string) bool {
	switch strings.ToLower(name) {
	case "arguments", "args", "arguments2", "environment", "env", "environment2", "shell":
		return true
	}
	return false
}

// setting finds a command by name: a loop variable may be one, too.
func (b *builder) setting(name string) *setting {
	for i, v := range b.q.vars {
		if i < len(b.live) && strings.EqualFold(v, name) {
			return &setting{name: v, raw: b.live[i].value, line: b.q.line}
		}
	}
	return b.q.find(name)
}

// expand returns the value of a setting without the blanks around it.
func (b *builder) expand(s *setting) string {
	if !strings.Contains(s.raw, "$") {
		return s.raw
	}
	x := b.expander()
	// A setting that mentions itself again through another one goes in circles.
	x.within = append(x.within, s.name)
	value := strings.Trim(x.expand(s.raw), blanks)
	if b.tentative {
		return value
	}
	if x.err != nil {
		ln, column := s.line.at(s.at)
		b.fail(Problem{File: b.d.name, Line: ln, Column: column, Command: s.name, Value: x.err.text, Message: x.err.message, Want: x.err.want})
		return ""
	}
	for _, name := range x.missing {
		if !b.warned[name] {
			b.warned[name] = true
			ln, column := s.line.at(s.at)
			b.fail(Problem{File: b.d.name, Line: ln, Column: column, Command: s.name, Value: "$(" + name + ")", Warning: true,
				Message: "this macro has no value here"})
		}
	}
	return value
}

// bad reports a mistake in the value of the command looked at last, offset
// bytes into it if no macro has moved it.
func (b *builder) bad(offset int, pr Problem) {
	s := b.value
	if strings.Contains(s.raw, "$") {
		if b.tentative {
			return
		}
		offset = 0
	}
	pr.File, pr.Command = b.d.name, s.name
	pr.Line, pr.Column = s.line.at(min(s.at+offset, len(s.line.text)))
	b.fail(pr)
}

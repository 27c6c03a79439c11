// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// queue is a queue statement with the settings in force at its line.
type queue struct {
	line  *line
	view      // the settings in force at its line
	first int // ProcId of its first job
	count int // jobs for each item
	vars  []string
	items []item
}

// item is what the loop variables of some jobs are taken from.
type item struct {
	text  string
	index int // in the list, before a slice was cut from it
}

func (q *queue) jobs() int { return q.count * len(q.items) }

// values parts the text of an item into values of the loop variables: at
// commas or blanks, at the unit separator if there is one; the last variable
// takes all that is left.
func (q *queue) values(it item) []string {
	values := make([]string, 0, len(q.vars))
	rest := strings.Trim(it.text, blanks)
	for len(values) < len(q.vars)-1 {
		value := rest
		if v, after, ok := strings.Cut(rest, "\x1f"); ok {
			value, rest = v, after
		} else if i := strings.IndexAny(rest, blanks+","); i >= 0 {
			value, rest = rest[:i], strings.TrimLeft(rest[i:], blanks)
			rest = strings.TrimPrefix(rest, ",")
		} else {
			rest = ""
		}
		values = append(values, strings.Trim(value, blanks))
		rest = strings.TrimLeft(rest, blanks)
	}
	if len(q.vars) > 0 {
		values = append(values, rest)
	}
	return values
}

// queueText is the text behind queue with macros expanded, read bit by bit.
type queueText struct {
	p        *parser
	line     *line
	at       int // offset of the arguments in line.text
	expanded bool
	text     string
}

// bad reports a mistake at the given offset of the text.
func (t *queueText) bad(offset int, pr Problem) {
	pr.Command = "queue"
	if t.expanded {
		offset = 0
	}
	t.p.at(t.line, min(t.at+offset, len(t.line.text)), pr)
}

// keyword finds the first of the words in text, standing between blanks or
// before a parenthesis.
func keyword(text string, words ...string) (at int, found string) {
	for i := 0; i < len(text); i++ {
		if i > 0 && !strings.ContainsRune(blanks, rune(text[i-1])) {
			continue
		}
		for _, w := range words {
			if len(text)-i >= len(w) && strings.EqualFold(text[i:i+len(w)], w) &&
				(len(text) == i+len(w) || strings.ContainsRune(blanks+"([", rune(text[i+len(w)]))) {
				return i, w
			}
		}
	}
	return -1, ""
}

// queue reads a queue statement whose arguments begin at offset of l, with the
// lines of its list, and adds it to the description.
func (p *parser) queue(l *line, offset int) {
	x := p.expander()
	t := &queueText{p: p, line: l, at: offset, text: x.expand(l.text[offset:])}
	t.expanded = t.text != l.text[offset:]
	before := p.problems.Failed()
	p.macroProblems(x, l, offset, "queue")
	q := &queue{line: l, view: p.table.now(), first: p.d.total, count: 1}
	p.readQueue(t, q)
	if !before && p.problems.Failed() {
		return
	}
	if len(p.d.queues) >= maxQueues {
		t.bad(0, Problem{Message: "too many queue statements", Want: "at most " + strconv.Itoa(maxQueues)})
		return
	}
	if q.count > maxJobs || len(q.items) > maxJobs || p.d.total+q.count*len(q.items) > maxJobs {
		t.bad(0, Problem{Message: "too many jobs", Want: fmt.Sprintf("at most %d in all", maxJobs)})
		return
	}
	p.d.total += q.jobs()
	p.d.queues = append(p.d.queues, q)
}

func (p *parser) readQueue(t *queueText, q *queue) {
	at, mode := keyword(t.text, "in", "from", "matching")
	if at < 0 {
		q.items = []item{{}}
		q.count = t.countOf(t.text, 0)
		return
	}
	q.vars = t.variables(t.text[:at], q)
	rest := t.text[at+len(mode):]
	offset := func() int { return len(t.text) - len(rest) }
	kind, cut := "", slice{}
	for {
		rest = strings.TrimLeft(rest, blanks)
		if w, found := keyword(rest, "files", "dirs", "any", "table"); w == 0 {
			if found == "table" || mode != "matching" {
				t.bad(offset(), Problem{Value: found, Message: "this word cannot stand here", Want: "files, dirs or any behind matching; a list or a file name behind in and from", Kind: errs.Unsupported})
				return
			}
			kind, rest = found, rest[len(found):]
			continue
		}
		if !strings.HasPrefix(rest, "[") {
			break
		}
		var after string
		var ok bool
		if cut, after, ok = parseSlice(rest); !ok {
			t.bad(offset(), Problem{Value: rest, Message: "this is no slice", Want: "[start:end:step] with integers that may be left out, and a step above 0"})
			return
		}
		rest = after
	}
	lines, ok := p.itemLines(t, rest, mode, offset())
	if !ok {
		return
	}
	var names []string
	for _, text := range lines {
		if mode == "from" {
			names = append(names, text)
		} else {
			names = append(names, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) })...)
		}
	}
	if mode == "matching" {
		if names, ok = p.match(t, names, kind, offset()); !ok {
			return
		}
	}
	for i, text := range names {
		if cut.has(i, len(names)) {
			q.items = append(q.items, item{text, i})
		}
	}
	if len(q.items) == 0 {
		t.p.warn(t.line, t.at, "queue", "the list is empty, so there are no jobs")
	}
}

func (p *parser) warn(l *line, offset int, command, message string) {
	p.at(l, offset, Problem{Command: command, Message: message, Warning: true})
}

// countOf reads the number of jobs; none is 1.
func (t *queueText) countOf(text string, offset int) int {
	text = strings.Trim(text, blanks)
	if text == "" {
		return 1
	}
	n, ok := evalInt(text)
	switch {
	case !ok:
		t.bad(offset, Problem{Value: text, Message: "this is no number of jobs", Want: "an integer, or VARIABLE in, from or matching and a list"})
	case n < 0 || n > maxJobs:
		t.bad(offset, Problem{Value: text, Message: "the number of jobs is out of range", Want: fmt.Sprintf("0 to %d", maxJobs)})
	default:
		return int(n)
	}
	return 0
}

// variables reads what stands before in, from or matching: perhaps a count,
// perhaps names of variables. No name means Item.
func (t *queueText) variables(text string, q *queue) []string {
	end := len(strings.TrimRight(text, blanks))
	start := end
	for start > 0 {
		// Step over one word from the right, if it can be a name.
		from := start
		for from > 0 && !strings.ContainsRune(blanks+",", rune(text[from-1])) {
			from--
		}
		if w := text[from:start]; w != "" && (!isName(w) || !isLetter(w[0]) && w[0] != '_') {
			break
		}
		start = from
		for start > 0 && strings.ContainsRune(blanks+",", rune(text[start-1])) {
			start--
		}
	}
	q.count = t.countOf(text[:start], 0)
	vars := strings.FieldsFunc(text[start:end], func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) })
	if len(vars) == 0 {
		return []string{"Item"}
	}
	return vars
}

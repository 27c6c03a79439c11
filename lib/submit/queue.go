// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"io/fs"
	"slices"
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

// itemLines returns the lines of the list that begins with rest: between
// parentheses on this line or on the following ones, in a file (from), or
// plainly behind the keyword.
func (p *parser) itemLines(t *queueText, rest, mode string, offset int) ([]string, bool) {
	rest = strings.Trim(rest, blanks)
	inner, open := strings.CutPrefix(rest, "(")
	switch {
	case open && strings.HasSuffix(inner, ")"):
		return []string{strings.Trim(strings.TrimSuffix(inner, ")"), blanks)}, true
	case open:
		return p.inlineItems(t, strings.Trim(inner, blanks), offset)
	case rest == "":
		want := "items behind " + mode
		if mode == "from" {
			want = "a file name or a list in parentheses behind from"
		}
		t.bad(len(t.text), Problem{Message: "nothing to take items from", Want: want})
		return nil, false
	case mode != "from":
		return []string{rest}, true
	}
	if strings.HasSuffix(rest, "|") || rest == "-" {
		t.bad(offset, Problem{Value: rest, Message: "items from a command or from standard input are not supported", Want: "a file name", Kind: errs.Unsupported})
		return nil, false
	}
	data, err := p.d.opts.readFile(unquote(rest))
	if err != nil {
		t.bad(offset, Problem{Value: rest, Message: "the file with the items cannot be read: " + err.Error(), Want: "a file that can be read"})
		return nil, false
	}
	r := lineReader{rest: data}
	var lines []string
	for l, ok := r.next(); ok; l, ok = r.next() {
		lines = append(lines, l.text)
	}
	return lines, true
}

// inlineItems reads the lines after the queue line up to one that begins with
// a closing parenthesis.
func (p *parser) inlineItems(t *queueText, first string, offset int) ([]string, bool) {
	var lines []string
	if first != "" {
		lines = append(lines, first)
	}
	for {
		l, ok := p.reader.next()
		if !ok {
			t.bad(offset, Problem{Message: "the list that starts here does not end", Want: "a line with a closing parenthesis"})
			return nil, false
		}
		if strings.HasPrefix(l.text, ")") {
			if after := strings.Trim(l.text[1:], blanks); after != "" {
				p.at(l, 1, Problem{Command: "queue", Value: after, Message: "text behind the closing parenthesis", Want: "nothing"})
				return nil, false
			}
			return lines, true
		}
		lines = append(lines, l.text)
	}
}

// readFile reads a file named in a description.
func (o *Options) readFile(name string) (string, error) {
	if o.DirFS == nil {
		return "", fmt.Errorf("no files can be read here")
	}
	dir, base := splitDir(fullPath(o.Cwd, name))
	info, err := fs.Stat(o.DirFS(dir), base)
	if err != nil {
		return "", err
	}
	if info.IsDir() || info.Size() > maxText {
		return "", fmt.Errorf("it is a directory or larger than %d bytes", maxText)
	}
	data, err := fs.ReadFile(o.DirFS(dir), base)
	return string(data), err
}

// match returns the names that fit the patterns, sorted for each pattern,
// every name once.
func (p *parser) match(t *queueText, patterns []string, kind string, offset int) ([]string, bool) {
	if p.d.opts.DirFS == nil {
		t.bad(offset, Problem{Message: "no files can be looked at here", Want: "in or from with a list", Kind: errs.Unsupported})
		return nil, false
	}
	var names []string
	seen := map[string]bool{}
	for _, pattern := range patterns {
		list, err := p.d.opts.glob(unquote(pattern))
		if err != nil {
			t.bad(offset, Problem{Value: pattern, Message: err.Error(), Want: "a file name pattern with *, ? and [ ]"})
			return nil, false
		}
		found := false
		for _, name := range list {
			info, ok := p.d.opts.stat(fullPath(p.d.opts.Cwd, name))
			if !ok || kind == "files" && info.IsDir() || kind == "dirs" && !info.IsDir() {
				continue
			}
			found = true
			if info.IsDir() {
				name += "/"
			}
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		if !found {
			p.warn(t.line, t.at, "queue", clip(pattern)+" matches nothing")
		}
	}
	return names, true
}

// glob lists the names that fit a pattern, written the way the pattern is.
func (o *Options) glob(pattern string) ([]string, error) {
	dir, rel, prefix := o.Cwd, pattern, ""
	if isAbs(pattern) {
		dir, rel, prefix = "/", strings.TrimLeft(pattern, "/"), "/"
	}
	for {
		if after, ok := strings.CutPrefix(rel, "./"); ok {
			rel, prefix = strings.TrimLeft(after, "/"), prefix+"./"
		} else if after, ok := strings.CutPrefix(rel, "../"); ok {
			rel, prefix = strings.TrimLeft(after, "/"), prefix+"../"
			dir, _ = splitDir(strings.TrimRight(dir, "/"))
		} else {
			break
		}
	}
	list, err := fs.Glob(o.DirFS(dir), rel)
	slices.Sort(list)
	for i := range list {
		list[i] = prefix + list[i]
	}
	return list, err
}

// slice is [start:end:step] behind in, from or matching, as in Python.
type slice struct {
	set              bool
	start, end       int
	hasStart, hasEnd bool
	single           bool
	step             int
}

func parseSlice(text string) (s slice, rest string, ok bool) {
	inner, after, found := strings.Cut(text[1:], "]")
	parts := strings.Split(inner, ":")
	if !found || len(parts) > 3 {
		return s, text, false
	}
	s = slice{set: true, step: 1, single: len(parts) == 1}
	for i, part := range parts {
		if part = strings.Trim(part, blanks); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return s, text, false
		}
		switch i {
		case 0:
			s.start, s.hasStart = n, true
		case 1:
			s.end, s.hasEnd = n, true
		case 2:
			s.step = n
		}
	}
	return s, after, s.step > 0 && (!s.single || s.hasStart)
}

// has reports whether the slice of a list of n has element i.
func (s slice) has(i, n int) bool {
	if !s.set {
		return true
	}
	start, end := 0, n
	if s.hasStart {
		if start = s.start; start < 0 {
			start = max(0, start+n)
		}
	}
	if s.single {
		return i == start
	}
	if s.hasEnd {
		if end = s.end; end < 0 {
			end += n
		}
	}
	return i >= start && i < end && (i-start)%s.step == 0
}

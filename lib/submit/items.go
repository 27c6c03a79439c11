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
	if info.IsDir() || info.Size() > MaxText {
		return "", fmt.Errorf("it is a directory or larger than %d bytes", MaxText)
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// includeOptions is what may stand between include and the colon:
// [ifexist] [command [into FILE]].
type includeOptions struct {
	ifExists, command bool
	into              string
}

func parseInclude(words []string) (o includeOptions, bad string) {
	if len(words) > 0 && (words[0] == "ifexist" || words[0] == "ifexists") {
		o.ifExists = true
		words = words[1:]
	}
	if len(words) == 0 {
		return o, ""
	}
	if words[0] != "command" && words[0] != "output" {
		return o, words[0]
	}
	o.command = true
	if words = words[1:]; len(words) == 0 || words[0] != "into" {
		return o, ""
	}
	if len(words) == 1 {
		return o, words[0]
	}
	o.into = words[1]
	return o, ""
}

// include reads another file, or what a command writes, in place of the
// statement. Its ifs are its own: they must be closed in it.
func (l *loader) include(s statement, keywordsAt int, keywords, written string, at int) {
	o, bad := parseInclude(strings.Fields(keywords))
	if bad != "" {
		p := s.problem(keywordsAt+1, IncludeKeyword, "unexpected word after include")
		if bad == "into" {
			p.Message = "into needs a file name"
		}
		p.Value, p.Want = bad, "ifexist, command, or command into FILE"
		l.report(p)
		return
	}
	fail := func(class Class, message, value, want string) {
		p := s.problem(at, class, message)
		p.Value, p.Want = value, want
		l.report(p)
	}
	if s.template != "" {
		fail(BadInclude, "a template cannot include", written, "")
		return
	}
	if s.depth+1 >= maxNestedSource {
		l.stop = true
		fail(BadInclude, "includes are nested too deep", written, "no file that includes itself")
		return
	}
	x := l.expansion("")
	name := x.expand(written)
	into := x.expand(o.into)
	l.expandProblems(s, at, "", x)
	if o.into != "" && (into == "" || strings.HasSuffix(into, "|")) {
		fail(BadInclude, "into needs the name of a file", o.into, "a file name")
		return
	}

	text, p := l.openInclude(name, o, into)
	if p != nil {
		if !o.ifExists || p.Class == TooMuch {
			fail(p.Class, "cannot include: "+p.Message, name, p.Want)
		}
		return
	}
	inner := &source{name: name, depth: s.depth + 1, within: append(slices.Clone(s.within), s.origin())}
	l.readText(inner, text)
}

// openInclude gets the text. With into, a copy in that file is used if there
// is one, and made if not.
func (l *loader) openInclude(name string, o includeOptions, into string) (string, *Problem) {
	if into != "" {
		if text, p := l.open(into, false, BadInclude); p == nil {
			return text, nil
		}
	}
	command := o.command || isPiped(name)
	if command && !o.command && !strings.HasSuffix(name, "|") {
		return "", &Problem{Class: BadInclude, Message: "a command must end in |", Want: "COMMAND |"}
	}
	text, p := l.open(name, command, BadInclude)
	if p != nil && p.Class == BadCommand && into == "" && l.o.RunCommand != nil {
		p = nil // the status of an included command does not count
	}
	if p != nil && p.Class == BadCommand {
		p.Class = BadInclude
	}
	if p != nil && !command && l.o.ReadDir != nil {
		if _, err := l.o.ReadDir(name); err == nil {
			return "", nil // a directory reads as an empty file
		}
	}
	if p != nil || into == "" || l.o.WriteFile == nil {
		return text, p
	}
	if err := l.o.WriteFile(into, []byte(text)); err != nil {
		return "", &Problem{Class: BadInclude, Message: "cannot write the copy: " + err.Error(), Want: "a writable place"}
	}
	return text, nil
}

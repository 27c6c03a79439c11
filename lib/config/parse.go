// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
)

// source is one text being read: a file, a command's output or a template.
type source struct {
	name   string
	depth  int      // of include and use
	within []Origin // the statements that led here

	// For a template: its name, the templates around it, and the statement
	// in a file that all of it stands for.
	template string
	uses     []string
	use      Origin
	count    int // of statements so far
}

// statement is one logical line under way.
type statement struct {
	*source
	*line
}

// origin says where a value given by the statement comes from.
func (s statement) origin() Origin {
	if s.template != "" {
		o := s.use
		o.Kind, o.Template, o.TemplateLine, o.Uses = Template, s.template, s.count-1, s.uses
		return o
	}
	ln, col := s.at(0)
	return Origin{Kind: File, File: s.name, Line: ln, Column: col, EndLine: s.last}
}

// problem makes a Problem about the word at offset off of the statement.
func (s statement) problem(off int, class Class, message string) *Problem {
	p := &Problem{Class: class, Message: message, Within: s.within}
	if s.template != "" {
		p.File, p.Line, p.Column, p.EndLine = s.use.File, s.use.Line, s.use.Column, s.use.EndLine
		return p
	}
	p.File, p.EndLine = s.name, s.last
	p.Line, p.Column = s.at(off)
	return p
}

// hereDocument is a value of several lines being gathered.
type hereDocument struct {
	name, tag string
	begin     Origin
	lines     []string
}

// readText reads all statements of a text.
func (l *loader) readText(src *source, text string) {
	// HTCondor has no word for the mark that some editors write: it takes it for a part of
	// the first name, and refuses the file.
	text, marked := strings.CutPrefix(text, byteOrderMark)
	if marked {
		l.report(&Problem{File: src.name, Line: 1, Column: 1, EndLine: 1, Within: src.within, Class: IllegalName,
			Message: "the file begins with a byte order mark, U+FEFF, which HTCondor takes for a part of the first name", Want: "the file saved as UTF-8 without a byte order mark"})
	}
	r := lineReader{rest: text}
	var ln line
	s := statement{src, &ln}
	r.cutBy = func(num, col int) {
		l.report(&Problem{File: src.name, Line: num, Column: col, EndLine: num, Within: src.within, Severity: Warning, Class: Suspicious,
			Message: "this comment ends the continued value above it", Want: `a \ at its end to go on`})
	}
	var ifs ifStack
	var here *hereDocument
	strict := false
	for !l.stop && r.next(&ln) {
		if ln.text == "" || ln.text[0] == '#' {
			switch strings.ToLower(ln.text) {
			case "#opt:oldcomment":
				r.oldComments = true
			case "#opt:newcomment":
				r.oldComments = false
			case "#opt:strict":
				strict = true
			}
			continue
		}
		src.count++
		if here != nil {
			if ln.text[0] == '@' && ln.text[1:] == here.tag {
				o := s.origin()
				o.Line, o.Column = here.begin.Line, here.begin.Column
				l.store(s, 0, here.name, strings.Join(here.lines, "\n"), o, false)
				here = nil
			} else {
				here.lines = append(here.lines, ln.text)
			}
			continue
		}
		// A colon hides the lines of an if from very old versions.
		if ln.text[0] == ':' && (ifs.open() || isWord(ln.text[1:], "if")) {
			ln.text = ln.text[1:]
			ln.joints[0].col++
			for i := range ln.joints[1:] {
				ln.joints[1+i].off--
			}
			if ln.text == "" {
				continue
			}
		}
		if l.condition(s, &ifs) || !ifs.active() {
			continue
		}
		here = l.execute(s, strict)
	}
	if l.stop {
		return
	}
	if here != nil {
		l.report(&Problem{File: here.begin.File, Line: here.begin.Line, Column: here.begin.Column, EndLine: r.num, Within: src.within,
			Knob: here.name, Class: OpenHereDocument, Message: "the value never ends", Want: "a line @" + here.tag})
	}
	if ifs.open() {
		at := ifs.begun[len(ifs.begun)-1]
		l.report(&Problem{File: src.name, Line: at.line, Column: at.col, EndLine: r.num, Within: src.within,
			Class: UnclosedIf, Message: "the file ends inside this if", Want: "endif"})
	}
}

// byteOrderMark is U+FEFF as UTF-8 has it.
const byteOrderMark = "\ufeff"

// isWord reports whether text begins with word, in any case, and a blank or
// nothing follows.
func isWord(text, word string) bool {
	return hasPrefixFold(text, word) && (len(text) == len(word) || isSpace(text[len(word)]))
}

// operator is what stands between the name and the value.
type operator struct {
	kind  byte // '=', ':', '@' for @=, '+' for +=
	start int  // offset of its first character
	end   int  // offset behind it, blanks not skipped
	sep   string
}

// findOperator looks for the operator of a statement: directly behind the
// first word or, after a blank, at the first of = : @ and + wherever that
// stands. nameEnd is where the first word ends.
func findOperator(text string) (nameEnd int, op operator, ok bool) {
	for nameEnd < len(text) && !isSpace(text[nameEnd]) && text[nameEnd] != '=' && text[nameEnd] != ':' {
		nameEnd++
	}
	if nameEnd == len(text) {
		return nameEnd, op, false
	}
	i := nameEnd
	if c := text[i]; c == '=' || c == ':' {
		return nameEnd, operator{kind: c, start: i, end: i + 1}, true
	}
	i = nameEnd + strings.IndexAny(text[nameEnd:], "=:@+")
	if i < nameEnd {
		return nameEnd, op, false
	}
	op = operator{kind: text[i], start: i, end: i + 1}
	if op.kind == '=' || op.kind == ':' {
		return nameEnd, op, true
	}
	if op.kind == '+' && op.end < len(text) && strings.IndexByte(",;|&*", text[op.end]) >= 0 {
		sep := text[op.end]
		op.sep = string(sep)
		op.end++
		if op.end < len(text) && text[op.end] == sep {
			op.sep = " " + op.sep + op.sep + " "
			op.end++
		}
	} else if op.kind == '+' {
		op.sep = " "
	}
	if op.end >= len(text) || text[op.end] != '=' {
		return nameEnd, op, false
	}
	op.end++
	return nameEnd, op, true
}

// execute does what one statement says. It returns a here-document that the
// statement begins.
func (l *loader) execute(s statement, strict bool) *hereDocument {
	text := s.text
	nameEnd, op, ok := findOperator(text)
	if !ok {
		if text[0] == '[' && nameEnd == len(text) {
			return nil // a heading, for configurations that are also .ini files
		}
		p := s.problem(nameEnd, Syntax, "cannot be read as a statement")
		p.Value, p.Want = text, "NAME = value"
		l.report(p)
		return nil
	}
	name := text[:nameEnd]
	rhsAt := op.end + len(text[op.end:]) - len(trimLeft(text[op.end:]))
	rhs := text[rhsAt:]

	if op.kind == ':' {
		between := trim(text[nameEnd:op.start])
		switch keyword := strings.TrimPrefix(name, "@"); {
		case equalFold(keyword, "use"):
			l.use(s, between, rhs, rhsAt)
			return nil
		case equalFold(keyword, "include"):
			l.include(s, nameEnd, between, rhs, rhsAt)
			return nil
		case equalFold(keyword, "error"), equalFold(keyword, "warning"):
			p := s.problem(rhsAt, Statement, l.expansion("").expand(rhs))
			if equalFold(keyword, "warning") {
				p.Severity = Warning
			} else {
				l.stop = true
			}
			if p.Message == "" {
				p.Message = strings.ToLower(keyword) + " statement"
			}
			l.report(p)
			return nil
		}
		if !equalFold(name, "RunBenchmarks") {
			p := s.problem(op.start, ColonAssignment, "a colon is an obsolete way to assign")
			p.Knob, p.Value, p.Want = name, text, name+" = "+rhs
			if !strict {
				p.Severity = Warning
			}
			l.report(p)
			if strict {
				return nil
			}
		}
	} else if word := trim(text[nameEnd:op.start]); word != "" {
		p := s.problem(nameEnd+1, Suspicious, "words between the name and the operator are ignored")
		p.Knob, p.Value, p.Want, p.Severity = name, word, name+" = …", Warning
		l.report(p)
	}

	written := name
	if strings.Contains(name, "$") {
		x := l.expansion(name)
		name = x.expand(name)
		l.expandProblems(s, 0, "", x)
	}
	if !isValidName(name) {
		p := s.problem(0, IllegalName, "is not a name of a setting")
		p.Value, p.Want = name, "letters, digits, _ and ."
		if name == "" && written != "" {
			p.Value = written
		}
		if p.Value == "" {
			p.Message = "the name of a setting is missing"
		}
		l.report(p)
		if op.kind == '@' {
			// Its lines are not statements.
			return &hereDocument{name: "", tag: rhs, begin: s.origin()}
		}
		return nil
	}
	if op.kind == '@' {
		return &hereDocument{name: name, tag: rhs, begin: s.origin()}
	}
	appended := false
	if op.kind == '+' {
		if now, _, _ := l.m.raw(name); now != "" {
			rhs, appended = now+op.sep+rhs, true
		}
	}
	l.store(s, rhsAt, name, rhs, s.origin(), appended)
	return nil
}

// store assigns, and reports what goes wrong at the offset of the value.
func (l *loader) store(s statement, off int, name, value string, o Origin, appended bool) {
	if name == "" {
		return // reported where its here-document began
	}
	if p := l.assign(name, value, o, appended); p != nil {
		at := s.problem(off, p.Class, p.Message)
		at.Knob, at.Value, at.Want = name, p.Value, p.Want
		l.report(at)
	}
}

// expandProblems reports what an expansion for a statement ran into.
func (l *loader) expandProblems(s statement, off int, knob string, x *expansion) {
	for _, p := range x.problems {
		at := s.problem(off, p.Class, p.Message)
		at.Knob, at.Value, at.Want = knob, p.Value, p.Want
		if p.Class == BadFunction {
			at.Severity = Warning // it expands to nothing and reading goes on
		}
		l.report(at)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/spelling"
)

// parser reads the lines of a description into settings and queue statements.
type parser struct {
	problemList
	d      *Description
	reader lineReader
	table  table
	ifs    []branch   // open ifs, outermost first
	all    []*setting // in the order of their lines
	grown  int        // bytes that settings which mention themselves have grown to
}

// branch is one open if.
type branch struct {
	on    bool // lines count
	taken bool // this or an earlier branch was on
	last  bool // else was seen
	line  *line
}

func (p *parser) parse(text string) {
	if len(text) > MaxText {
		p.fail(Problem{Line: 1, Column: 1, Message: "the description is too long", Want: "at most " + strconv.Itoa(MaxText) + " bytes"})
		return
	}
	p.reader.rest = strings.TrimPrefix(text, "\ufeff")
	for {
		l, ok := p.reader.next()
		if !ok {
			break
		}
		p.statement(l)
	}
	if n := len(p.ifs); n > 0 {
		p.at(p.ifs[n-1].line, 0, Problem{Message: "if without endif", Want: "endif before the end of the description"})
	}
}

// fail adds a problem of this file.
func (p *parser) fail(pr Problem) {
	pr.File = p.d.name
	p.problemList.fail(pr)
}

// at adds a problem with the word at offset of l.
func (p *parser) at(l *line, offset int, pr Problem) {
	pr.Line, pr.Column = l.at(offset)
	p.fail(pr)
}

// word parts the first word off text, at blanks.
func word(text string) (first, rest string) {
	i := strings.IndexAny(text, blanks)
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], blanks)
}

// statement reads one logical line.
func (p *parser) statement(l *line) {
	first, rest := word(l.text)
	switch strings.ToLower(first) {
	case "if", "elif", "else", "endif":
		if !strings.HasPrefix(rest, "=") {
			p.condition(l, strings.ToLower(first), rest)
			return
		}
	}
	if n := len(p.ifs); n > 0 && slices.ContainsFunc(p.ifs, func(b branch) bool { return !b.on }) {
		return
	}
	if strings.EqualFold(first, "queue") && !strings.HasPrefix(rest, "=") {
		p.queue(l, len(l.text)-len(rest))
		return
	}
	p.assignment(l)
}

// assignment reads "name = value" and its relatives.
func (p *parser) assignment(l *line) {
	end := strings.IndexAny(l.text, blanks+"=")
	if end < 0 {
		end = len(l.text)
	}
	name := l.text[:end]
	rest := strings.TrimLeft(l.text[end:], blanks)
	value, assigned := strings.CutPrefix(rest, "=")
	tag, heredoc := strings.CutPrefix(rest, "@=")
	if !assigned && !heredoc {
		p.notAssignment(l, name, rest)
		return
	}
	if strings.Contains(name, "$") {
		x := p.expander()
		name = x.expand(name)
		p.macroProblems(x, l, 0, "")
	}
	attr := strings.TrimPrefix(name, "+")
	bare := strings.TrimPrefix(name, "-")
	switch {
	case attr != name && isName(attr):
		name = "MY." + attr
	case bare != name && isName(bare):
		name, value = "MY."+bare, "" // HTCondor's way to leave an attribute undefined
	case !isName(name):
		p.at(l, 0, Problem{Value: name, Message: "this is no name for a submit command", Want: "letters, digits, underscores and dots before the equals sign"})
		return
	}
	s := &setting{name: name, line: l, at: len(l.text)}
	if heredoc {
		s.raw = p.heredoc(l, strings.Trim(tag, blanks))
	} else {
		s.raw = strings.TrimLeft(value, blanks)
		s.at = len(l.text) - len(s.raw)
		s.raw = strings.TrimRight(s.raw, blanks)
	}
	before := ""
	if old := p.table.now().find(name); old != nil {
		before = old.raw
		old.used = old.used || strings.Contains(s.raw, "$")
	}
	raw, ok := expandSelf(s.raw, name, before)
	if raw != s.raw {
		p.grown += len(raw)
	}
	if s.raw = raw; !ok || p.grown > maxGrown || p.table.count >= maxSettings {
		p.tooMuch(l)
		return
	}
	p.table.add(s)
	p.all = append(p.all, s)
}

// tooMuch ends the reading at l: the description is larger than any honest one.
func (p *parser) tooMuch(l *line) {
	p.at(l, 0, Problem{Message: "the description has too many commands, or they are too long"})
	p.reader.rest = ""
	p.ifs = nil
}

// notAssignment explains a line that is neither a command nor a queue
// statement.
func (p *parser) notAssignment(l *line, name, rest string) {
	pr := Problem{Value: name, Message: "this line is no submit command", Want: "name = value, or queue"}
	switch {
	case strings.Contains(l.text, ":") && !strings.Contains(l.text, "=") && slices.Contains([]string{"include", "use", "error", "warning"}, strings.ToLower(strings.TrimRight(name, ":"))):
		pr = Problem{Value: l.text, Message: "include, use, error and warning are not supported in a submit description", Want: "the commands themselves", Kind: errs.Unsupported}
	case strings.HasPrefix(rest, ":"):
		pr.Want = "an equals sign instead of the colon"
	case strings.HasPrefix(rest, "+="):
		pr.Message, pr.Want = "+= is not supported in a submit description", name+" = $("+name+") value"
		pr.Kind = errs.Unsupported
	case spelling.Nearest(name, []string{"queue"}) != "":
		pr.Want = "queue (is " + name + " a typo?)"
	case rest == "":
		pr.Want = "an equals sign and a value behind the name"
	}
	p.at(l, 0, pr)
}

// heredoc reads the lines of "name @=tag" up to "@tag".
func (p *parser) heredoc(l *line, tag string) string {
	if !isName(tag) {
		p.at(l, 0, Problem{Value: tag, Message: "no name behind @=", Want: "name @=tag and a line @tag after the value"})
		return ""
	}
	var lines []string
	for {
		text, _, ok := p.reader.physical()
		if !ok {
			p.at(l, 0, Problem{Message: "the value begun with @=" + tag + " does not end", Want: "a line @" + tag})
			return ""
		}
		if strings.EqualFold(text, "@"+tag) {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, text)
	}
}

// condition handles if, elif, else and endif.
func (p *parser) condition(l *line, keyword, rest string) {
	if keyword == "if" {
		b := branch{line: l, taken: true}
		if len(p.ifs) >= maxNesting {
			p.at(l, 0, Problem{Message: "ifs are nested too deep", Want: "at most " + strconv.Itoa(maxNesting)})
		} else if !slices.ContainsFunc(p.ifs, func(b branch) bool { return !b.on }) {
			b.on = p.test(l, rest)
			b.taken = b.on
		}
		p.ifs = append(p.ifs, b)
		return
	}
	if len(p.ifs) == 0 {
		p.at(l, 0, Problem{Message: keyword + " without if", Want: "if before it"})
		return
	}
	b := &p.ifs[len(p.ifs)-1]
	switch {
	case keyword == "endif":
		p.ifs = p.ifs[:len(p.ifs)-1]
	case b.last:
		p.at(l, 0, Problem{Message: keyword + " after else", Want: "endif"})
	case keyword == "else":
		b.last, b.on, b.taken = true, !b.taken, true
	default:
		b.on = !b.taken && p.test(l, rest)
		b.taken = b.taken || b.on
	}
}

// test evaluates a condition: true, false, a number, or defined NAME, each
// perhaps after an exclamation mark.
func (p *parser) test(l *line, cond string) bool {
	offset := len(l.text) - len(cond)
	x := p.expander()
	text := strings.Trim(x.expand(cond), blanks)
	if !p.macroProblems(x, l, offset, "") {
		return false
	}
	negate := false
	for strings.HasPrefix(text, "!") {
		negate = !negate
		text = strings.TrimLeft(text[1:], blanks)
	}
	result, ok := false, false
	if first, name := word(text); strings.EqualFold(first, "defined") && (isName(name) || name == "") {
		raw, found := p.lookup(name)
		result, ok = found && raw != "", true
	} else if result, ok = parseBool(text); !ok {
		f, err := strconv.ParseFloat(text, 64)
		result, ok = f != 0, err == nil
	}
	if !ok {
		p.at(l, offset, Problem{Value: text, Message: "this is no condition", Want: "true, false, a number or defined NAME"})
	}
	return result != negate
}

func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "t", "y":
		return true, true
	case "false", "no", "f", "n":
		return false, true
	}
	return false, false
}

// expander is one for the lines read so far, before there are jobs.
func (p *parser) expander() *expander {
	b := p.d.builder(&queue{view: p.table.now()})
	return b.expander()
}

func (p *parser) lookup(name string) (string, bool) {
	return p.d.builder(&queue{view: p.table.now()}).lookup(name)
}

// macroProblems reports what went wrong in an expansion; it returns whether
// all went well.
func (p *parser) macroProblems(x *expander, l *line, offset int, command string) bool {
	if x.err != nil {
		p.at(l, offset, Problem{Command: command, Value: x.err.text, Message: x.err.message, Want: x.err.want})
	}
	return x.err == nil
}

// unused are warnings about settings that nobody has looked at: commands with
// a typo and macros without a use.
func (p *parser) unused() Problems {
	var list problemList
	counts := map[string]*setting{} // the last that is used, by what it means
	for _, s := range p.all {
		if s.used {
			counts[commandOf(s.name)] = s
		}
	}
	for _, s := range p.all {
		if s.used || strings.Contains(s.name, ".") {
			continue
		}
		ln, column := s.line.at(0)
		pr := Problem{File: p.d.name, Line: ln, Column: column, Value: s.name + " = " + s.raw, Warning: true,
			Message: "this line is not used; is it a typo?"}
		if again := counts[commandOf(s.name)]; again != nil {
			n, _ := again.line.at(0)
			pr.Message = s.name + " is set twice; line " + strconv.Itoa(n) + " is the one that counts"
		} else if known := spelling.Nearest(s.name, commandNames()); known != "" {
			pr.Want = known
		}
		list.fail(pr)
	}
	return list.problems
}

// misspelt are the warnings of unused about a line whose name is near a command's.
// What is wrong with a description that failed often follows from such a line; what
// else was not looked at may be because of the failure.
func (p *parser) misspelt() Problems {
	return slices.DeleteFunc(p.unused(), func(pr Problem) bool { return pr.Want == "" })
}

// commandOf is the name of the command that a name stands for, or the name, in
// lower case.
func commandOf(name string) string {
	for i := range commands {
		if c := &commands[i]; strings.EqualFold(c.attr, name) || strings.EqualFold(c.name, name) {
			return c.name
		}
	}
	return strings.ToLower(name)
}

// evalInt evaluates an integer expression, as a queue count or a command that
// wants an integer.
func evalInt(text string) (int64, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return 0, false
	}
	v := e.Eval(nil)
	if f, ok := v.AsReal(); ok && f > -1e15 && f < 1e15 {
		return int64(f), true
	}
	return v.AsInt()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/spelling"
)

// Subject is what is to be checked. Only Config is needed; what is not there
// is not checked.
type Subject struct {
	Config *config.Snapshot
	// Partial says that lines of the configuration could not be read, so that
	// what seems to be missing may stand there.
	Partial bool
	// Inventory is the machine, for the arithmetic of slots.
	Inventory *machine.Inventory
	// Found is what inventory programs say of the machine; Unknown names the
	// resources of programs that were not asked, so that nothing is known of them.
	Found   []slot.Inventory
	Unknown []string
	// Source returns the text of a configuration file, for columns and for
	// the arguments of templates.
	Source func(path string) ([]byte, error)
	// Files tells about programs and files.
	Files Files
}

// Snapshot returns what is wrong with a configuration that could be read.
func Snapshot(s Subject) []Finding {
	c := checker{Subject: s, names: known()}
	c.settings()
	attrs := c.lists()
	c.uses()
	c.values()
	c.emptied()
	c.notRead()
	c.published(attrs)
	c.expressions()
	c.policies()
	c.slotSettings()
	c.slotWeight()
	c.slots()
	c.cron()
	c.programs()
	c.directories()
	c.daemonList()
	c.sizes()
	c.ports()
	c.sources()
	return c.list
}

// checker is one look at a configuration.
type checker struct {
	Subject
	names  *attributes
	set    []config.Setting // by somebody, not by default, in order of names
	isSet  map[string]int   // index into set, by name in lower case
	bad    map[string]bool  // settings that do not parse, in lower case
	badUse map[string]bool  // file:line of templates whose argument makes no expression
	attrs  []string         // of STARTD_ATTRS and its kin
	list   []Finding
}

func (c *checker) add(f Finding) { c.list = append(c.list, f) }

// settings gathers what somebody set.
func (c *checker) settings() {
	c.isSet, c.bad, c.badUse = map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, name := range c.Config.Names() {
		s, ok := c.Config.Lookup(name)
		if !ok || s.Origin.Kind == config.Default || s.Origin.Kind == config.Detected || s.IsDefault {
			continue
		}
		c.isSet[strings.ToLower(bare(s.Name))] = len(c.set)
		c.set = append(c.set, s)
	}
}

// bare drops the prefixes of a name.
func bare(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// setting returns what somebody set name to, unless that is nothing.
func (c *checker) setting(name string) (config.Setting, bool) {
	i, ok := c.isSet[strings.ToLower(name)]
	if !ok || strings.TrimSpace(c.set[i].Value) == "" {
		return config.Setting{}, false
	}
	return c.set[i], true
}

// ofStarters are the problems of a configuration that only a starter meets: in an
// "if $(IsStarter)", or in a file named after $(SUBSYSTEM). A startd does not begin
// with them.
func (c *checker) ofStarters() config.Problems {
	s, err := c.Config.As("STARTER", "")
	var all config.Problems
	if s != nil {
		all = s.Check()
	} else if !errors.As(err, &all) {
		return nil
	}
	known := map[string]bool{}
	place := func(p *config.Problem) string { return fmt.Sprint(p.File, p.Line, p.Knob) }
	for _, p := range c.Config.Check() {
		known[place(p)] = true
	}
	return slices.DeleteFunc(all, func(p *config.Problem) bool { return p.Severity == config.Warning || known[place(p)] })
}

// values reports what package config has to say: types, ranges, expressions,
// names.
func (c *checker) values() {
	var unparsable []Finding
	for _, p := range c.Config.Check() {
		f := problem(p)
		s, ok := c.Config.Lookup(p.Knob)
		if ok {
			f.Template = s.Origin.Template
		}
		if f.Code == Unparsable && ok {
			c.bad[strings.ToLower(bare(p.Knob))] = true
			unparsable = append(unparsable, c.unparsable(s))
			continue
		}
		c.add(f)
	}
	for _, f := range unparsable {
		if f.Template != "" && c.badUse[f.File+":"+strconv.Itoa(f.Line)] {
			continue
		}
		if s, ok := c.Config.Lookup(f.Knob); !ok || !c.viaBad(s) {
			c.add(f)
		}
	}
	for _, p := range c.ofStarters() {
		c.add(problem(p))
	}
	for _, p := range append(c.Config.Warnings(), c.Config.SetTwice()...) {
		f := problem(&p)
		if c.Partial && f.Code == Unset {
			continue // what is missing may stand in a line that cannot be read
		}
		if k, ok := config.LookupKnob(p.Knob); ok && f.Code == SetTwice && k.Type == config.TypeExpr && !isPolicy(bare(p.Knob)) {
			continue // a macro that others are built from is changed on purpose
		}
		c.add(f)
	}
}

// reference is a macro without a default.
var reference = pattern(`\$\(([A-Za-z0-9_.]+)\)`)

// unset returns the macros in a setting that expand to nothing.
func (c *checker) unset(s config.Setting) []string {
	var out []string
	for _, m := range reference().FindAllStringSubmatch(s.Raw, -1) {
		if got, ok := c.Config.Lookup(m[1]); (!ok || strings.TrimSpace(got.Value) == "") && !slices.Contains(out, m[0]) {
			out = append(out, m[0])
		}
	}
	return out
}

// emptied reports expressions that are nothing because what they refer to is
// not set, so that their defaults hold.
func (c *checker) emptied() {
	for _, s := range c.set {
		name := bare(s.Name)
		if k, ok := config.LookupKnob(name); !ok || k.Type != config.TypeExpr || !isPolicy(name) || strings.TrimSpace(s.Value) != "" || s.Origin.Kind == config.Template {
			continue
		}
		if missing := c.unset(s); len(missing) > 0 && !c.Partial && !c.has(s.Name, Unset) {
			f := found(Unset, s, "is nothing, because "+strings.Join(missing, ", ")+" is, and so has its default", "a setting of "+strings.Join(missing, ", "))
			f.Value = s.Raw
			c.add(f)
		}
	}
}

// notRead reports settings that nothing here acts by.
func (c *checker) notRead() {
	for _, u := range c.Config.Unread() {
		c.add(found(NotRead, u.Setting, "has no effect: nothing reads it yet", u.Instead))
	}
}

// viaBad reports whether a setting is made of one that does not parse either,
// which is then the one to correct.
func (c *checker) viaBad(s config.Setting) bool {
	return slices.ContainsFunc(s.Origin.Via, func(name string) bool {
		return c.bad[strings.ToLower(bare(name))] && !strings.EqualFold(bare(name), bare(s.Name))
	})
}

// unparsable tells where an expression does not parse.
func (c *checker) unparsable(s config.Setting) Finding {
	f := found(Unparsable, s, "does not parse", "")
	_, err := classad.ParseExpr(s.Value, classad.Old)
	var at *classad.SyntaxError
	if !errors.As(err, &at) {
		return f
	}
	f.Message = "does not parse: " + at.Msg
	if col, ok := c.column(s, at.Offset); ok {
		f.Column = col
	}
	if bareText().MatchString(s.Value) && c.isPublished(bare(s.Name)) {
		return found(Unquoted, s, "is no expression, so that the attribute is left out", s.Name+` = "`+s.Value+`"`)
	}
	if right := inUnits(bare(s.Name), s.Value); right != "" {
		f.Message, f.Instead = "is a number with a unit, which is no expression", right
		return f
	}
	opens, closes := parentheses(s.Value)
	switch missing := c.unset(s); {
	case len(missing) > 0:
		f.Message += "; " + strings.Join(missing, ", ") + " expands to nothing"
		f.Instead = "set what it refers to, or give a default: $(NAME:default)"
	case opens > closes:
		f.Instead = "close every parenthesis: " + paired(opens, closes)
	case closes > opens:
		f.Instead = "open every parenthesis that is closed: " + paired(opens, closes)
	default:
		caret := strings.ReplaceAll(at.Caret(), "\n", "\n             ")
		f.Instead = "correct it where the mark stands:\n             " + strings.TrimRight(caret, "\n ")
	}
	return f
}

// paired counts parentheses: "2 are opened and 1 is closed".
func paired(opens, closes int) string {
	return fmt.Sprintf("%d %s opened and %d %s closed", opens, spelling.Are(opens), closes, spelling.Are(closes))
}

// column finds a place of a value in the line that sets it.
func (c *checker) column(s config.Setting, offset int) (int, bool) {
	if c.Source == nil || s.Origin.Kind != config.File || s.Raw != s.Value || s.Origin.Line != s.Origin.EndLine {
		return 0, false
	}
	text, err := c.Source(s.Origin.File)
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(text), "\n")
	if s.Origin.Line > len(lines) {
		return 0, false
	}
	at := strings.LastIndex(lines[s.Origin.Line-1], s.Raw)
	if at < 0 {
		return 0, false
	}
	return at + min(offset, len(s.Raw)) + 1, true
}

// parentheses counts those outside of strings.
func parentheses(text string) (opens, closes int) {
	inString := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			inString = !inString
		case '(':
			if !inString {
				opens++
			}
		case ')':
			if !inString {
				closes++
			}
		}
	}
	return opens, closes
}

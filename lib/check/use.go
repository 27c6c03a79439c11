// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/spelling"
)

// use is one template in a use statement.
type use struct {
	file         string
	line, column int
	category     string
	name         string
	args         []string // trimmed
	text         string   // between the parentheses
}

// argument is what a template wants in one place.
type argument uint8

const (
	anyText argument = iota
	knobName
	aNumber // or an expression that is one
)

// takes says what a template does with arguments.
type takes struct {
	template string // CATEGORY:NAME
	most     int    // how many it looks at, -1 for any number
	args     []argument
}

// templateArguments are the templates that take arguments. All others ignore
// them.
var templateArguments = [...]takes{
	{"FEATURE:PartitionableSlot", -1, []argument{aNumber}},
	{"FEATURE:StaticSlots", -1, []argument{aNumber, aNumber}},
	{"FEATURE:GPUs", -1, nil},
	{"FEATURE:Monitor", -1, nil},
	{"FEATURE:OneShotCronHook", -1, nil},
	{"FEATURE:PeriodicCronHook", -1, nil},
	{"FEATURE:ContinuousCronHook", -1, nil},
	{"FEATURE:StartdCronOneShot", -1, nil},
	{"FEATURE:StartdCronPeriodic", -1, nil},
	{"FEATURE:StartdCronContinuous", -1, nil},
	{"FEATURE:ScheddCronOneShot", -1, nil},
	{"FEATURE:ScheddCronPeriodic", -1, nil},
	{"FEATURE:ScheddCronContinuous", -1, nil},
	{"FEATURE:CommonCloudAttributesAWS", -1, nil},
	{"FEATURE:CommonCloudAttributesGoogle", -1, nil},
	{"FEATURE:PelicanCache", 3, nil},
	{"FEATURE:Remote_Runtime_Config", -1, nil},
	{"FEATURE:Remote_Config", -1, nil},
	{"FEATURE:Policy_Hours_To_Start", 4, []argument{aNumber, aNumber, aNumber, aNumber}},
	{"POLICY:Desktop_Idle", 4, []argument{aNumber, aNumber, aNumber, aNumber}},
	{"POLICY:Desktop_Hours", 4, []argument{aNumber, aNumber, aNumber, aNumber}},
	{"POLICY:Limit_Job_Runtimes", 1, []argument{aNumber}},
	{"POLICY:Preempt_If", 1, []argument{knobName}},
	{"POLICY:Want_Hold_If", -1, []argument{knobName, aNumber}},
	{"POLICY:Preempt_If_Runtime_Exceeds", 1, []argument{aNumber}},
	{"POLICY:Hold_If_Runtime_Exceeds", 1, []argument{aNumber}},
	{"SECURITY:Recommended", -1, nil},
	{"SECURITY:Recommended_v24_0", -1, nil},
	{"SECURITY:Recommended_v9_0", -1, nil},
}

// uses looks at the arguments of templates.
func (c *checker) uses() {
	if c.Source == nil {
		return
	}
	for _, path := range c.Config.Sources() {
		text, err := c.Source(path)
		if err != nil {
			continue
		}
		for _, u := range usesIn(path, string(text)) {
			c.use(u)
		}
	}
}

func (c *checker) use(u use) {
	if len(u.args) == 0 {
		return
	}
	template := u.category + ":" + u.name
	warn := func(message, instead string) {
		c.badUse[u.file+":"+strconv.Itoa(u.line)] = true // what does not parse there follows from this
		c.add(Finding{Code: BadArguments, Severity: Warning, File: u.file, Line: u.line, Column: u.column, Template: template,
			Value: u.text, Message: message, Instead: instead})
	}
	var t takes
	for _, row := range templateArguments {
		if strings.EqualFold(row.template, template) {
			t = row
		}
	}
	if t.most >= 0 && len(u.args) > t.most {
		if t.most == 0 {
			warn("the template takes no arguments and ignores them", "use "+u.category+" : "+u.name)
			return
		}
		warn("the template takes "+spelling.Count(t.most, "argument")+" and ignores the rest", "use "+u.category+" : "+u.name+"("+strings.Join(u.args[:t.most], ", ")+")")
	}
	for i, a := range u.args[:min(len(u.args), len(t.args))] {
		value, _ := c.Config.Expand(a)
		switch {
		case a == "":
		case t.args[i] == knobName:
			if s, ok := c.Config.Lookup(a); (!ok || strings.TrimSpace(s.Value) == "") && !c.Partial {
				warn("the argument "+a+" should be the name of a setting that holds the condition, and nothing sets it", a+" = a condition, before the use")
			}
		case t.args[i] == aNumber:
			e, err := classad.ParseExpr(value, classad.Old)
			if err == nil {
				if _, ok := e.Eval(nil).AsNumber(); ok {
					continue
				}
			}
			warn("the argument "+a+" should be a number", "a number, or an expression that is one")
		}
	}
}

var (
	useLine  = pattern(`(?i)^(\s*)use\s+(\w+)\s*:\s*(.*)$`)
	hereLine = pattern(`^\s*[\w.]+\s*@=\s*(\w+)\s*$`)
)

// usesIn finds the use statements of a file: those that begin a line and are
// no part of a value.
func usesIn(file, text string) []use {
	var out []use
	here, continued := "", false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case here != "":
			if strings.TrimSpace(line) == "@"+here {
				here = ""
			}
			continue
		case continued:
			continued = strings.HasSuffix(line, `\`)
			continue
		case strings.HasPrefix(strings.TrimSpace(line), "#"):
			continue
		}
		if m := hereLine().FindStringSubmatch(line); m != nil {
			here = m[1]
			continue
		}
		continued = strings.HasSuffix(line, `\`)
		m := useLine().FindStringSubmatch(line)
		if m == nil || continued {
			continue
		}
		for _, u := range calls(m[3]) {
			u.file, u.line, u.column, u.category = file, i+1, len(m[1])+1, strings.ToUpper(m[2])
			out = append(out, u)
		}
	}
	return out
}

// calls splits the right side of a use.
func calls(text string) []use {
	var out []use
	for len(out) < 100 {
		text = strings.TrimLeft(text, " \t,")
		end := strings.IndexAny(text, " \t,(")
		if end < 0 {
			end = len(text)
		}
		if end == 0 {
			return out
		}
		u := use{name: text[:end]}
		text = strings.TrimLeft(text[end:], " \t")
		if strings.HasPrefix(text, "(") {
			depth, i := 0, 0
			from := 1
			for ; i < len(text); i++ {
				switch text[i] {
				case '(':
					depth++
				case ')':
					depth--
				}
				if text[i] == ',' && depth == 1 || depth == 0 {
					u.args = append(u.args, strings.TrimSpace(text[from:i]))
					from = i + 1
				}
				if depth == 0 {
					break
				}
			}
			if i == len(text) {
				return out
			}
			u.text = strings.TrimSpace(text[1:i])
			if u.text == "" {
				u.args = nil
			}
			text = text[i+1:]
		}
		out = append(out, u)
	}
	return out
}

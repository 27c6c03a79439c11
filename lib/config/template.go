// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
)

// The templates, in the macro language itself. A line "[NAME]" begins one.
// They are searched, not parsed, until one is used.
var (
	//go:embed templates/role.conf
	roleTemplates string
	//go:embed templates/feature.conf
	featureTemplates string
	//go:embed templates/policy.conf
	policyTemplates string
	//go:embed templates/security.conf
	securityTemplates string
)

func templateText(category string) (canonical, text string, ok bool) {
	switch strings.ToUpper(category) {
	case "ROLE":
		return "ROLE", roleTemplates, true
	case "FEATURE":
		return "FEATURE", featureTemplates, true
	case "POLICY":
		return "POLICY", policyTemplates, true
	case "SECURITY":
		return "SECURITY", securityTemplates, true
	}
	return "", "", false
}

func isCategory(name string) bool {
	_, _, ok := templateText(name)
	return ok
}

// template is one named piece of configuration.
type template struct {
	name string // CATEGORY:NAME in the canonical spelling
	text string
}

// templates yields the templates of a category.
func templates(category string) iter.Seq[template] {
	return func(yield func(template) bool) {
		canonical, text, _ := templateText(category)
		_, text, more := strings.Cut(text, "\n[")
		for more {
			var one string
			one, text, more = strings.Cut(text, "\n[")
			name, body, _ := strings.Cut(one, "]\n")
			if !yield(template{canonical + ":" + name, body}) {
				return
			}
		}
	}
}

func findTemplate(category, name string) (template, bool) {
	for t := range templates(category) {
		if equalFold(t.name[len(category)+1:], name) {
			return t, true
		}
	}
	return template{}, false
}

// Templates yields the names of all templates, as "POLICY:Desktop".
func Templates() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, category := range [...]string{"ROLE", "FEATURE", "POLICY", "SECURITY"} {
			for t := range templates(category) {
				if !yield(t.name) {
					return
				}
			}
		}
	}
}

// templateCall is one NAME or NAME(args) of a use statement.
type templateCall struct {
	name, args string
	at         int
}

// parseUse splits the right side of a use. After a comma at the end the last
// template counts once more, as in HTCondor; again reports that.
func parseUse(s string) (calls []templateCall, again bool, bad string) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && (isSpace(s[i]) || s[i] == ',') {
			i++
		}
		begin := i
		for i < len(s) && !isSpace(s[i]) && s[i] != ',' && s[i] != '(' {
			i++
		}
		if i == begin {
			if i < len(s) {
				return calls, false, s[i:] // arguments without a template
			}
			if len(calls) > 0 && i > start {
				calls = append(calls, calls[len(calls)-1])
				again = true
			}
			break
		}
		c := templateCall{name: s[begin:i], at: begin}
		j := i
		for j < len(s) && isSpace(s[j]) {
			j++
		}
		if j < len(s) && s[j] == '(' {
			end := closeBrace(s, j, 25)
			if end < 0 {
				return calls, false, s[j:]
			}
			c.args = s[j+1 : end]
			j = end + 1
			for j < len(s) && isSpace(s[j]) {
				j++
			}
		}
		i = j
		calls = append(calls, c)
	}
	return calls, again, ""
}

// closeBrace returns the offset of what closes the ( or [ at i, -1 if nothing
// does.
func closeBrace(s string, i, depth int) int {
	closer := byte(')')
	if s[i] == '[' {
		closer = ']'
	}
	for i++; i < len(s); i++ {
		switch s[i] {
		case closer:
			return i
		case '(', '[':
			if depth == 0 {
				return -1
			}
			if i = closeBrace(s, i, depth-1); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// use reads the templates that a use statement names.
func (l *loader) use(s statement, category, written string, at int) {
	fail := func(at int, message, value, want string) {
		p := s.problem(at, BadUse, message)
		p.Value, p.Want = value, want
		l.report(p)
	}
	if strings.Contains(category, "$") {
		x := l.expansion("")
		category = x.expand(category)
		l.expandProblems(s, at, "", x)
	}
	if !isCategory(category) {
		fail(len("use"), "there is no such category of templates", category, "ROLE, FEATURE, POLICY or SECURITY")
		return
	}
	calls, again, bad := parseUse(written)
	if bad != "" {
		fail(at+strings.Index(written, bad), "the arguments of a template cannot be read", bad, "NAME or NAME(arguments)")
		return
	}
	if again {
		p := s.problem(at+len(written)-1, Suspicious, "after a comma at the end the last template is used once more")
		p.Value, p.Want, p.Severity = written, "no comma at the end", Warning
		l.report(p)
	}
	for _, call := range calls {
		t, ok := findTemplate(category, call.name)
		if !ok {
			fail(at+call.at, "there is no such template", category+":"+call.name, suggestTemplate(category, call.name))
			return
		}
		if s.depth+1 >= maxNestedSource {
			fail(at, "templates are nested too deep", t.name, "")
			l.stop = true
			return
		}
		inner := &source{name: s.name, depth: s.depth + 1, within: append(slices.Clone(s.within), s.useOrigin(t.name)), template: t.name}
		inner.use = s.origin()
		if s.template != "" {
			inner.use = s.source.use
			inner.uses = append(slices.Clone(s.uses), s.template)
		}
		text := expandArguments(t.text, call.args)
		if l.bytes += len(text); l.bytes > maxTotalBytes {
			fail(at, "the configuration is too large", t.name, "")
			l.stop = true
			return
		}
		l.readText(inner, text)
		if l.stop {
			return
		}
	}
}

// autoUse reads the templates that settings AUTO_USE_CATEGORY_NAME ask for by
// being true, after everything else was read.
func (l *loader) autoUse() {
	const prefix = "AUTO_USE_"
	for i := 0; i < len(l.m.table.entries); i++ {
		e := l.m.table.entries[i]
		if !hasPrefixFold(e.name, prefix) {
			continue
		}
		value := trim(l.value(e.name))
		if value == "" {
			continue
		}
		category, name, _ := strings.Cut(e.name[len(prefix):], "_")
		on, why := l.evaluateCondition(value, true)
		t, ok := findTemplate(category, name)
		switch {
		case why != "":
			l.report(l.about(e.name, &Problem{Class: BadCondition, Value: value, Message: why, Want: "true or false"}))
		case on && !ok:
			l.report(l.about(e.name, &Problem{Class: BadUse, Value: category + ":" + name, Message: "there is no such template", Want: suggestTemplate(category, name)}))
		case on:
			within := e.origin
			within.Kind, within.Template = Template, t.name
			l.readText(&source{name: e.origin.File, depth: 1, within: []Origin{within}, template: t.name, use: e.origin}, expandArguments(t.text, ""))
		}
	}
}

// useOrigin is the use statement as a place that led somewhere.
func (s statement) useOrigin(template string) Origin {
	o := s.origin()
	if s.template != "" {
		o = s.source.use
	}
	o.Kind, o.Template = Template, template
	return o
}

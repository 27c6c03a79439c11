// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

const attrRequirements = "Requirements"

// typedValue is a value for programs.
type typedValue struct {
	Type  string `json:"type"`
	Value string `json:"value"` // in the new syntax
}

func typed(v classad.Value) typedValue {
	return typedValue{v.Kind().String(), v.Text(classad.New)}
}

// matchReport is what two ads make of each other, with the reasons.
type matchReport struct {
	Match bool        `json:"match"`
	Sides []matchSide `json:"sides"`
}

// matchSide is what one ad makes of the other.
type matchSide struct {
	Ad           string      `json:"ad"`
	Other        string      `json:"other"`
	Accepts      bool        `json:"accepts"`
	Missing      bool        `json:"missing,omitempty"`  // there are no Requirements
	GivenUp      bool        `json:"given_up,omitempty"` // their evaluation did not end
	Requirements *typedValue `json:"requirements,omitempty"`
	Rank         *float64    `json:"rank"` // null if it is no number that JSON has
	Failed       []conjunct  `json:"failed,omitempty"`
	rank         string
}

// conjunct is a part of Requirements that does not hold.
type conjunct struct {
	In    []string   `json:"in,omitempty"` // the attributes that lead to it, Requirements left out
	Expr  string     `json:"expr"`
	Value typedValue `json:"value"`
	Reads []readAttr `json:"reads,omitempty"`
	value string     // in the old syntax
}

// readAttr is an attribute that an evaluation looked at.
type readAttr struct {
	Scope   string     `json:"scope,omitempty"` // MY, TARGET or none
	Name    string     `json:"name"`
	Value   typedValue `json:"value"`
	Missing bool       `json:"missing,omitempty"`
	value   string
}

func classadMatch(args []string, s classadStreams) int {
	const who = "condor_ep classad match"
	fs := newFlags("classad match", s.out, s.err)
	asJSON := fs.Bool("json", false, "")
	syntax := fs.String("syntax", syntaxAuto, "")
	batch := fs.Bool("batch", false, "")
	if status, done := parseFlags(fs, args); done {
		return status
	}
	if *batch {
		if given := flagsGiven(fs); len(given) > 1 || fs.NArg() > 0 {
			return fs.Misuse("-batch stands alone, got %s", strings.Join(append(given, fs.Args()...), " "))
		}
		return batchMatch(s)
	}
	switch {
	case fs.NArg() != 2:
		return fs.Misuse("want two ad files, got %d", fs.NArg())
	case !slices.Contains(syntaxes, *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(syntaxes, ", "))
	case fs.Arg(0) == stdinName && fs.Arg(1) == stdinName:
		return fs.Misuse("only one of the two ads can be the standard input")
	}
	var ads [2]*classad.Ad
	ok := true
	for i := range ads {
		ad, err := readAd(fs.Arg(i), *syntax, s.in)
		if err != nil {
			printInputError(s.err, who, err)
			ok = false
		}
		ads[i] = ad
	}
	if !ok {
		return exitUsage
	}
	env := personEnv()
	report := explainMatch(ads, [2]string{adName(fs.Arg(0)), adName(fs.Arg(1))}, &env)
	var err error
	if *asJSON {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(report)
	} else {
		_, err = io.WriteString(s.out, report.text())
	}
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", who, err)
		return exitUsage
	}
	if !report.Match {
		return exitSomeFailed
	}
	return exitOK
}

// explainMatch holds two ads against each other. Of env only what is no ad
// counts.
func explainMatch(ads [2]*classad.Ad, names [2]string, env *classad.Env) matchReport {
	result := classad.Match(ads[0], ads[1], env)
	accepts := [2]bool{result.LeftOK, result.RightOK}
	ranks := [2]float64{result.LeftRank, result.RightRank}
	r := matchReport{Match: result.OK()}
	for i, ad := range ads {
		side := matchSide{
			Ad: names[i], Other: names[1-i], Accepts: accepts[i],
			rank: classad.Real(ranks[i]).Text(classad.Old),
		}
		if f := ranks[i]; !math.IsInf(f, 0) && !math.IsNaN(f) {
			side.Rank = &f
		}
		x := explainer{my: ad, env: *env}
		x.env.My, x.env.Target = ad, ads[1-i]
		if e, ok := ad.Lookup(attrRequirements); ok {
			v, done := ad.TryEval(attrRequirements, &x.env)
			req := typed(v)
			side.Requirements, side.GivenUp = &req, !done
			if !side.Accepts {
				x.explain(e, []string{attrRequirements})
				side.Failed = x.failed
			}
		} else {
			side.Missing = true
		}
		r.Sides = append(r.Sides, side)
	}
	return r
}

// text is the report for people.
func (r matchReport) text() string {
	var b strings.Builder
	if r.Match {
		b.WriteString("match\n")
	} else {
		b.WriteString("no match\n")
	}
	for _, s := range r.Sides {
		verb := "accepts"
		if !s.Accepts {
			verb = "does not accept"
		}
		fmt.Fprintf(&b, "%s %s %s: ", s.Ad, verb, s.Other)
		switch {
		case s.Missing:
			b.WriteString("it has no Requirements")
		case s.GivenUp:
			b.WriteString("the evaluation of Requirements was given up: too deep, too long, or a function that fails")
		default:
			b.WriteString("Requirements is " + s.Requirements.Value)
		}
		fmt.Fprintf(&b, ", rank %s\n", s.rank)
		for _, c := range s.Failed {
			fmt.Fprintf(&b, "  %s is %s", c.Expr, c.value)
			if len(c.In) > 0 {
				fmt.Fprintf(&b, ", in %s", strings.Join(c.In, ", in "))
			}
			b.WriteByte('\n')
			for _, a := range c.Reads {
				b.WriteString("    ")
				if a.Scope != "" {
					b.WriteString(a.Scope + ".")
				}
				b.WriteString(a.Name + " is " + a.value)
				if a.Missing {
					b.WriteString(", no such attribute")
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// maxPath bounds how far an explanation follows attributes into each other.
const maxPath = 16

// explainer finds the parts of an expression of one ad that do not hold.
type explainer struct {
	my     *classad.Ad
	env    classad.Env
	failed []conjunct
}

// explain looks at an expression that stands in the last attribute of path.
func (x *explainer) explain(e *classad.Expr, path []string) {
	parts := conjuncts(e)
	for _, part := range parts {
		if name, ok := x.ownAttr(part); ok && len(path) < maxPath && !containsFold(path, name) {
			if inner, ok := x.my.Lookup(name); ok && !x.my.Eval(name, &x.env).IsTrue() {
				if _, constant := inner.LiteralValue(); !constant {
					x.explain(inner, append(slices.Clip(path), name))
					continue
				}
			}
		}
		var reads []readAttr
		env := x.env
		env.OnRead = func(r classad.Read) { reads = x.addRead(reads, r) }
		v := part.Eval(&env)
		if v.IsTrue() {
			continue
		}
		c := conjunct{Expr: strings.TrimSpace(part.String()), Value: typed(v), value: v.Text(classad.Old), Reads: reads}
		for _, name := range slices.Backward(path[1:]) {
			c.In = append(c.In, name)
		}
		x.failed = append(x.failed, c)
	}
}

// addRead notes an attribute once, with the first value it had.
func (x *explainer) addRead(reads []readAttr, r classad.Read) []readAttr {
	for _, have := range reads {
		if have.Scope == r.Scope && strings.EqualFold(have.Name, r.Name) {
			return reads
		}
	}
	a := readAttr{Scope: r.Scope, Name: r.Name, Value: typed(r.Value), value: r.Value.Text(classad.Old)}
	if r.Value.IsUndefined() {
		_, mine := x.my.Lookup(r.Name)
		_, theirs := x.env.Target.Lookup(r.Name)
		a.Missing = !(mine && r.Scope != "TARGET" || theirs && r.Scope != "MY")
	}
	return append(reads, a)
}

// ownAttr returns the name if an expression is nothing but an attribute of the
// explained ad.
func (x *explainer) ownAttr(e *classad.Expr) (string, bool) {
	name, ok := e.AttrName()
	if !ok {
		scope, rest, dot := strings.Cut(e.Text(classad.New), ".")
		if !dot || !strings.EqualFold(scope, "MY") {
			return "", false
		}
		bare, err := classad.ParseExpr(rest, classad.New)
		if err != nil {
			return "", false
		}
		if name, ok = bare.AttrName(); !ok {
			return "", false
		}
	}
	_, ok = x.my.Lookup(name)
	return name, ok
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
}

// conjuncts returns the operands of the && operators at the top of an
// expression, parentheses taken off, in order; an expression without any is
// its only conjunct. It works on the printed text, which has no comments and
// one way to write a string.
func conjuncts(e *classad.Expr) []*classad.Expr {
	parts := splitAnd(e.Text(classad.New))
	if len(parts) == 1 {
		parts[0] = strings.TrimSpace(parts[0])
	}
	var all []*classad.Expr
	for _, text := range parts {
		inner, wrapped := unwrap(text)
		if len(parts) == 1 && !wrapped {
			return []*classad.Expr{e}
		}
		part, err := classad.ParseExpr(inner, classad.New)
		if err != nil {
			// Printed wrongly, as a quoted name behind a dot is.
			return []*classad.Expr{e}
		}
		all = append(all, conjuncts(part)...)
	}
	return all
}

// unwrap takes parentheses off that stand around a whole text.
func unwrap(text string) (inner string, wrapped bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "(") {
		return text, false
	}
	closed := -1
	scanTop(text, func(i, depth int) bool {
		if depth == 0 && text[i] == ')' {
			closed = i
			return false
		}
		return true
	})
	if closed != len(text)-1 {
		return text, false
	}
	return text[1:closed], true
}

// splitAnd cuts a text at the && at its top, unless an operator that binds
// less tightly stands there as well.
func splitAnd(text string) []string {
	var parts []string
	start, loose := 0, false
	scanTop(text, func(i, depth int) bool {
		if depth > 0 {
			return true
		}
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "||"):
			loose = true
		case rest[0] == '?' && !strings.HasPrefix(rest, "?:") && (i == 0 || text[i-1] != '='):
			loose = true
		case strings.HasPrefix(rest, "&&"):
			parts = append(parts, text[start:i])
			start = i + len("&&")
		}
		return !loose
	})
	if loose {
		return []string{text}
	}
	return append(parts, text[start:])
}

// scanTop calls visit with each byte of a text that stands in no string and no
// quoted name, and with how many brackets are open there, the one at i left
// out. It ends when visit returns false.
func scanTop(text string, visit func(i, depth int) bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case ')', ']', '}':
			depth--
		}
		if !visit(i, depth) {
			return
		}
		switch text[i] {
		case '(', '[', '{':
			depth++
		}
	}
}

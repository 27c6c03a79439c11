// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/words"
)

const requirements = "Requirements"

// Typed is a value for programs: its type in the words of lib/classad (integer,
// string, undefined) and its text.
type Typed struct {
	Type  string `json:"type"`
	Value string `json:"value"` // in the new syntax
}

// TypedOf is a value with its type.
func TypedOf(v classad.Value) Typed {
	return Typed{v.Kind().String(), v.Text(classad.New)}
}

// Report is what two ads make of each other, with the reasons. It encodes to the
// JSON of condor_ep classad match -json.
type Report struct {
	Match bool   `json:"match"`
	Sides []Side `json:"sides"`
}

// Side is what one ad makes of the other.
type Side struct {
	Ad           string     `json:"ad"`
	Other        string     `json:"other"`
	Accepts      bool       `json:"accepts"`
	Missing      bool       `json:"missing,omitempty"`  // there are no Requirements
	GivenUp      bool       `json:"given_up,omitempty"` // their evaluation did not end
	Requirements *Typed     `json:"requirements,omitempty"`
	Rank         *float64   `json:"rank"` // null if it is no number that JSON has
	Failed       []Conjunct `json:"failed,omitempty"`
	rank         string
}

// Conjunct is a part of Requirements that does not hold.
type Conjunct struct {
	In    []string `json:"in,omitempty"` // the attributes that lead to it, Requirements left out
	Expr  string   `json:"expr"`
	Value Typed    `json:"value"`
	Reads []Read   `json:"reads,omitempty"`
	value string   // in the old syntax
}

// Read is an attribute that an evaluation looked at.
type Read struct {
	Scope   string `json:"scope,omitempty"` // MY, TARGET or none
	Name    string `json:"name"`
	Value   Typed  `json:"value"`
	Missing bool   `json:"missing,omitempty"`
	value   string
}

// Ads holds two ads against each other, under the names that the report has for
// them. Of env only what is no ad counts: the time, the place, the randomness.
func Ads(ads [2]*classad.Ad, names [2]string, env *classad.Env) Report {
	result := classad.Match(ads[0], ads[1], env)
	accepts := [2]bool{result.LeftOK, result.RightOK}
	ranks := [2]float64{result.LeftRank, result.RightRank}
	r := Report{Match: result.OK()}
	for i, ad := range ads {
		side := Side{
			Ad: names[i], Other: names[1-i], Accepts: accepts[i],
			rank: classad.Real(ranks[i]).Text(classad.Old),
		}
		if f := ranks[i]; !math.IsInf(f, 0) && !math.IsNaN(f) {
			side.Rank = &f
		}
		x := explainer{my: ad, env: *env}
		x.env.My, x.env.Target = ad, ads[1-i]
		if e, ok := ad.Lookup(requirements); ok {
			v, done := ad.TryEval(requirements, &x.env)
			req := TypedOf(v)
			side.Requirements, side.GivenUp = &req, !done
			if !side.Accepts {
				x.explain(e, []string{requirements})
				side.Failed = x.failed
			}
		} else {
			side.Missing = true
		}
		r.Sides = append(r.Sides, side)
	}
	return r
}

// Text is the report for people: what ads call things is shown in one line, and without
// what a terminal would obey.
func (r Report) Text() string {
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
		fmt.Fprintf(&b, "%s %s %s: ", words.Printable(s.Ad), verb, words.Printable(s.Other))
		switch {
		case s.Missing:
			b.WriteString("it has no Requirements")
		case s.GivenUp:
			b.WriteString("the evaluation of Requirements was given up: too deep, too long, or a function that fails")
		default:
			b.WriteString("Requirements is " + words.Printable(s.Requirements.Value))
		}
		fmt.Fprintf(&b, ", rank %s\n", s.rank)
		for _, c := range s.Failed {
			line := c.Expr + " is " + c.value
			if len(c.In) > 0 {
				line += ", in " + strings.Join(c.In, ", in ")
			}
			b.WriteString("  " + words.Printable(line) + "\n")
			for _, a := range c.Reads {
				line := a.Name + " is " + a.value
				if a.Scope != "" {
					line = a.Scope + "." + line
				}
				if a.Missing {
					line += ", no such attribute"
				}
				b.WriteString("    " + words.Printable(line) + "\n")
			}
		}
	}
	return b.String()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpolicy

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/reason"
)

// System is what the owner of the access point says of every job, beside what
// each job says of itself: SYSTEM_PERIODIC_HOLD and its like. The zero System
// says nothing. It is not changed once it is made.
type System struct {
	rules [Remove + 1][]rule
	// limited says that a job is released by a rule only while it was held
	// fewer times than releases (SYSTEM_MAX_RELEASES).
	limited  bool
	releases int64
}

// rule is one expression of the owner.
type rule struct {
	knob, text            string // as the reason names and shows it
	expr, reason, subcode *classad.Expr
}

// The kinds of rules, each with the attribute of a job that asks for the same.
var kinds = [...]struct {
	word, attr string
	action     Action
}{
	{"VACATE", "PeriodicVacate", Vacate}, {"HOLD", "PeriodicHold", Hold}, {"RELEASE", "PeriodicRelease", Release}, {"REMOVE", "PeriodicRemove", Remove},
}

// SystemFrom reads the rules. Those with a name (SYSTEM_PERIODIC_HOLD_<NAME>,
// for each name of SYSTEM_PERIODIC_HOLD_NAMES) are asked first, in the order of
// the names. What is no expression does not count, as with HTCondor; the
// configuration's own check says so.
//
// HTCondor 25.14 reads SYSTEM_PERIODIC_VACATE and never asks it. It is asked
// here, as its manual promises.
func SystemFrom(s *config.Snapshot) System {
	var out System
	for _, k := range kinds {
		base := "SYSTEM_PERIODIC_" + k.word
		var names []string
		for _, name := range s.List(base + "_NAMES") {
			same := func(n string) bool { return strings.EqualFold(n, name) }
			if !same("NAMES") && !slices.ContainsFunc(names, same) {
				names = append(names, name)
				out.add(s, k.action, base, base+"_"+name)
			}
		}
		out.add(s, k.action, base, base)
	}
	if n, err := s.Int("SYSTEM_MAX_RELEASES"); err == nil && n != -1 {
		out.limited, out.releases = true, n
	}
	return out
}

// add reads one rule. The reason that it gives names the kind of rule only.
func (s *System) add(c *config.Snapshot, a Action, base, knob string) {
	expr, err := c.Expr(knob)
	if err != nil || expr == nil || never(expr) {
		return
	}
	r := rule{knob: base, text: strings.TrimSpace(c.String(knob)), expr: expr}
	r.reason, _ = c.Expr(knob + "_REASON")
	r.subcode, _ = c.Expr(knob + "_SUBCODE")
	s.rules[a] = append(s.rules[a], r)
}

// asked asks the job and then the owner's rules for an action; ok says that one
// of them decides.
func (s *System) asked(job *classad.Ad, env *classad.Env, attr string, a Action) (v Verdict, ok bool) {
	if v, ok := asked(job, env, attr, a); ok {
		return v, true
	}
	for _, r := range s.rules[a] {
		if !truth(of(r.expr, job, env)) {
			continue
		}
		v := Verdict{Action: a, Attr: r.knob, Code: reason.SystemPolicy, Why: "The system macro " + r.knob + " expression '" + r.text + "' evaluated to TRUE"}
		if a == Vacate {
			v.Code = reason.SystemPolicyVacate
		}
		if sub, ok := of(r.subcode, job, env).AsNumber(); ok {
			v.Subcode = int(sub)
		}
		if text, ok := of(r.reason, job, env).AsString(); ok && text != "" {
			v.Why = text
		}
		return v, true
	}
	return Verdict{}, false
}

// of evaluates an expression of the owner in a job's ad.
func of(e *classad.Expr, job *classad.Ad, env *classad.Env) classad.Value {
	if e == nil {
		return classad.Undefined()
	}
	in := *env
	in.My = job
	return e.Eval(&in)
}

// mayRelease reports whether a held job may be released by a rule at all: what a
// person holds only a person releases, and each job only so many times.
func (s *System) mayRelease(job *classad.Ad, env *classad.Env) bool {
	if code, _ := job.EvalInt("HoldReasonCode", env); code == int64(reason.UserRequest) {
		return false
	}
	holds, _ := job.EvalInt("NumHolds", env)
	return !s.limited || holds < s.releases
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"regexp"
	"testing"
	"time"
)

// matchVector is one line of testdata/match.jsonl.
type matchVector struct {
	ID, Machine, Job  string
	Match             bool
	MachineOK         bool   `json:"machine_ok"`
	JobOK             bool   `json:"job_ok"`
	MachineReq        typed  `json:"machine_requirements"`
	JobReq            typed  `json:"job_requirements"`
	MachineRank       typed  `json:"machine_rank"`
	JobRank           typed  `json:"job_rank"`
	MachineRankNumber string `json:"machine_rank_number"`
	JobRankNumber     string `json:"job_rank_number"`
}

type typed struct{ Type, Value string }

// attribute evaluates an attribute as the vectors show it.
func attribute(a *Ad, name string, env *Env) typed {
	if _, ok := a.Lookup(name); !ok {
		return typed{Type: "missing"}
	}
	v, ok := a.TryEval(name, env)
	if !ok {
		return typed{Type: "evalfail"}
	}
	return typed{v.Kind().String(), v.Text(New)}
}

func TestMatchGolden(t *testing.T) {
	t.Parallel()
	for _, v := range readLines[matchVector](t, "testdata/match.jsonl", nil) {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			machine, err := ParseAd(v.Machine, Old)
			if err != nil {
				t.Fatal(err)
			}
			job, err := ParseAd(v.Job, Old)
			if err != nil {
				t.Fatal(err)
			}
			env := Env{Now: time.Unix(1700000000, 0)}
			r := Match(machine, job, &env)
			if r.OK() != v.Match || r.LeftOK != v.MachineOK || r.RightOK != v.JobOK {
				t.Errorf("match %v (machine %v, job %v), want %v (%v, %v)",
					r.OK(), r.LeftOK, r.RightOK, v.Match, v.MachineOK, v.JobOK)
			}
			if got := Real(r.LeftRank).Text(New); got != v.MachineRankNumber {
				t.Errorf("machine rank %s, want %s", got, v.MachineRankNumber)
			}
			if got := Real(r.RightRank).Text(New); got != v.JobRankNumber {
				t.Errorf("job rank %s, want %s", got, v.JobRankNumber)
			}
			env.Target = job
			if got := attribute(machine, "Requirements", &env); got != v.MachineReq {
				t.Errorf("machine requirements %v, want %v", got, v.MachineReq)
			}
			if got := attribute(machine, "Rank", &env); got != v.MachineRank {
				t.Errorf("machine rank %v, want %v", got, v.MachineRank)
			}
			env.Target = machine
			if got := attribute(job, "Requirements", &env); got != v.JobReq {
				t.Errorf("job requirements %v, want %v", got, v.JobReq)
			}
			if got := attribute(job, "Rank", &env); got != v.JobRank {
				t.Errorf("job rank %v, want %v", got, v.JobRank)
			}
		})
	}
}

// TestShapeGolden runs the vectors whose result depends on the clock or on
// chance: only kind and pattern are fixed.
func TestShapeGolden(t *testing.T) {
	t.Parallel()
	type shape struct {
		ID, Expr, Type, Pattern string
		My, Target              *string
	}
	for _, v := range readLines[shape](t, "testdata/classad_shape.jsonl", nil) {
		e, err := ParseExpr(v.Expr, Old)
		if err != nil {
			t.Errorf("%s: %s: %v", v.ID, v.Expr, err)
			continue
		}
		env := &Env{My: NewAd(), Now: time.Unix(1700000000, 0), Rand: func() float64 { return 0.25 }}
		got, ok := e.TryEval(env)
		if v.Type == "evalfail" {
			if ok {
				t.Errorf("%s: %s is %s, want no value", v.ID, v.Expr, got)
			}
			continue
		}
		if !ok || got.Kind().String() != v.Type || !regexp.MustCompile(v.Pattern).MatchString(got.Text(New)) {
			t.Errorf("%s: %s is %v %s, want %s %s", v.ID, v.Expr, got.Kind(), got, v.Type, v.Pattern)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/adtext"
	"github.com/execpoint/execpoint/lib/tool/match"
)

const requirements = "Requirements"

// pair is one pair of ads of a batch.
type pair struct {
	ID      *string `json:"id"`
	Group   *string `json:"group"`
	Machine *string `json:"machine"`
	Job     *string `json:"job"`

	MachineB64 *string `json:"machine_b64"`
	JobB64     *string `json:"job_b64"`
}

// answerMatch appends all that the recordings have about a match.
func answerMatch(b []byte, rec *pair, env classad.Env) ([]byte, error) {
	if rec.ID == nil {
		return b, errors.New("no id")
	}
	var ads [2]*classad.Ad
	for i, f := range []struct {
		name       string
		plain, b64 *string
	}{{"machine", rec.Machine, rec.MachineB64}, {"job", rec.Job, rec.JobB64}} {
		text, ok, err := textField(f.name, f.plain, f.b64)
		if err != nil {
			return b, err
		}
		if !ok {
			return b, fmt.Errorf("no %s", f.name)
		}
		if ads[i], err = classad.ParseAd(text, classad.Old); err != nil {
			return b, &adtext.Mistake{Name: f.name, Err: err}
		}
	}
	machine, job := ads[0], ads[1]
	group := "match"
	if rec.Group != nil {
		group = *rec.Group
	}
	r := classad.Match(machine, job, &env)
	b = append(b, `{"id":`...)
	b = appendJSONString(b, *rec.ID)
	b = appendField(b, "group", group)
	b = appendBool(b, "match", r.OK())
	b = appendBool(b, "machine_ok", r.LeftOK)
	b = appendBool(b, "job_ok", r.RightOK)
	b = appendTyped(b, "machine_requirements", attribute(machine, job, requirements, env))
	b = appendTyped(b, "job_requirements", attribute(job, machine, requirements, env))
	b = appendTyped(b, "machine_rank", attribute(machine, job, "Rank", env))
	b = appendTyped(b, "job_rank", attribute(job, machine, "Rank", env))
	b = appendField(b, "machine_rank_number", classad.Real(r.LeftRank).Text(classad.New))
	b = appendField(b, "job_rank_number", classad.Real(r.RightRank).Text(classad.New))
	return append(b, '}'), nil
}

// attribute evaluates an attribute of one ad with the other as its target.
func attribute(my, target *classad.Ad, name string, env classad.Env) match.Typed {
	if _, ok := my.Lookup(name); !ok {
		return match.Typed{Type: typeMissing}
	}
	env.Target = target
	v, ok := my.TryEval(name, &env)
	if !ok {
		return match.Typed{Type: typeEvalFail}
	}
	return match.TypedOf(v)
}

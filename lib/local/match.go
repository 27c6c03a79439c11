// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// mostMatched bounds what one attribute may grow to.
const mostMatched = 1 << 20

// unmatched is something that the machine does not have, in the words that
// HTCondor holds a job with.
type unmatched struct{ what string }

// Error never has the $$( ) itself, which would have to be expanded in turn.
func (u *unmatched) Error() string { return fmt.Sprintf("Cannot expand $$ expression (%s).", u.what) }

// matched returns the job with every $$(Attr) and $$(Attr:default) in its
// strings replaced by what the slot's ad has, and $$([expression]) by the value
// of an expression over both. What was replaced is kept as MATCH_Attr, as
// HTCondor does; MATCH_ attributes are not looked at. The error names what the
// slot does not have.
func matched(job, slotAd *classad.Ad, env *classad.Env) (*classad.Ad, error) {
	out := job.Clone()
	for name, e := range job.All() {
		if len(name) >= 6 && strings.EqualFold(name[:6], "MATCH_") {
			continue
		}
		lit, ok := e.LiteralValue()
		if !ok {
			continue
		}
		text, ok := lit.AsString()
		if !ok || !strings.Contains(text, "$$(") {
			continue
		}
		full, err := fill(text, job, slotAd, env, out)
		if err != nil {
			return nil, err
		}
		out.SetString(name, full)
	}
	return out, nil
}

// fill replaces from left to right; what was put in is not looked at again.
func fill(text string, job, slotAd *classad.Ad, env *classad.Env, out *classad.Ad) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "$$(")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:i])
		rest := text[i+3:]
		end := strings.IndexByte(rest, ')')
		expr := strings.HasPrefix(rest, "[")
		if expr {
			if end = strings.Index(rest, "])"); end >= 0 {
				end++
			}
		}
		if end < 0 {
			b.WriteString(text[i:])
			return b.String(), nil
		}
		value, err := one(rest[:end], expr, job, slotAd, env, out)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		if b.Len() > mostMatched {
			return "", &unmatched{rest[:end]}
		}
		text = rest[end+1:]
	}
}

// one is the text for what stands in $$( ).
func one(what string, expr bool, job, slotAd *classad.Ad, env *classad.Env, out *classad.Ad) (string, error) {
	if expr {
		e, err := classad.ParseExpr(strings.TrimSuffix(strings.TrimPrefix(what, "["), "]"), classad.Old)
		if err != nil {
			return "", &unmatched{what}
		}
		over := *env
		over.My, over.Target = job, slotAd
		return plain(e.Eval(&over), what)
	}
	name, fallback, has := strings.Cut(what, ":")
	over := *env
	over.Target = job
	val := slotAd.Eval(strings.TrimSpace(name), &over)
	if val.IsUndefined() && has {
		out.SetString("MATCH_"+strings.TrimSpace(name), fallback)
		return fallback, nil
	}
	text, err := plain(val, what)
	if err == nil {
		out.SetValue("MATCH_"+strings.TrimSpace(name), val)
	}
	return text, err
}

// plain is a value without the quotes of a string.
func plain(val classad.Value, what string) (string, error) {
	if val.IsUndefined() || val.IsError() {
		return "", &unmatched{what}
	}
	if s, ok := val.AsString(); ok {
		return s, nil
	}
	return val.Text(classad.Old), nil
}

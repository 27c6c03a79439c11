// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/jobenv"
)

func (b *builder) arguments() {
	if script, ok := b.get("shell"); ok {
		b.setString("Arguments", jobenv.ArgsToV2([]string{"-c", script}))
		return
	}
	text, ok := b.get("arguments", "Args", "Arguments")
	if text2, ok2 := b.get("arguments2"); ok2 {
		if ok && !b.boolean(false, "allow_arguments_v1") {
			b.get("arguments2")
			b.bad(0, Problem{Message: "both arguments and arguments2 are given", Want: "one of them"})
			return
		}
		if text, ok = text2, true; !jobenv.IsQuoted(text) {
			b.bad(0, Problem{Value: text, Message: "arguments2 must be in the new syntax", Want: "double quotes around the arguments"})
			return
		}
	}
	args, err := jobenv.ArgsFromSubmit(text)
	if err != nil {
		b.syntax(err, text)
		return
	}
	if !args.V1 || !ok {
		b.setString("Arguments", jobenv.ArgsToV2(args.List))
		return
	}
	v1, err := jobenv.ArgsToV1(args.List)
	if err != nil {
		b.bad(0, Problem{Value: text, Message: err.Error(), Want: "the new syntax"})
		return
	}
	b.setString("Args", v1)
}

// syntax reports a mistake in arguments or an environment.
func (b *builder) syntax(err error, text string) {
	if e, ok := err.(*jobenv.SyntaxError); ok {
		b.bad(e.Offset, Problem{Value: text, Message: e.Msg})
		return
	}
	b.bad(0, Problem{Value: text, Message: err.Error()})
}

func (b *builder) environment() {
	env := jobenv.Env{}
	text, given := b.get("environment", "env", "Environment")
	old := given && strings.EqualFold(b.value.name, "env") && !jobenv.IsQuoted(text)
	at := b.value
	if text2, ok := b.get("environment2"); ok {
		if given && !b.boolean(false, "allow_environment_v1") {
			b.get("environment2")
			b.bad(0, Problem{Message: "both environment and environment2 are given", Want: "one of them"})
			return
		}
		b.get("environment2")
		at = b.value
		if text, given, old = text2, true, false; !jobenv.IsQuoted(text) {
			b.bad(0, Problem{Value: text, Message: "environment2 must be in the new syntax", Want: "double quotes around the assignments"})
			return
		}
	}
	if given {
		b.value = at
		if err := env.MergeSubmit(text); err != nil {
			b.syntax(err, text)
			return
		}
	}
	b.inherit(env)
	if old {
		v1, err := env.V1(jobenv.V1Delimiter)
		if err != nil {
			b.value = at
			b.bad(0, Problem{Value: text, Message: err.Error(), Want: "environment and the new syntax"})
			return
		}
		b.setString("Env", v1)
		b.setString("EnvDelim", string(rune(jobenv.V1Delimiter)))
		return
	}
	b.setString("Environment", env.V2())
}

// inherit adds variables of who submits, as getenv says: true, or a list of
// patterns, those with an exclamation mark for what is left out.
func (b *builder) inherit(env jobenv.Env) {
	text, ok := b.get("getenv", "get_env")
	if !ok {
		return
	}
	var yes, no []string
	if all, isBool := parseBool(text); isBool {
		if !all {
			return
		}
		if allowed, isBool := parseBool(b.d.opts.Config("SUBMIT_ALLOW_GETENV")); isBool && !allowed {
			b.bad(0, Problem{Value: text, Message: "SUBMIT_ALLOW_GETENV forbids this", Want: "a list of variables", Kind: errs.Denied})
			return
		}
	} else {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t", r) }) {
			if pattern, out := strings.CutPrefix(word, "!"); out {
				no = append(no, pattern)
			} else {
				yes = append(yes, word)
			}
		}
	}
	for _, kv := range b.d.opts.Env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.Contains(value, "\n") {
			continue
		}
		if _, set := env[name]; set || anyMatch(no, name) || len(yes) > 0 && !anyMatch(yes, name) {
			continue
		}
		env[name] = value
	}
}

// anyMatch reports whether one of the patterns fits name, ignoring case; a
// star stands for anything.
func anyMatch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard(strings.ToLower(p), strings.ToLower(name)) })
}

func wildcard(pattern, s string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	rest, ok := strings.CutPrefix(s, before)
	if !ok {
		return false
	}
	if !strings.Contains(after, "*") {
		return strings.HasSuffix(rest, after)
	}
	for i := 0; i <= len(rest); i++ {
		if wildcard(after, rest[i:]) {
			return true
		}
	}
	return false
}

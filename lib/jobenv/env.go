// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobenv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Env is a set of environment variables. Names are used as they are, with
// their case. The zero value can be read; use make or Merge* on a made one.
type Env map[string]string

// The characters that may stand first in V1 text to say what separates the
// assignments.
const v1Delimiters = "!#$%&*+,-/:;<>?@^`|~\x1f"

// V1Delimiter is the separator of V1 environments on everything but Windows.
const V1Delimiter = ';'

// MergeV1 adds the assignments of V1 text, the value of the job attribute Env.
// delim separates them (EnvDelim of the job ad, V1Delimiter when it is 0); a
// first character that may be a separator replaces it. A line end separates
// too. Later assignments win. On an error e is unchanged and the error is a
// *SyntaxError.
func (e Env) MergeV1(text string, delim byte) error {
	if delim == 0 {
		delim = V1Delimiter
	}
	at := 0
	if text != "" && (text[0] == delim || strings.IndexByte(v1Delimiters, text[0]) >= 0) {
		delim, at = text[0], 1
	}
	add := make(Env)
	for at < len(text) {
		for at < len(text) && isBlank(text[at]) {
			at++
		}
		end := at
		for end < len(text) && text[end] != delim && text[end] != '\n' {
			end++
		}
		if end > at {
			if err := add.set(text[at:end], at); err != nil {
				return err
			}
		}
		at = end + 1
	}
	maps.Copy(e, add)
	return nil
}

// MergeV2 adds the assignments of V2 text, the value of the job attribute
// Environment. On an error e is unchanged and the error is a *SyntaxError.
func (e Env) MergeV2(text string) error {
	list, starts, err := words(text)
	if err != nil {
		return err
	}
	add := make(Env, len(list))
	for i, w := range list {
		if err := add.set(w, starts[i]); err != nil {
			return err
		}
	}
	maps.Copy(e, add)
	return nil
}

// MergeSubmit adds the value of the submit command "environment" (or "env"):
// V2 text in double quotes, or V1 text. On an error e is unchanged and the
// error is a *SyntaxError.
func (e Env) MergeSubmit(text string) error {
	if !IsQuoted(text) {
		return e.MergeV1(text, V1Delimiter)
	}
	v2, err := Unquote(text)
	if err != nil {
		return err
	}
	return inQuoted(e.MergeV2(v2), text)
}

// MergeList adds entries of the form NAME=value, as a process's environment
// has them. Entries of another form are left out.
func (e Env) MergeList(list []string) {
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			e[name] = value
		}
	}
}

func (e Env) set(entry string, at int) error {
	name, value, ok := strings.Cut(entry, "=")
	if !ok {
		return &SyntaxError{at, "expected NAME=value, found " + clip(entry)}
	}
	if name == "" {
		return &SyntaxError{at, "no variable name before the equals sign in " + clip(entry)}
	}
	if strings.IndexByte(entry, 0) >= 0 {
		return &SyntaxError{at, "a zero byte in " + clip(entry)}
	}
	e[name] = value
	return nil
}

// V1 writes e for the job attribute Env, sorted by name. It fails when a
// variable holds the delimiter or a line end or starts
// with a blank, which V1 cannot say.
func (e Env) V1(delim byte) (string, error) {
	if delim == 0 {
		delim = V1Delimiter
	}
	list := e.List()
	for _, kv := range list {
		if strings.IndexByte(kv, delim) >= 0 || strings.IndexByte(kv, '\n') >= 0 || isBlank(kv[0]) {
			return "", fmt.Errorf("the variable %s cannot be written in the old environment syntax", clip(kv))
		}
	}
	text := strings.Join(list, string(delim))
	if text != "" && strings.IndexByte(v1Delimiters, text[0]) >= 0 {
		text = string(delim) + text // or its first character would be taken for the delimiter
	}
	return text, nil
}

// V2 writes e for the job attribute Environment, sorted by name.
func (e Env) V2() string { return joinWords(e.List()) }

// List returns e as NAME=value entries, sorted by name, for starting a process.
func (e Env) List() []string {
	names := slices.Sorted(maps.Keys(e))
	for i, n := range names {
		names[i] = n + "=" + e[n]
	}
	return names
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program is asked again when its file is another one, when it was of no use, and
// else not.
func TestAnswers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	at := time.Unix(1_800_000_000, 0)
	write := func(text string, at time.Time) func() error {
		return func() error { return errors.Join(os.WriteFile(path, []byte(text), 0o700), os.Chtimes(path, at, at)) }
	}
	replace := func() error {
		return errors.Join(os.WriteFile(path+".new", []byte("two"), 0o700), os.Chtimes(path+".new", at, at), os.Rename(path+".new", path))
	}
	nothing := func() error { return nil }
	var a Answers
	var asked int
	var refuses error
	during := nothing // happens while the program runs
	load := func(ctx context.Context) (methods string, bad []error) {
		p := &Plugins{Programs: []string{path}, NoBuiltin: true, Answers: &a, Run: func(ctx context.Context, _ PluginSpec) (PluginExit, error) {
			asked++
			return PluginExit{Output: []byte("SupportedMethods = \"one\"\n")}, errors.Join(during(), refuses, ctx.Err())
		}}
		bad = p.Load(ctx)
		return strings.Join(p.Methods(), ","), bad
	}
	over, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		name    string
		before  func() error
		during  func() error
		refuses error
		ctx     context.Context
		asked   int
		methods string
		said    int // afterwards
	}{
		{"there is none", nothing, nothing, os.ErrNotExist, t.Context(), 1, "", 0},
		{"the first time", write("one", at), nothing, nil, t.Context(), 1, "one", 1},
		{"the same", nothing, nothing, nil, t.Context(), 0, "one", 1},
		{"of another time, given up", write("one", at.Add(time.Second)), nothing, nil, over, 1, "", 1},
		{"of another time", nothing, nothing, nil, t.Context(), 1, "one", 1},
		{"the same of another time", nothing, nothing, nil, t.Context(), 0, "one", 1},
		{"of another size", write("three", at.Add(time.Second)), nothing, nil, t.Context(), 1, "one", 1},
		{"of the old time and size", write("two", at), nothing, nil, t.Context(), 1, "one", 1},
		{"another file", replace, nothing, nil, t.Context(), 1, "one", 1},
		{"of no use now", write("five.", at), nothing, errors.New("no library"), t.Context(), 1, "", 0},
		{"still of no use", nothing, nothing, errors.New("no library"), t.Context(), 1, "", 0},
		{"of use, written meanwhile", nothing, write("x", at), nil, t.Context(), 1, "one", 0},
		{"of use", nothing, nothing, nil, t.Context(), 1, "one", 1},
	} {
		if err := tt.before(); err != nil {
			t.Fatal(err)
		}
		asked, during, refuses = 0, tt.during, tt.refuses
		methods, bad := load(tt.ctx)
		said := len(a.Said([]string{"/none", path}))
		if asked != tt.asked || methods != tt.methods || said != tt.said || (len(bad) > 0) != (methods == "") {
			t.Errorf("%s: asked %d times, methods %q, %d said, %v; want %d, %q, %d", tt.name, asked, methods, said, bad, tt.asked, tt.methods, tt.said)
		}
	}
}

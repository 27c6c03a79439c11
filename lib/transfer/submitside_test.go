// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every file of the submit side is dealt with by SubmitSide, and none of the
// scratch directory: one that does nothing leaves nothing read or written there.
func TestSubmitSide(t *testing.T) {
	t.Parallel()
	submit, scratch := t.TempDir(), root(t)
	put(t, submit, map[string]string{"in": "1", "data/a": "2", "data/deep/b": "3"})
	var asked []string
	side := SubmitSide(func(path string, f func() error) error {
		rel, err := filepath.Rel(submit, path)
		if err != nil || !filepath.IsLocal(rel) {
			t.Errorf("asked for %s", path)
		}
		asked = append(asked, rel)
		done := make(chan error)
		go func() { done <- f() }() // as one that has other rights
		return <-done
	})
	in := Input{Submit: side, Items: []Item{{Source: filepath.Join(submit, "in"), Name: "in"}, {Source: filepath.Join(submit, "data"), Name: "data"}}}
	if got, err := in.CopyIn(context.Background(), scratch); err != nil || got.Files != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	seen := func(want string) {
		t.Helper()
		slices.Sort(asked)
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("dealt with %s\nwant       %s", got, want)
		}
		asked = nil
	}
	// A file is looked at and opened; a directory is looked at, again where it is
	// below another, and listed.
	seen("data data data data/a data/a data/deep data/deep data/deep data/deep/b data/deep/b in in")
	put(t, scratch.Name(), map[string]string{"out": "4", "std": "5"})
	if err := os.Chmod(filepath.Join(scratch.Name(), "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	out := Output{Iwd: submit, Listed: true, Names: []string{"out", "data"}, Remaps: map[string]string{"data": "back"}, Submit: side, Guarded: true,
		Std: []Std{{Name: "std", Dest: filepath.Join(submit, "std")}}}
	if got, err := out.CopyOut(context.Background(), scratch, nil); err != nil || got.Files != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	// A file is made, and then put in its place; a directory is made.
	seen("back back/a back/a back/deep back/deep/b back/deep/b out out std std")
	if info, err := os.Stat(filepath.Join(submit, "out")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a guarded file has the mode %v, %v", info.Mode(), err)
	}
	refuse := SubmitSide(func(string, func() error) error { return os.ErrPermission })
	in.Submit, out.Submit, out.Iwd = refuse, refuse, t.TempDir()
	if got, err := in.CopyIn(context.Background(), root(t)); err == nil || got.Files > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	out.Std = nil
	if got, err := out.CopyOut(context.Background(), scratch, nil); err == nil || got.Files > 0 || len(tree(t, out.Iwd)) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A job's program does not come back by itself, whatever the job made of it.
func TestProgramStays(t *testing.T) {
	t.Parallel()
	submit, scratch := t.TempDir(), root(t)
	put(t, scratch.Name(), map[string]string{"job.sh": "other", "made": "x"})
	for ad, want := range map[string]string{
		"Cmd = \"/x/job.sh\"\n":                                 "made",
		"Cmd = \"/x/job.sh\"\nTransferOutput = \"job.sh,made\"": "job.sh made",
	} {
		out, err := OutputOf(parse(t, ad), submit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.CopyOut(context.Background(), scratch, Listing{}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range tree(t, submit) {
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %q came back, want %q", ad, got, want)
		}
		for _, name := range names {
			if err := os.Remove(filepath.Join(submit, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

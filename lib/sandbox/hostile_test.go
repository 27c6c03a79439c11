// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
)

// What the job's user put where the starter writes is replaced: no link leads
// the starter's text to another file, in the sandbox of another job least of all.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	other, err := sandbox.Create(sandbox.Spec{Execute: execute, Starter: host.ProcID{PID: 1, Start: 1}, Mode: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	victim := filepath.Join(other.Scratch(), "victim")
	if err := os.WriteFile(victim, []byte("dear"), 0o644); err != nil {
		t.Fatal(err)
	}
	as := 0
	box, err := sandbox.Create(sandbox.Spec{Execute: execute, Starter: host.ProcID{PID: 2, Start: 1}, Mode: 0o700, As: func(f func() error) error {
		as++
		return f()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	toVictim := "../../dir_1/scratch/victim"
	for _, lay := range []func(path string) error{
		func(path string) error { return os.Symlink(toVictim, path) },
		func(path string) error { return os.Link(victim, path) },
		func(path string) error {
			return errors.Join(os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(path, "x"), nil, 0o644))
		},
	} {
		for _, path := range []string{
			filepath.Join(box.User(), sandbox.ChirpFile), filepath.Join(box.Scratch(), sandbox.JobAdFile), filepath.Join(box.Scratch(), sandbox.MachineAdFile),
		} {
			if err := errors.Join(os.RemoveAll(path), lay(path)); err != nil {
				t.Fatal(err)
			}
		}
		path, err := box.WriteChirp("chirp")
		if err = errors.Join(err, box.WriteAds("job", "machine")); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			path: "chirp", filepath.Join(box.Scratch(), sandbox.JobAdFile): "job", filepath.Join(box.Scratch(), sandbox.MachineAdFile): "machine", victim: "dear",
		} {
			if b, err := os.ReadFile(path); err != nil || string(b) != want {
				t.Errorf("%s holds %q, %v, want %q", path, b, err, want)
			}
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	if as != 9 {
		t.Errorf("%d files were written with the user's rights, want 9", as)
	}
}

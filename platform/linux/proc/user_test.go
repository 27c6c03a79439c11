// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// TestSpawnAsUser starts a program for somebody else: with that one's numbers,
// and in no directory that is closed to that one.
func TestSpawnAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start programs for others")
	}
	s := guest(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := host.SpawnSpec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "id -u; id -ru; id -g; id -G; cd " + closed + " || :"}, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: "/", Stdout: out, Bond: host.Bound, User: &host.Identity{Name: "somebody", UID: 61234, GID: 61235, Groups: []uint32{61236, 61237}},
	}
	f, err := s.Spawn(spec)
	if err != nil {
		t.Fatal(err)
	}
	<-f.Done()
	if _, err := f.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(out.Name())
	if want := "61234\n61234\n61235\n61235 61236 61237\n"; err != nil || string(text) != want {
		t.Errorf("got %q, want %q, %v", text, want, err)
	}
	spec.Dir = closed
	if f, err := s.Spawn(spec); !errors.Is(err, unix.EACCES) {
		t.Errorf("started in a directory that is closed to the user: %v", err)
		if err == nil {
			f.Close()
		}
	}
}

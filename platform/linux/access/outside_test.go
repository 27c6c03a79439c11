// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// What a job may name of the machine is what its user may read, and nothing that
// the starter alone reaches.
func TestOutside(t *testing.T) {
	s := newStage(t)
	s.write(filepath.Join(s.own, "mine"), "mine\n", int(s.user.UID), int(s.user.GID))
	s.must(os.Chmod(filepath.Join(s.own, "mine"), 0o600))
	closed := filepath.Join(s.root, "closed", "open") // nobody passes closed, though what is in open may be read by all
	s.must(os.MkdirAll(closed, 0o755))
	s.must(os.Chmod(filepath.Dir(closed), 0o700))
	s.write(filepath.Join(closed, "readable"), "secret\n", 0, 0)
	s.must(os.Chmod(filepath.Join(s.root, "shadow"), 0o600))
	link := func(to, name string) string {
		path := filepath.Join(s.own, name)
		s.must(os.Symlink(to, path))
		return path
	}
	held, err := os.Open(closed) // as the starter holds directories open
	s.must(err)
	defer held.Close()
	fd := "/proc/self/fd/" + strconv.Itoa(int(held.Fd()))
	pipe := filepath.Join(s.own, "pipe")
	s.must(unix.Mkfifo(pipe, 0o644))
	for path, want := range map[string]error{
		filepath.Join(s.own, "mine"): nil,
		s.own:                        nil,
		link("mine", "relative"):     nil,
		link(filepath.Join(s.own, "mine"), "absolute"): nil,
		"/etc/passwd":                                      nil,
		filepath.Join(s.own, "none"):                       unix.ENOENT,
		filepath.Join(s.root, "shadow"):                    unix.EACCES,
		link(filepath.Join(s.root, "shadow"), "to-shadow"): unix.EACCES,
		filepath.Join(closed, "readable"):                  unix.EACCES,
		fd + "/readable":                                   unix.ELOOP,
		link(fd, "to-fd") + "/readable":                    unix.ELOOP,
		"/proc/self/root/etc/passwd":                       unix.ELOOP,
		"/proc/self/cwd":                                   unix.ELOOP,
		"/proc/self/fd":                                    unix.EACCES,
		"/proc/self/environ":                               unix.EACCES,
		"/proc/self/maps":                                  unix.EACCES,
		"/proc/" + strconv.Itoa(os.Getpid()) + "/status":   unix.EACCES,
		link("/proc/thread-self/maps", "to-maps"):          unix.EACCES,
		pipe:        unix.EINVAL,
		"/dev/null": unix.EINVAL,
	} {
		for _, u := range []*host.Identity{s.user, nil} {
			f, err := Outside(u, path)
			if f != nil {
				f.Close()
			}
			expected := want
			if u == nil && errors.Is(want, unix.EACCES) && !strings.HasPrefix(path, "/proc") && path != filepath.Join(s.own, "to-maps") {
				expected = nil // root's own rights
			}
			if !errors.Is(err, expected) || (err == nil) != (f != nil) {
				t.Errorf("%s as %v: %v, %v; want %v", path, u, f, err, expected)
			}
		}
	}
	f, err := Outside(s.user, filepath.Join(s.own, "relative"))
	s.must(err)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "mine\n" {
		t.Errorf("%q, %v", b, err)
	}
	dir, err := Outside(s.user, s.own)
	s.must(err)
	defer dir.Close()
	if all, err := dir.ReadDir(-1); err != nil || len(all) != 7 {
		t.Errorf("%v, %v", all, err)
	}
}

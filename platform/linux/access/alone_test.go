// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"os"
	"path/filepath"
	"testing"
)

// A path is root's alone when every directory on the way is, through links too.
func TestAlone(t *testing.T) {
	s := newStage(t)
	base := filepath.Dir(s.root)
	in := func(dir, name string) string { return filepath.Join(base, dir, name) }
	uid, gid := int(s.user.UID), int(s.user.GID)
	dir := func(name string, mode os.FileMode, uid, gid int) {
		s.must(os.Mkdir(filepath.Join(base, name), 0o700))
		s.must(os.Chown(filepath.Join(base, name), uid, gid))
		s.must(os.Chmod(filepath.Join(base, name), mode))
	}
	dir("open", 0o777, 0, 0)
	dir("group", 0o775, 0, gid)
	dir("sticky", 0o777|os.ModeSticky, 0, 0)
	dir("theirs", 0o755, uid, gid)
	dir("closed", 0o700, 0, 0)
	for _, below := range []string{"open/roots", "sticky/roots", "theirs/roots", "closed/roots"} {
		dir(below, 0o755, 0, 0)
	}
	dir("sticky/users", 0o755, uid, gid)
	s.write(in("root", "users"), "x", uid, gid)
	s.write(in("sticky", "file"), "x", 0, 0)
	link := func(name, to string) { s.must(os.Symlink(to, filepath.Join(base, name))) }
	link("root/to-closed", in("closed", ""))
	link("root/to-relative", "../closed/roots")
	link("root/to-open", in("open", "file"))
	link("root/to-sticky", in("sticky", "file"))
	link("root/dangling", in("root", "none"))
	link("root/dangling-open", in("open", "none"))
	link("root/loop", "loop")
	link("open/link", s.root)
	link("sticky/link", s.root)
	link("theirs/link", s.root)
	link("root/through", in("theirs", "link"))
	link("root/dot", ".")
	for path, want := range map[string]bool{
		"/":                                true,
		"/etc/passwd":                      true,
		s.root:                             true,
		in("root", "shadow"):               true,
		in("root", "none"):                 true, // only root can make it
		in("root", "no/ne"):                true,
		in("root", "users"):                true, // root keeps another's file in a directory of root's
		in("closed", "roots/x"):            true,
		in("sticky", "roots/x"):            true, // as what root makes in /tmp
		in("root", "to-closed/roots/x"):    true,
		in("root", "to-relative/x"):        true,
		in("root", "dangling"):             true,
		base + "/closed/../root//./shadow": true,
		in("root", "dot/dot/shadow"):       true,

		in("open", "x"):               false,
		in("open", ""):                false,
		in("open", "roots/x"):         false,
		in("open", "link/shadow"):     false,
		in("group", "x"):              false,
		in("theirs", "x"):             false,
		in("theirs", "roots/x"):       false,
		in("theirs", "link/shadow"):   false,
		in("sticky", ""):              false,
		in("sticky", "file"):          false, // it may be a second name of another one
		in("sticky", "none"):          false, // others may make it meanwhile
		in("sticky", "users/x"):       false,
		in("sticky", "link/shadow"):   false,
		in("root", "to-open"):         false,
		in("root", "to-sticky"):       false,
		in("root", "dangling-open"):   false,
		in("root", "through/shadow"):  false,
		in("root", "loop"):            false,
		base + "/open/../root/shadow": false, // what .. is there is anybody's guess
		"relative":                    false,
		"":                            false,
	} {
		if err := s.files.Alone(path); (err == nil) != want {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

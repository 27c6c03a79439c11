// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

const stranger = 61234 // a user who need not exist

// Only a directory that no other user could have written in, or put there, is
// opened; the error says why another one is not.
func TestOpenPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mk := func(name string, mode os.FileMode, uid int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(os.MkdirAll(path, 0o700))
		must(os.Chmod(path, mode))
		if uid != 0 {
			must(os.Chown(path, uid, -1))
		}
		return path
	}
	good := mk("good", 0o700, 0)
	link, through := filepath.Join(dir, "link"), filepath.Join(dir, "through")
	must(os.Symlink(good, link))
	must(os.Mkdir(filepath.Join(good, "sub"), 0o755))
	must(os.Symlink(good, through))
	file := filepath.Join(dir, "file")
	must(os.WriteFile(file, nil, 0o600))
	mk("open/sub", 0o700, 0)
	mk("open", 0o777, 0)
	mk("sticky/sub", 0o700, 0)
	mk("sticky", 0o777|os.ModeSticky, 0)
	type test struct {
		name, path string
		kind       errs.Kind
		want       string
	}
	tests := []test{
		{"ours", good, errs.Other, ""},
		{"ours, others may read", filepath.Join(good, "sub"), errs.Other, ""},
		{"a link on the way", filepath.Join(through, "sub"), errs.Other, ""},
		{"in a sticky directory", filepath.Join(dir, "sticky/sub"), errs.Other, ""},
		{"a link", link, errs.Denied, "no link"},
		{"a file", file, errs.Denied, "no directory"},
		{"not there", filepath.Join(dir, "nothing"), errs.NotFound, ""},
		{"nothing on the way", filepath.Join(dir, "nothing", "sub"), errs.NotFound, ""},
		{"the group may write", mk("group", 0o770, 0), errs.Denied, "others may write in it (mode 0770)"},
		{"all may write", mk("all", 0o777|os.ModeSticky, 0), errs.Denied, "others may write"},
		{"all may rename it", filepath.Join(dir, "open/sub"), errs.Denied, "lets everybody rename"},
	}
	if os.Geteuid() == 0 {
		mk("theirs/sub", 0o700, 0)
		tests = append(tests,
			test{"of another user", mk("foreign", 0o700, stranger), errs.Denied, "it belongs to the user 61234, want 0"},
			test{"in one of another user", filepath.Join(mk("theirs", 0o755, stranger), "sub"), errs.Denied, "belongs to the user 61234, want 0 or root"})
	}
	for _, tt := range tests {
		root, err := Directories{}.OpenPrivate(tt.path)
		if errs.KindOf(err) != tt.kind || (err == nil) != (tt.kind == errs.Other) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Base(tt.path)) {
				t.Errorf("%s: %v, want %q and the path", tt.name, err, tt.want)
			}
			continue
		}
		if _, err := root.Stat("."); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		root.Close()
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

func TestReadPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", 0o600)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		limit      int64
		kind       errs.Kind
	}{
		{"a file", good, 10, errs.Other},
		{"a link to it", link, 10, errs.Other},
		{"read only", write("readonly", 0o400), 10, errs.Other},
		{"too long", good, 9, errs.Exhausted},
		{"readable by the group", write("group", 0o640), 10, errs.Denied},
		{"writable by others", write("others", 0o602), 10, errs.Denied},
		{"not there", filepath.Join(dir, "nothing"), 10, errs.NotFound},
		{"a link to nothing", dangling, 10, errs.NotFound},
		{"a directory", dir, 1 << 20, errs.Denied},
		{"a pipe", pipe, 10, errs.Denied},
	}
	for _, tt := range tests {
		b, err := Private{}.ReadPrivate(tt.path, tt.limit)
		if errs.KindOf(err) != tt.kind || (err == nil) != (tt.kind == errs.Other) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
		if err == nil && string(b) != "0123456789" {
			t.Errorf("%s: %q", tt.name, b)
		}
	}
	if os.Getuid() == 0 {
		foreign := write("foreign", 0o600)
		if err := os.Chown(foreign, 1, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := (Private{}).ReadPrivate(foreign, 10); !errs.Is(err, errs.Denied) {
			t.Errorf("a file of another user: %v", err)
		}
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "made")
	o := Owners{}
	if _, err := o.Entry(path); !errs.Is(err, errs.NotFound) {
		t.Fatalf("before: %v", err)
	}
	if err := o.MakeDir(path); err != nil {
		t.Fatal(err)
	}
	e, err := o.Entry(path)
	if err != nil || e.Mode != os.ModeDir|0o700 || e.UID != uint32(os.Geteuid()) || e.Links < 1 || e.Links > 2 {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := o.MakeDir(path); !errs.Is(err, errs.Conflict) {
		t.Errorf("again: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if e, err := o.Entry(link); err != nil || e.Mode&os.ModeSymlink == 0 || e.Mode.IsDir() {
		t.Errorf("a link: %+v, %v", e, err)
	}
	if err := o.MakeDir(link); !errs.Is(err, errs.Conflict) {
		t.Errorf("in place of a link: %v", err)
	}
	if err := os.Chmod(path, 0o700|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if e, err := o.Entry(path); err != nil || e.Mode == os.ModeDir|0o700 {
		t.Errorf("setgid does not show: %+v, %v", e, err)
	}
	if err := o.RemoveDir(link); err == nil {
		t.Error("a link was removed")
	}
	if err := o.RemoveDir(path); err != nil {
		t.Error(err)
	}
	if err := o.RemoveDir(path); !errs.Is(err, errs.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if name, err := o.UserName(0); err != nil || name != "root" {
		t.Errorf("user 0: %q, %v", name, err)
	}
	if name, err := o.UserName(4_123_456_789); !errs.Is(err, errs.NotFound) {
		t.Errorf("nobody: %q, %v", name, err)
	}
}

func TestMakeDirForAnother(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("giving a directory away takes the rights of root")
	}
	path := filepath.Join(t.TempDir(), "made")
	o := Owners{As: &host.Identity{Name: "daemon", UID: 1, GID: 1}}
	if err := o.MakeDir(path); err != nil {
		t.Fatal(err)
	}
	if e, err := o.Entry(path); err != nil || e.UID != 1 || e.Mode != os.ModeDir|0o700 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := o.RemoveDir(path); err != nil {
		t.Error(err)
	}
}

// A file that others may have written is not read.
func TestReadOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", 0o644)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	me := uint32(os.Getuid())
	for _, tt := range []struct {
		name, path string
		users      []uint32
		limit      int64
		kind       errs.Kind
	}{
		{"ours", good, []uint32{0, me}, 10, errs.Other},
		{"a link to it", link, []uint32{me}, 10, errs.Other},
		{"closed to others", write("closed", 0o600), []uint32{me}, 10, errs.Other},
		{"of another user", good, []uint32{me + 1, me + 2}, 10, errs.Denied},
		{"a link to another user's", link, []uint32{me + 1}, 10, errs.Denied},
		{"nobody is trusted", good, nil, 10, errs.Denied},
		{"writable by the group", write("group", 0o664), []uint32{me}, 10, errs.Denied},
		{"writable by all", write("all", 0o646), []uint32{me}, 10, errs.Denied},
		{"too long", good, []uint32{me}, 9, errs.Exhausted},
		{"not there", filepath.Join(dir, "nothing"), []uint32{me}, 10, errs.NotFound},
		{"a directory", dir, []uint32{me}, 1 << 20, errs.Denied},
		{"a pipe", pipe, []uint32{me}, 10, errs.Denied},
	} {
		b, err := ReadOf(tt.users, tt.path, tt.limit)
		if errs.KindOf(err) != tt.kind || (err == nil) != (tt.kind == errs.Other) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
		if err == nil && string(b) != "0123456789" {
			t.Errorf("%s: %q", tt.name, b)
		}
	}
}

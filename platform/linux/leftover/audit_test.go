// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package leftover

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/host"
)

// nobodysAccess reaches no file: the user may open nothing.
type nobodysAccess struct{ host.Access }

func (nobodysAccess) As(*host.Identity, func() error) error { return nil }

// Of an account that others use, what came before the job is not named, nor what a
// process made that lives still; and nothing is removed, whatever the account is for.
func TestSharedAccount(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("self/mountinfo", "")
	write("70/stat", "")
	write("sysvipc/shm", "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime\n"+
		"1 3 666 4096 70 70 0 1103 1 1103 1 0 0 2000\n"+ // whose creator lives
		"1 4 666 4096 71 71 0 1103 1 1103 1 0 0 2000\n"+
		"1 5 666 4096 71 71 0 1103 1 1103 1 0 0 1000\n"+ // older
		"1 6 666 4096 71 71 0 1104 1 1103 1 0 0 2000\n") // another's
	f := &Finder{Access: nobodysAccess{}, Proc: root, Shared: []string{"/dev/shm", "/tmp"}}
	got, err := f.Audit(host.AuditSpec{User: &host.Identity{Name: "u", UID: 1103}, Since: time.Unix(1500, 0), Scratch: "/s", Remove: true, Shared: true})
	want := host.Audit{Found: []host.Leftover{{Kind: host.LeftMemory, Name: "4", Bytes: 4096}}, Shared: true}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

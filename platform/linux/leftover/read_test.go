// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	shmText = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n" +
		"1094795585          3   666                  4096   100   100      0  1103  1103  1104  1104          0          0 1782000000                     0                     0\n"
	semText = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n         0          7   600          2  1103  1103  1103  1103          0 1782000001\n"
	msgText = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n         0          9   600          11          1     5     0  1103  1103  1103  1103          0          0 1782000002\n"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Object{
		shmText: {ID: 3, Owner: 1103, Was: 1104, Creator: 100, Bytes: 4096, Changed: time.Unix(1782000000, 0)},
		semText: {ID: 7, Owner: 1103, Was: 1103, Changed: time.Unix(1782000001, 0)},
		msgText: {ID: 9, Owner: 1103, Was: 1103, Bytes: 11, Changed: time.Unix(1782000002, 0)},
	} {
		got, err := Objects([]byte(text))
		if d := cmp.Diff([]Object{want}, got); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
	}
	for _, bad := range []string{"shmid uid\n1\n", "shmid uid\n1 x\n"} {
		if got, err := Objects([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	const text = "31 23 0:28 / /e/dir_1/scratch rw - tmpfs tmpfs rw\n32 31 0:29 / /e/dir_1/scratch/a\\040b rw - tmpfs tmpfs rw\n" +
		"33 32 0:30 / /e/dir_1/scratch/a\\040b/c\\134 rw - tmpfs tmpfs rw\n34 31 0:31 / /e/dir_1/scratch2 rw - tmpfs tmpfs rw\nshort\n"
	if d := cmp.Diff([]string{`/e/dir_1/scratch/a b/c\`, "/e/dir_1/scratch/a b"}, Mounts([]byte(text), "/e/dir_1/scratch")); d != "" {
		t.Error(d)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{shmText, semText, msgText, `1 1 0:1 / /a\040`, `1 1 0:1 / /a\4`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Objects(text)
		for _, at := range Mounts(text, "/a") {
			if len(at) < 3 || at[:3] != "/a/" {
				t.Errorf("%q", at)
			}
		}
	})
}

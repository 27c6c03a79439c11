// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// FuzzOwner finds any bytes in the record of a run directory. A record that is
// no JSON, or names no process, is nobody's and stays; one of a process that
// is gone is swept where it says and nowhere else. What is read is the same
// when it is written.
func FuzzOwner(f *testing.F) {
	for _, text := range []string{
		`{"proc":{"pid":7,"start":123},"execute":"/var/lib/execute","keep":false}`, `{"proc":{"pid":7},"elsewhere":["/a","/b"],"keep":true}`,
		"", "null", "{}", `{"proc":{"pid":-1}}`, `{"proc":{"pid":1e99}}`, `{"proc":7}`, `{"execute":"\u0000"}`, "{", `{"proc":{"pid":7}} x`,
	} {
		f.Add([]byte(text))
	}
	for _, files := range []string{"/", ".", "/nowhere/execpoint-run-1-x", "execpoint-run-1-x/.."} {
		f.Add([]byte(fmt.Sprintf(`{"proc":{"pid":7},"files":%q}`, files)))
	}
	base := f.TempDir()
	private := only(base)
	f.Fuzz(func(t *testing.T, record []byte) {
		path := filepath.Join(base, runPrefix+"1")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, ownerFile), record, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func() (Dir, Owner) {
			dirs, owners, err := Dirs(private, base)
			if err != nil || len(dirs) != 1 || dirs[0].Path != path {
				t.Fatalf("%v, %v", dirs, err)
			}
			return dirs[0], owners[0]
		}
		d, o := read()
		if err := d.WriteOwner(o); err != nil {
			t.Fatal(err)
		}
		if _, again := read(); !cmp.Equal(o, again) {
			diff := cmp.Diff(o, again)
			t.Errorf("%q is written and read again differently\n%s", record, diff)
		}
		var swept []string
		removed, err := SweepDirs(private, base, func(host.ProcID) bool { return false }, func(execute string) error { swept = append(swept, execute); return nil })
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, dir := range append([]string{o.Execute}, o.Elsewhere...) {
			if root, err := private.OpenPrivate(dir); o.Proc.PID != 0 && err == nil {
				root.Close()
				want = append(want, dir)
			}
		}
		if gone := o.Proc.PID != 0 && !o.Keep; !slices.Equal(swept, want) || len(removed) == 1 && !gone && d.Files == "" {
			t.Errorf("%q: %q is swept, want %q; removed is %q", record, swept, want, removed)
		}
	})
}

// only is a host.PrivateDirs to which nothing but one directory and what is in
// it is there.
type only string

func (o only) OpenPrivate(path string) (*os.Root, error) {
	if clean := filepath.Clean(path); clean != string(o) && !strings.HasPrefix(clean, string(o)+"/") {
		return nil, errs.E("only", errs.NotFound, path, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.E("only", errs.NotFound, path, err)
	}
	return root, nil
}

func (o only) Private(*os.Root) error { return nil }

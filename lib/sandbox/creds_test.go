// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

func TestCredFile(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]string{
		"scitokens": "scitokens.use", "box*private": "box_private.use", "a.b": "a.b.use",
		"": "", "../x": "", "/etc/x": "", "a/b": "", ".ssh": "", "a\x00": "", "..": "",
	} {
		if got, err := credFile(service); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", service, got, err)
		}
	}
}

// A secret replaces what the job has put in its place, and in that of the directory of
// secrets; it follows no link, and leaves nothing beside it.
func TestWritePrivate(t *testing.T) {
	t.Parallel()
	for name, lay := range map[string]func(r *os.Root) error{
		"nothing":                    func(*os.Root) error { return nil },
		"a file":                     func(r *os.Root) error { return r.WriteFile("proxy", []byte("old"), 0o644) },
		"a link":                     func(r *os.Root) error { return r.Symlink("other", "proxy") },
		"a link in the directory's":  func(r *os.Root) error { return r.Symlink("/tmp", CredsDir) },
		"a file in the directory's":  func(r *os.Root) error { return r.WriteFile(CredsDir, nil, 0o644) },
		"a directory in its way":     func(r *os.Root) error { return r.MkdirAll(CredsDir+"/proxy.tmp/deep", 0o700) },
		"a directory with something": func(r *os.Root) error { return r.MkdirAll(CredsDir+"/kept", 0o700) },
	} {
		box, err := Create(Spec{Execute: t.TempDir(), Starter: host.ProcID{PID: 1000, Start: 1}, Mode: 0o700})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Root().WriteFile("other", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := lay(box.Root()); err != nil {
			t.Fatal(err)
		}
		if err := box.WritePrivate("proxy", []byte("new")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := box.Root().ReadFile("proxy")
		info, serr := box.Root().Lstat("proxy")
		if err != nil || serr != nil || string(text) != "new" || info.Mode() != 0o600 {
			t.Errorf("%s: %q with mode %v, %v", name, text, info, errors.Join(err, serr))
		}
		if text, err := box.Root().ReadFile("other"); err != nil || len(text) > 0 {
			t.Errorf("%s: the file of the link holds %q, %v", name, text, err)
		}
		if _, err := box.Root().Lstat(CredsDir + "/proxy.tmp"); err == nil {
			t.Errorf("%s: a part is left", name)
		}
		if err := box.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestListenControl(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ctl")
	first, err := ListenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := ListenControl(path); !errs.Is(err, errs.Conflict) {
		t.Errorf("where somebody listens: %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as one that was killed
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := ListenControl(path)
	if err != nil {
		t.Fatalf("where a dead one was: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenControl(path); err == nil {
		l.Close()
		t.Error("a file was replaced")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"net"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestPeerUser(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if got, ours, err := PeerUser(in); err != nil || got != me.Username || !ours {
		t.Errorf("PeerUser = %q, %v, want %q", got, err, me.Username)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, _, err := PeerUser(a); !errs.Is(err, errs.Invalid) {
		t.Errorf("of a pipe: %v", err)
	}
	in.Close()
	if _, _, err := PeerUser(in); !errs.Is(err, errs.Broken) {
		t.Errorf("of a closed connection: %v", err)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"crypto/tls"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
)

// delegates plays a sender that delegates a proxy by that name and has a file behind
// it. answer makes what it sends of our request.
func delegates(t *testing.T, conn *cedar.Conn, name string, answer func(request []byte) []byte) {
	s := script(t, conn).begin(0).int(cmdX509).str(name).ahead()
	s.answers(2) // longer interval, always
	request, err := delegation.Read(conn)
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		t.Error(err)
		return
	}
	delegation.Put(conn, answer(request))
	s.end()
	s.file("a", "A").int(cmdFinished).ad("[ Result = 0 ]")
}

// A delegated proxy is a file of its owner's alone, in place of whatever was there,
// and never in place of what a link leads to.
func TestReceiveProxy(t *testing.T) {
	t.Parallel()
	user := delegationtest.New(t, "alice")
	sign := func(request []byte) []byte {
		chain, err := user.Delegate(request)
		if err != nil {
			t.Error(err)
		}
		return chain
	}
	for what, prepare := range map[string]func(*os.Root) error{
		"a new file":   func(*os.Root) error { return nil },
		"an older one": func(r *os.Root) error { return r.WriteFile("x509up", []byte("old"), 0o644) },
		"a link":       func(r *os.Root) error { return r.Symlink("other", "x509up") },
	} {
		a, b := ends(t)
		into := root(t)
		if err := into.WriteFile("other", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := prepare(into); err != nil {
			t.Fatal(err)
		}
		go delegates(t, a, "x509up", sign)
		var owned []string
		got, err := Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{Owner: func(_ *os.Root, name string, _ bool) error {
			owned = append(owned, name)
			return nil
		}})
		if err != nil || got.Files != 2 || got.Bytes != 1 {
			t.Fatalf("%s: %+v, %v", what, got, err)
		}
		path := filepath.Join(into.Name(), "x509up")
		if _, err := tls.LoadX509KeyPair(path, path); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", what, info.Mode(), err)
		}
		if strings.Join(owned, " ") != "x509up a" {
			t.Errorf("%s: made %v", what, owned)
		}
		if text, err := into.ReadFile("other"); err != nil || len(text) != 0 {
			t.Errorf("%s: the file beside it holds %q, %v", what, text, err)
		}
	}
}

// A sender without a proxy, or with one for another key, leaves none; it is told, and
// may try again.
func TestReceiveNoProxy(t *testing.T) {
	t.Parallel()
	user := delegationtest.New(t, "alice")
	other, err := delegation.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	for mention, answer := range map[string]func([]byte) []byte{
		"has no proxy that it could delegate": func([]byte) []byte { return nil },
		"is not for the key that was sent": func([]byte) []byte {
			chain, err := user.Delegate(other.DER())
			if err != nil {
				t.Error(err)
			}
			return chain
		},
		"is no chain of certificates": func([]byte) []byte { return []byte("-----BEGIN") },
	} {
		a, b := ends(t)
		into := root(t)
		go delegates(t, a, "x509up", answer)
		_, err := Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{})
		if f := failure(t, err); f.HoldCode != HoldDownload || !f.Retry || !strings.Contains(f.Error(), mention) {
			t.Errorf("%+v, want %q", f, mention)
		}
		if entries, err := fs.ReadDir(into.FS(), "."); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v is left, %v", mention, entries, err)
		}
	}
}

// A proxy whose name leads out of the directory is written nowhere.
func TestReceiveProxyOutside(t *testing.T) {
	t.Parallel()
	user := delegationtest.New(t, "alice")
	a, b := ends(t)
	into := root(t)
	go delegates(t, a, "../x509up", func(request []byte) []byte {
		chain, err := user.Delegate(request)
		if err != nil {
			t.Error(err)
		}
		return chain
	})
	_, err := Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{})
	if f := failure(t, err); f.HoldCode != HoldDownload || f.HoldSubcode != subNotPermitted {
		t.Errorf("%+v", f)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(into.Name()), "x509up")); err == nil {
		t.Error("the proxy lies outside")
	}
}

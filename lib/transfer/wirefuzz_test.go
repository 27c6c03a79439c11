// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
)

// tap copies what is written.
type tap struct {
	net.Conn
	wrote bytes.Buffer
}

func (t *tap) Write(b []byte) (int, error) {
	t.wrote.Write(b)
	return t.Conn.Write(b)
}

// overheard are the bytes of both directions of a transfer in clear.
func overheard(f testing.TB, plan SendPlan) (sender, receiver []byte) {
	from, into := root(f), root(f)
	put(f, from.Name(), map[string]string{"a": "A", "d/b": "BB", "empty": ""})
	x, y := cedartest.Pipe()
	a, b := &tap{Conn: x}, &tap{Conn: y}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Send(f.Context(), Side{Conn: cedar.NewConn(a, cedar.Limits{})}, from, plan, SendOptions{})
	}()
	_, _ = Receive(f.Context(), Side{Conn: cedar.NewConn(b, cedar.Limits{})}, into, ReceiveOptions{})
	<-done
	return a.wrote.Bytes(), b.wrote.Bytes()
}

func seeds(f *testing.F, sender bool) {
	for _, plan := range []SendPlan{
		{Items: items("a", "d", "empty")}, {Final: true, Items: items("none", "http://h/x")}, {Items: []SendItem{{Source: "a", URL: "x://y"}}}, {},
	} {
		s, r := overheard(f, plan)
		if sender {
			f.Add(s)
		} else {
			f.Add(r)
		}
	}
	f.Add([]byte{})
}

// FuzzReceive lets anything play the sender. Nothing is made outside of the
// directory, and every failure is a *WireFailure.
func FuzzReceive(f *testing.F) {
	seeds(f, true)
	f.Fuzz(func(t *testing.T, data []byte) {
		x, y := cedartest.Pipe()
		if _, err := x.Write(data); err != nil {
			t.Fatal(err)
		}
		_ = x.Close()
		parent := t.TempDir()
		if err := os.Mkdir(filepath.Join(parent, "s"), 0o700); err != nil {
			t.Fatal(err)
		}
		into, err := os.OpenRoot(filepath.Join(parent, "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close()
		_, err = Receive(t.Context(), Side{Conn: cedar.NewConn(writeOnly{y}, cedar.Limits{})}, into, ReceiveOptions{MaxItems: 100, MaxBytes: 1 << 20, Plugins: &Plugins{NoBuiltin: true}})
		var w *WireFailure
		if err != nil && (!errors.As(err, &w) || strings.ContainsAny(w.Reason, "\n\r\x00")) {
			t.Errorf("%v", err)
		}
		if all, err := os.ReadDir(parent); err != nil || len(all) != 1 {
			t.Errorf("%v beside the directory, %v", all, err)
		}
		_ = fs.WalkDir(into.FS(), ".", func(_ string, d fs.DirEntry, _ error) error {
			if d != nil && d.Type()&fs.ModeSymlink != 0 {
				t.Error("a link was made")
			}
			return nil
		})
	})
}

// writeOnly takes what is written even if nobody is there.
type writeOnly struct{ net.Conn }

func (w writeOnly) Write(b []byte) (int, error) { return len(b), nil }

// FuzzSend lets anything play the receiver.
func FuzzSend(f *testing.F) {
	seeds(f, false)
	from := root(f)
	put(f, from.Name(), map[string]string{"a": "A", "d/b": "BB"})
	f.Fuzz(func(t *testing.T, data []byte) {
		x, y := cedartest.Pipe()
		if _, err := x.Write(data); err != nil {
			t.Fatal(err)
		}
		_ = x.Close()
		_, err := Send(t.Context(), Side{Conn: cedar.NewConn(writeOnly{y}, cedar.Limits{})}, from, SendPlan{Items: items("a", "d", "none")}, SendOptions{})
		var w *WireFailure
		if !errors.As(err, &w) { // none is missing
			t.Errorf("%v", err)
		}
	})
}

func FuzzParseAds(f *testing.F) {
	for _, s := range []string{"", "[ a = 1 ]", "   [a=\"]\"][b='[']x[", "[[a=1]]", `[ a = "\"]" ]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, ad := range parseAds(b) {
			if _, err := classad.ParseAd(ad.Text(classad.New), classad.New); err != nil {
				t.Errorf("%q: %v", b, err)
			}
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	f.Add([]byte("MultipleFileSupport = true\nSupportedMethods = \"http,https\"\n"))
	f.Add([]byte("=\n = \n#=\nx=="))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parseQuery("x", b); err == nil && (len(p.Methods) == 0 || p.Protocol < 1) {
			t.Errorf("%q: %+v", b, p)
		}
	})
}

func FuzzJobPlugins(f *testing.F) {
	f.Add("a=b;c,d=/e/f")
	f.Add("=;a=..;")
	f.Fuzz(func(t *testing.T, s string) {
		ad := classad.NewAd()
		ad.SetString("TransferPlugins", s)
		all, err := JobPlugins(ad)
		for _, p := range all {
			if !filepath.IsLocal(p.Path) || strings.ContainsAny(p.Path, `/`) || len(p.Methods) == 0 {
				t.Errorf("%q: %+v, %v", s, p, err)
			}
		}
	})
}

func FuzzLegalName(f *testing.F) {
	for _, s := range []string{"a", "a/b", "..", "/", "a/../b", "", "a\x00", `C:\x`, "con"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !legalName(s) {
			return
		}
		if got := filepath.Join("/r", filepath.FromSlash(s)); !strings.HasPrefix(got, filepath.FromSlash("/r/")) || strings.ContainsAny(s, "\n\r\x00") {
			t.Errorf("%q is %q", s, got)
		}
	})
}

func FuzzDataURL(f *testing.F) {
	f.Add("data:text/plain;base64,aGk=")
	f.Add("data:,%zz")
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := dataURL(s); err == nil && len(got) > len(s) {
			t.Errorf("%q: %q", s, got)
		}
		_ = safeURL(s)
		_ = methodOf(s)
	})
}

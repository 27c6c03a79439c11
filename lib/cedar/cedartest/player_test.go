// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

const vectors = "../testdata/vectors"

// A player notices everything that is not as recorded.
func TestPlayerNotices(t *testing.T) {
	t.Parallel()
	c := cedartest.Load(t, vectors+"/shared-port.json").Connections[1]
	sent := func(edit func(i int, b []byte) []byte) (all []byte) {
		for i, m := range c.From(cedartest.Client) {
			all = append(all, edit(i, bytes.Clone(bytes.Join(asBytes(m.Packets), nil)))...)
		}
		return all
	}
	as := func(_ int, b []byte) []byte { return b }
	for name, tt := range map[string]struct {
		bytes []byte
		ok    bool
	}{
		"as recorded": {sent(as), true},
		"one byte": {sent(func(i int, b []byte) []byte {
			if i == 0 {
				b[50] ^= 1
			}
			return b
		}), false},
		"encrypted byte": {sent(func(i int, b []byte) []byte {
			b[len(b)-1] ^= 1
			return b
		}), false},
		"one message less": {sent(func(i int, b []byte) []byte {
			if i == 1 {
				return nil
			}
			return b
		}), false},
		"more":    {append(sent(as), 1), false},
		"nothing": {nil, false},
	} {
		for _, exact := range []bool{true, false} {
			if !exact && name == "as recorded" {
				continue // a live player has an IV of its own, and so its peer must be one
			}
			a, b := cedartest.Pipe()
			if _, err := a.Write(tt.bytes); err != nil {
				t.Fatal(err)
			}
			_ = a.Close()
			p := &cedartest.Player{Conn: c, Role: cedartest.Server, Exact: exact}
			if err := p.Play(writeOnly{b}); (err == nil) != tt.ok {
				t.Errorf("%s, exact %v: %v", name, exact, err)
			}
		}
	}
}

func asBytes(all []cedartest.Hex) [][]byte {
	b := make([][]byte, len(all))
	for i := range all {
		b[i] = all[i]
	}
	return b
}

// writeOnly takes what is written even if nobody is there.
type writeOnly struct{ conn }

type conn interface {
	net.Conn
}

func (w writeOnly) Write(b []byte) (int, error) { return len(b), nil }

func TestPipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := cedartest.Pipe()
		if _, err := a.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2)
		if n, err := b.Read(buf); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		start := time.Now()
		_ = b.SetReadDeadline(start.Add(time.Second))
		if n, err := b.Read(buf); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := b.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		_ = b.SetDeadline(time.Time{})
		done := make(chan error)
		go func() {
			_, err := b.Read(buf)
			done <- err
		}()
		synctest.Wait()
		_ = b.SetReadDeadline(time.Unix(1, 0))
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = b.SetDeadline(time.Time{})
		_ = a.Close()
		if _, err := b.Read(buf); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if _, err := b.Write(buf); err == nil {
			t.Error("written to nobody")
		}
	})
}

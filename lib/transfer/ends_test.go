// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

var errNoSpace = errors.New("no space left on device")

// testErrno knows the error of a full disk.
func testErrno(err error) (int, string, bool) {
	if errors.Is(err, errNoSpace) {
		return 28, "No space left on device", true
	}
	return 0, "", false
}

// tcpEnds returns two ends of an encrypted connection over loopback.
func tcpEnds(t testing.TB) (a, b *cedar.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = x.Close()
		_ = y.Close()
	})
	a, b = cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	for _, c := range []*cedar.Conn{a, b} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// benchMove moves plan once per round.
func benchMove(b *testing.B, from *os.Root, into func() *os.Root, plan SendPlan, ro ReceiveOptions, bytes int64) {
	b.ReportAllocs()
	b.SetBytes(bytes)
	for b.Loop() {
		x, y := tcpEnds(b)
		done := make(chan error, 1)
		go func() {
			_, err := Send(b.Context(), Side{Conn: x}, from, plan, SendOptions{})
			done <- err
		}()
		if _, err := Receive(b.Context(), Side{Conn: y}, into(), ro); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		_ = x.Close()
		_ = y.Close()
	}
}

// One file of 1 GiB over loopback, encrypted, from a file into nothing and
// from nothing into a file: each end alone with the wire.
func BenchmarkLarge(b *testing.B) {
	const size = 1 << 30
	from, into := root(b), root(b)
	f, err := from.Create("big")
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		b.Fatal(err)
	}
	_ = f.Close()
	plan := SendPlan{Items: items("big")}
	b.Run("file to nothing", func(b *testing.B) {
		benchMove(b, from, func() *os.Root { return into }, plan, ReceiveOptions{create: func(string) (sink, error) { return &countingSink{}, nil }}, size)
	})
	b.Run("file to file", func(b *testing.B) {
		benchMove(b, from, func() *os.Root { return into }, plan, ReceiveOptions{}, size)
	})
}

func BenchmarkSmall1000(b *testing.B) {
	from := root(b)
	var names []string
	for i := range 1000 {
		name := fmt.Sprintf("file%04d", i)
		names = append(names, name)
		if err := from.WriteFile(name, make([]byte, 1000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	benchMove(b, from, func() *os.Root { return root(b) }, SendPlan{Items: items(names...)}, ReceiveOptions{}, 1000*1000)
}

var _ io.Writer = (*countingSink)(nil)

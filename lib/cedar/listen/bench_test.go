// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
)

// echoes starts a server in earnest that repeats texts.
func echoes(b *testing.B, l Limits) (address string) {
	b.Helper()
	_, address = echoing(b, open{}, l)
	return address
}

func say(b *testing.B, conn *cedar.Conn) {
	conn.PutInt(echoCommand)
	conn.PutString("hello")
	if err := conn.EndMessage(); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.String(); err != nil {
		b.Fatal(err)
	}
	if err := conn.EndOfMessage(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIdle tells what the server holds for a connection between two
// commands, both ends of it together.
func BenchmarkIdle(b *testing.B) {
	const n = 400
	for b.Loop() {
		address := echoes(b, Limits{Conns: 2 * n, PerPeer: 2 * n})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		conns := make([]*cedar.Conn, n)
		for i := range conns {
			nc, err := net.Dial("tcp4", address)
			if err != nil {
				b.Fatal(err)
			}
			conns[i] = cedar.NewConn(nc, cedar.Limits{})
			say(b, conns[i])
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := float64(after.HeapInuse+after.StackInuse) - float64(before.HeapInuse+before.StackInuse)
		b.ReportMetric(held/n, "B/conn")
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

func BenchmarkCommandOnOpenConnection(b *testing.B) {
	nc, err := net.Dial("tcp4", echoes(b, Limits{}))
	if err != nil {
		b.Fatal(err)
	}
	conn := cedar.NewConn(nc, cedar.Limits{})
	b.ReportAllocs()
	for b.Loop() {
		say(b, conn)
	}
	_ = conn.Close()
}

func BenchmarkCommandOnNewConnection(b *testing.B) {
	address := echoes(b, Limits{})
	b.ReportAllocs()
	for b.Loop() {
		nc, err := net.Dial("tcp4", address)
		if err != nil {
			b.Fatal(err)
		}
		conn := cedar.NewConn(nc, cedar.Limits{})
		say(b, conn)
		_ = conn.Close()
	}
}

func BenchmarkAdmitInAFlood(b *testing.B) {
	g := newGuard(Limits{})
	conns := make([]net.Conn, 8)
	for i := range conns {
		c, _ := net.Pipe()
		conns[i] = from{c, tcp([]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1", "192.0.2.5:1", "192.0.2.6:1", "192.0.2.7:1", "192.0.2.8:1"}[i])}
	}
	b.ReportAllocs()
	n := 0
	now := time.Now()
	for b.Loop() {
		now = now.Add(maxSilence)
		_, _, _, _ = g.admit(conns[n%len(conns)], now)
		n++
	}
}

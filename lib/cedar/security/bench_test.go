// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// benchWorld has a server that accepts in the goroutine of a loop, so that a
// benchmark counts both sides.
func benchWorld(b *testing.B) (*world, chan net.Conn) {
	w := newWorld(b, open, "")
	quiet := slog.New(slog.DiscardHandler)
	w.server.Log, w.client.Log = quiet, quiet
	arrived := make(chan net.Conn)
	w.client.Dial = func(context.Context, cedar.Sinful) (net.Conn, error) {
		mine, yours := cedartest.Pipe()
		arrived <- yours
		return mine, nil
	}
	go func() {
		for nc := range arrived {
			conn := cedar.NewConn(nc, cedar.Limits{})
			if _, err := w.server.Handshake(context.Background(), conn, w.from); err != nil {
				b.Error(err)
			}
			if _, err := conn.Int(); err != nil || conn.EndOfMessage() != nil {
				b.Error(err)
			}
			conn.PutInt(1)
			if err := conn.EndMessage(); err != nil {
				b.Error(err)
			}
			_ = conn.Close()
		}
	}()
	b.Cleanup(func() { close(arrived) })
	return w, arrived
}

func (w *world) once(b *testing.B, o Options) {
	conn, _, err := w.client.Command(b.Context(), serverAddress, cmdQuery, o)
	if err != nil {
		b.Fatal(err)
	}
	conn.PutInt(7)
	if err := conn.EndMessage(); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Int(); err != nil {
		b.Fatal(err)
	}
	_ = conn.Close()
}

// Both sides of a resumed command with a payload and a reply, over memory.
// Run it with -cpu 1: the aim is 2,000 a second on one core.
func BenchmarkResume(b *testing.B) {
	w, _ := benchWorld(b)
	w.once(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		w.once(b, Options{})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}

// Both sides of a new session with a key exchange.
func BenchmarkNewSession(b *testing.B) {
	w, _ := benchWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		w.once(b, Options{Temporary: true})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
	"github.com/execpoint/execpoint/lib/slot"
)

// drain is a collector that takes everything over TCP and understands nothing.
type drain struct {
	listen net.Listener
}

func newDrain(b *testing.B) *drain {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	d := &drain{listen: l}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 1<<16)
				for {
					if _, err := nc.Read(buf); err != nil {
						_ = nc.Close()
						return
					}
				}
			}()
		}
	}()
	b.Cleanup(func() { _ = l.Close() })
	return d
}

func (d *drain) Command(ctx context.Context, _ cedar.Sinful, _ int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	nc, err := net.Dial("tcp", d.listen.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.SetPeerVersion("25.14.0")
	return conn, &security.Session{PeerVersion: "$CondorVersion: 25.14.0 2026-11-20 x $"}, conn.EnableAES(bytes.Repeat([]byte{1}, 32))
}

func benchmarkPool(b *testing.B, slots int) (p *pool.Pool, e *pooltest.EP, told <-chan struct{}) {
	b.Helper()
	at, err := cedar.ParseSinful(ourAddress)
	if err != nil {
		b.Fatal(err)
	}
	log := rounds{slog.DiscardHandler, make(chan struct{}, 1)}
	system := clock.System()
	e = pooltest.New(b, pooltest.Options{Cpus: slots, Clock: system, Address: ourAddress, Text: fmt.Sprintf(
		"COLLECTOR_HOST = cm\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_SLOTS_TYPE_1 = %d\n", slots)})
	p = pool.New(pool.Config{
		Owner: e, Open: newDrain(b), Sessions: security.NewSessions(system, 0), Address: func() cedar.Sinful { return at }, Start: e.Start, Clock: system,
		Log: slog.New(log),
	}, e.Settings(b))
	ctx, cancel := context.WithCancel(b.Context())
	e.Begin(ctx, b, p)
	ran := make(chan struct{})
	go func() { defer close(ran); p.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-ran })
	return p, e, log.told
}

// rounds signals each time that the log says so of a collector.
type rounds struct {
	slog.Handler
	told chan struct{}
}

func (r rounds) Enabled(context.Context, slog.Level) bool { return true }
func (r rounds) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r rounds) Handle(_ context.Context, l slog.Record) error {
	if l.Message == "collector told" {
		select {
		case r.told <- struct{}{}:
		default:
		}
	}
	return nil
}

func awaitUpdates(b *testing.B, p *pool.Pool, told <-chan struct{}, n int64) {
	for p.Collectors()[0].Updates < n {
		select {
		case <-b.Context().Done():
			b.Fatal("not told")
		case <-told:
		}
	}
}

// BenchmarkAllSlots is a full update: 10,000 slot ads with their private ads
// and the daemon's ad made, encrypted and sent over TCP. The target is a
// second.
func BenchmarkAllSlots(b *testing.B) {
	const slots = 10000
	p, e, told := benchmarkPool(b, slots)
	awaitUpdates(b, p, told, slots+1)
	n := int64(slots + 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Do(b.Context(), func(t engine.Turn) { p.Perform(t.Now, ep.UpdateDue{}) }); err != nil {
			b.Fatal(err)
		}
		n += slots + 1
		awaitUpdates(b, p, told, n)
	}
	b.ReportMetric(float64(slots)*float64(b.N)/b.Elapsed().Seconds(), "ads/s")
}

// BenchmarkOneSlot is the update of one slot among so many, without the
// second for which changes are gathered.
func BenchmarkOneSlot(b *testing.B) {
	for _, slots := range []int{8, 10000} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			p, e, told := benchmarkPool(b, slots)
			awaitUpdates(b, p, told, int64(slots+1))
			n := int64(slots + 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Do(b.Context(), func(t engine.Turn) {
					p.Perform(t.Now, ep.AdChanged{Slot: slot.ID{N: 1}})
				}); err != nil {
					b.Fatal(err)
				}
				p.Flush()
				n++
				awaitUpdates(b, p, told, n)
			}
		})
	}
}

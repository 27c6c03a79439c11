// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
)

// sink is a connection that takes everything and says nothing.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error)      { return len(b), nil }
func (sink) SetDeadline(time.Time) error      { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) RemoteAddr() net.Addr             { return nil }
func (sink) Close() error                     { return nil }

// source is a connection that yields the same bytes again and again; how
// often is up to its reader.
type source struct {
	sink
	b  []byte
	at int
}

func (s *source) Read(b []byte) (int, error) {
	n := copy(b, s.b[s.at:])
	s.at = (s.at + n) % len(s.b)
	return n, nil
}

// recorder keeps what is written.
type recorder struct {
	sink
	b []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.b = append(r.b, b...)
	return len(b), nil
}

func aesConn(b testing.TB, nc net.Conn) *cedar.Conn {
	c := cedar.NewConn(nc, cedar.Limits{})
	c.SetRand(cedartest.Zeros())
	if err := c.EnableAES(make([]byte, 32)); err != nil {
		b.Fatal(err)
	}
	return c
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { return len(b), nil }

const benchFile = 64 << 20

func BenchmarkPutFileAES(b *testing.B) {
	c := aesConn(b, sink{})
	b.SetBytes(benchFile)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.PutFile(b.Context(), zeroReader{}, benchFile); err != nil {
			b.Fatal(err)
		}
		if err := c.EndMessage(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetFileAES(b *testing.B) {
	// Every round is a stream of its own: it begins with the IV.
	r := &recorder{}
	w := aesConn(b, r)
	if err := w.PutFile(b.Context(), zeroReader{}, benchFile); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(benchFile)
	b.ReportAllocs()
	for b.Loop() {
		c := aesConn(b, &source{b: r.b})
		if n, err := c.GetFile(b.Context(), io.Discard, -1); err != nil || n != benchFile {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkStreamAES(b *testing.B) {
	data := make([]byte, 1<<20)
	b.Run("write", func(b *testing.B) {
		c := aesConn(b, sink{})
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			c.PutBytes(data)
			if err := c.EndMessage(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("loopback", func(b *testing.B) {
		client, server := tcp(b)
		w, r := aesConn(b, client), aesConn(b, server)
		done := make(chan error, 1)
		go func() {
			_, err := r.GetFile(context.Background(), io.Discard, -1)
			done <- err
		}()
		b.SetBytes(1 << 20)
		b.ReportAllocs()
		if err := w.PutFile(b.Context(), zeroReader{}, int64(b.N)<<20); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
}

func tcp(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	return client, server
}

// slotAds returns ads of recorded slots, each with a name of its own.
func slotAds(t testing.TB, n int) []*classad.Ad {
	t.Helper()
	v := cedartest.Load(t, vectors+"/collector-fs-aes-resume.json")
	var slot *classad.Ad
	for _, m := range v.Connections[0].Messages {
		for _, it := range m.Items {
			if it.Ad == nil || slot != nil && len(*it.Ad) <= slot.Len() {
				continue
			}
			raw, _ := it.RawAd()
			ad := classad.NewAd()
			for _, l := range raw.Lines {
				one, err := classad.ParseAd(l, classad.Old)
				if err != nil {
					t.Fatal(err)
				}
				ad.Update(one)
			}
			slot = ad
		}
	}
	all := make([]*classad.Ad, n)
	for i := range all {
		all[i] = slot.Clone()
		all[i].SetInt("SlotID", int64(i))
	}
	return all
}

// Ten thousand slot ads, encoded, encrypted and written.
func BenchmarkSlotAds(b *testing.B) {
	ads := slotAds(b, 10_000)
	b.Logf("%d attributes", ads[0].Len())
	c := aesConn(b, sink{})
	b.ReportAllocs()
	for b.Loop() {
		for _, ad := range ads {
			c.PutInt(1)
			c.PutAd(ad, cedar.AdOptions{PeerVersion: "25.14.0"})
			if err := c.EndMessage(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReadAd(b *testing.B) {
	ad := slotAds(b, 1)[0]
	r := &recorder{}
	c := cedar.NewConn(r, cedar.Limits{})
	c.PutAd(ad, cedar.AdOptions{})
	if err := c.EndMessage(); err != nil {
		b.Fatal(err)
	}
	in := cedar.NewConn(&source{b: r.b}, cedar.Limits{})
	b.SetBytes(int64(len(r.b)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Ad(cedar.AdOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := in.EndOfMessage(); err != nil {
			b.Fatal(err)
		}
	}
}

// A connection that has been talked on and is idle holds less than 32 KiB.
func TestIdleMemory(t *testing.T) {
	const conns, limit = 200, 32 << 10
	ad := slotAds(t, 1)[0]
	held := make([]*cedar.Conn, 0, 2*conns)
	before := heap()
	for range conns {
		a, b := cedartest.Pipe()
		w, r := aesConn(t, a), aesConn(t, b)
		w.PutAd(ad, cedar.AdOptions{})
		w.PutBytes(make([]byte, 300_000))
		if err := w.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Rest(); err != nil {
			t.Fatal(err)
		}
		if err := r.EndOfMessage(); err != nil {
			t.Fatal(err)
		}
		w.PutAd(ad, cedar.AdOptions{})
		if err := w.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Ad(cedar.AdOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := r.EndOfMessage(); err != nil {
			t.Fatal(err)
		}
		held = append(held, w, r)
	}
	per := (heap() - before) / int64(len(held))
	runtime.KeepAlive(held)
	t.Logf("%d bytes per connection", per)
	if per > limit {
		t.Errorf("an idle connection holds %d bytes, want at most %d", per, limit)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

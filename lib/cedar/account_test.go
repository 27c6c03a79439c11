// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

// ledger is an Account of so many bytes.
type ledger struct{ most, have, peak int }

func (l *ledger) Take(n int) error {
	if l.have+n > l.most {
		return errs.E("test", errs.Exhausted, "", errors.New("no more memory"))
	}
	l.have += n
	l.peak = max(l.peak, l.have)
	return nil
}

func (l *ledger) Give(n int) { l.have -= n }

// An account grants what a message takes before it takes it, not much more than
// the message, and gets it back when the message was read.
func TestAccountGrantsTheReadBuffer(t *testing.T) {
	t.Parallel()
	for _, packet := range []int{1000, ClassicPacket, defaultPacket, MaxPacket} {
		for _, size := range []int{100, 10_000, 300_000, 1<<20 - 9} {
			a, b := net.Pipe()
			out, in := NewConn(a, Limits{}), NewConn(b, Limits{Message: 1 << 20})
			out.SetPacketSize(packet)
			l := &ledger{most: 4 << 20}
			in.SetAccount(l)
			go func() {
				for range 2 {
					out.PutString(strings.Repeat("x", size))
					_ = out.EndMessage()
				}
				_ = out.PutFile(t.Context(), bytes.NewReader(make([]byte, size)), int64(size))
				_ = out.EndMessage()
			}()
			for range 2 {
				if s, err := in.String(); err != nil || len(s) != size {
					t.Fatalf("%d bytes in packets of %d: %d arrive, %v", size, packet, len(s), err)
				}
				if size > keepRead && l.have < size || size < keepRead/2 && l.have > 0 {
					t.Errorf("%d bytes are granted for a message of %d in packets of %d", l.have, size, packet)
				}
				if err := in.EndOfMessage(); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := in.GetFile(t.Context(), io.Discard, -1); err != nil || n != int64(size) {
				t.Fatalf("a file: %d, %v", n, err)
			}
			if err := in.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
			in.SetAccount(nil)
			if most := 5<<18 + MaxPacket + headerSize; l.have != 0 || l.peak > max(most, 4*size) {
				t.Errorf("%d bytes in packets of %d: %d are left on the account, %d were at most", size, packet, l.have, l.peak)
			}
			_ = a.Close()
			_ = b.Close()
		}
	}
}

// Without a grant the stream ends, and what it had is given back.
func TestNoGrantEndsTheStream(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	out, in := NewConn(a, Limits{}), NewConn(b, Limits{})
	l := &ledger{most: 100_000}
	in.SetAccount(l)
	go func() {
		out.PutString(strings.Repeat("x", 200_000))
		_ = out.EndMessage()
	}()
	if _, err := in.String(); !errs.Is(err, errs.Exhausted) || !strings.Contains(err.Error(), "no more memory") {
		t.Errorf("a message beyond the account: %v", err)
	}
	if l.have == 0 || l.peak > 100_000 {
		t.Errorf("%d bytes were granted, %d at most", l.have, l.peak)
	}
	if _, err := in.Int(); !errs.Is(err, errs.Exhausted) {
		t.Errorf("reading on: %v", err)
	}
	_ = in.Close()
	if in.SetAccount(nil); l.have != 0 {
		t.Errorf("%d bytes are left on the account", l.have)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

// pair returns two ends of a stream.
func pair(t testing.TB, encrypted bool) (a, b *cedar.Conn) {
	t.Helper()
	x, y := cedartest.Pipe()
	t.Cleanup(func() {
		_ = x.Close()
		_ = y.Close()
	})
	a, b = cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	if encrypted {
		for _, c := range []*cedar.Conn{a, b} {
			if err := c.EnableAES(bytes.Repeat([]byte{7}, 32)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a, b
}

func both(t *testing.T, f func(t *testing.T, encrypted bool)) {
	for name, encrypted := range map[string]bool{"clear": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, encrypted)
		})
	}
}

func TestItemBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		put              func(c *cedar.Conn)
		clear, encrypted string
	}{
		{"int", func(c *cedar.Conn) { c.PutInt(-2) }, "\xff\xff\xff\xff\xff\xff\xff\xfe", "\xff\xff\xff\xff\xff\xff\xff\xfe"},
		{"bool", func(c *cedar.Conn) { c.PutBool(true) }, "\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{"char", func(c *cedar.Conn) { c.PutByte('x') }, "x", "x"},
		{"string", func(c *cedar.Conn) { c.PutString("ab") }, "ab\x00", "\x00\x00\x00\x00\x00\x00\x00\x03ab\x00"},
		{"empty string", func(c *cedar.Conn) { c.PutString("") }, "\x00", "\x00\x00\x00\x00\x00\x00\x00\x01\x00"},
		{"no string", func(c *cedar.Conn) { c.PutNull() }, "\xad", "\x00\x00\x00\x00\x00\x00\x00\x01\xad"},
		{"bytes", func(c *cedar.Conn) { c.PutBytes([]byte{0, 1}) }, "\x00\x01", "\x00\x01"},
		{
			"float", func(c *cedar.Conn) { c.PutFloat(1) },
			"\x00\x00\x00\x00\x3f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01",
			"\x00\x00\x00\x00\x3f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01",
		},
		{"file mode", func(c *cedar.Conn) { c.PutFileMode(0o4755) }, "\x00\x00\x00\x00\x00\x00\x01\xed", "\x00\x00\x00\x00\x00\x00\x01\xed"},
	} {
		if got := string(cedartest.Encode(t, false, tt.put)); got != tt.clear {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.clear)
		}
		if got := string(cedartest.Encode(t, true, tt.put)); got != tt.encrypted {
			t.Errorf("%s, encrypted: %q, want %q", tt.name, got, tt.encrypted)
		}
	}
}

// Items survive packets of any size, down to one byte.
func TestItemsStraddlePackets(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		for _, size := range []int{1, 2, 7, 8, 9, 100, 1 << 20} {
			a, b := pair(t, encrypted)
			a.SetPacketSize(size)
			for range 3 {
				a.PutInt(math.MinInt64)
				a.PutString("straddling")
				a.PutNull()
				a.PutFloat(-0.15625)
				a.PutSecret("hush")
				a.PutBytes([]byte("raw"))
				a.PutByte('c')
				a.PutFileMode(0o640)
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				i, err := b.Int()
				check(t, i, math.MinInt64, err)
				s, err := b.String()
				check(t, s, "straddling", err)
				_, there, err := b.NullableString()
				check(t, there, false, err)
				f, err := b.Float()
				check(t, math.Round(f*1e6), -156250, err)
				secret, err := b.Secret()
				check(t, secret.Reveal(), "hush", err)
				raw, err := b.Bytes(3)
				check(t, string(raw), "raw", err)
				if !b.More() {
					t.Error("a message is said to be read too early")
				}
				char, err := b.Byte()
				check(t, char, 'c', err)
				mode, missing, err := b.FileMode()
				check(t, mode, 0o640, err)
				check(t, missing, false, err)
				if b.More() {
					t.Error("more is said to be there")
				}
				if err := b.EndOfMessage(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func check[T comparable](t *testing.T, got, want T, err error) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestMessageEnds(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		if err := a.EndMessage(); !errs.Is(err, errs.Invalid) {
			t.Errorf("an empty message: %v", err)
		}
		if err := b.EndOfMessage(); err != nil {
			t.Errorf("the end of no message: %v", err)
		}
		for range 2 {
			a.PutInt(1)
			a.PutInt(2)
			if err := a.EndMessage(); err != nil {
				t.Fatal(err)
			}
		}
		i, err := b.Int()
		check(t, i, 1, err)
		if err := b.EndOfMessage(); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "8 bytes are left") {
			t.Errorf("an item left: %v", err)
		}
		i, err = b.Int()
		check(t, i, 1, err)
		i, err = b.Int()
		check(t, i, 2, err)
		if _, err := b.Int(); !errs.Is(err, errs.Invalid) {
			t.Errorf("beyond the end: %v", err)
		}
		if err := b.EndOfMessage(); err != nil {
			t.Error(err)
		}
	})
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(c *cedar.Conn){
		"NUL in a string":  func(c *cedar.Conn) { c.PutString("a\x00b") },
		"NaN":              func(c *cedar.Conn) { c.PutFloat(math.NaN()) },
		"infinity":         func(c *cedar.Conn) { c.PutFloat(math.Inf(1)) },
		"after a file":     func(c *cedar.Conn) { _ = c.PutEmptyFile(); c.PutString("\x00") },
		"an error remains": func(c *cedar.Conn) { c.PutString("\x00"); c.PutInt(1) },
	} {
		a, _ := pair(t, false)
		put(a)
		if err := a.EndMessage(); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFloat(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{0, 1, -1, 0.5, 1e300, -1e-300, 3.14159, 1 << 40} {
		got, err := cedartest.Reader(t, cedartest.Encode(t, false, func(c *cedar.Conn) { c.PutFloat(f) }), false).Float()
		if err != nil || math.Abs(got-f) > math.Abs(f)*2e-9 {
			t.Errorf("%g arrives as %g, %v", f, got, err)
		}
	}
}

func TestLimitsOfItems(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	both(t, func(t *testing.T, encrypted bool) {
		for _, tt := range []struct {
			name   string
			limits cedar.Limits
			put    func(c *cedar.Conn)
			get    func(c *cedar.Conn) error
			kind   errs.Kind
		}{
			{"string at the limit", cedar.Limits{String: 100}, func(c *cedar.Conn) { c.PutString(long) }, getString, errs.Other},
			{"string beyond it", cedar.Limits{String: 99}, func(c *cedar.Conn) { c.PutString(long) }, getString, errs.Exhausted},
			{"message beyond it", cedar.Limits{Message: 50}, func(c *cedar.Conn) { c.PutString(long) }, getString, errs.Exhausted},
			{"packet beyond it", cedar.Limits{Packet: 50}, func(c *cedar.Conn) { c.PutString(long) }, getString, errs.Exhausted},
			{"lines of an ad", cedar.Limits{AdLines: 2}, func(c *cedar.Conn) { c.PutInt(3) }, getAd, errs.Exhausted},
			{"fewer than no lines", cedar.Limits{}, func(c *cedar.Conn) { c.PutInt(-1) }, getAd, errs.Invalid},
			{"lines that are not there", cedar.Limits{}, func(c *cedar.Conn) { c.PutInt(1) }, getAd, errs.Invalid},
		} {
			a, b := pair(t, encrypted)
			b.SetLimits(tt.limits)
			tt.put(a)
			if err := a.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if err := tt.get(b); errs.KindOf(err) != tt.kind || err == nil != (tt.kind == errs.Other) {
				t.Errorf("%s: %v, want kind %v", tt.name, err, tt.kind)
			}
		}
	})
}

func getString(c *cedar.Conn) error { _, err := c.String(); return err }
func getAd(c *cedar.Conn) error     { _, err := c.Ad(cedar.AdOptions{}); return err }

func TestEncryptedStringLengths(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"length 0":         "\x00\x00\x00\x00\x00\x00\x00\x00",
		"negative length":  "\xff\xff\xff\xff\xff\xff\xff\xff",
		"longer than sent": "\x00\x00\x00\x00\x00\x00\x00\x09ab\x00",
		"without NUL":      "\x00\x00\x00\x00\x00\x00\x00\x02ab",
		"huge":             "\x7f\xff\xff\xff\xff\xff\xff\xff\x00",
	} {
		if err := getString(cedartest.Reader(t, []byte(b), true)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	s, err := cedartest.Reader(t, []byte("\x00\x00\x00\x00\x00\x00\x00\x04a\x00\x00\x00"), true).Secret()
	check(t, s.Reveal(), "a", err)
}

func TestFileWords(t *testing.T) {
	t.Parallel()
	for flags := range 0x2000 {
		wire := int64(flags) &^ 0x800
		if got := cedar.OpenFlagsToWire(cedar.OpenFlagsFromWire(wire)); got != wire&0x1703 {
			t.Fatalf("flags %#x come back as %#x", wire, got)
		}
	}
	for linux, want := range map[int]cedar.Errno{
		1: 1, 2: cedar.ENOENT, 13: cedar.EACCES, 26: cedar.ETXTBSY, 28: cedar.ENOSPC, 34: 34, 35: cedar.EDEADLK,
		36: cedar.ENAMETOOLONG, 37: cedar.ENOLCK, 38: cedar.ENOSYS, 39: cedar.ENOTEMPTY, 84: cedar.EILSEQ, 111: 111,
	} {
		if got := cedar.ErrnoFromLinux(linux); got != want || got.Linux() != linux {
			t.Errorf("error %d is %d on the wire, want %d; back %d", linux, got, want, got.Linux())
		}
	}
	_, missing, err := cedartest.Reader(t, []byte{0, 0, 0, 0, 1, 0, 0, 0}, false).FileMode()
	check(t, missing, true, err)
}

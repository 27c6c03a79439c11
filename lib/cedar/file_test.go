// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

// Files of all sizes arrive, several on one stream, with items in between.
func TestFiles(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		for _, packet := range []int{0, 100, cedar.ClassicPacket} {
			a, b := pair(t, encrypted)
			if packet > 0 {
				a.SetPacketSize(packet)
			}
			for _, size := range []int{0, 18, 4067, 262144, 262145, 537600, 0, 1} {
				want := pattern(size)
				a.PutFileMode(0o644)
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}
				if err := a.PutFile(t.Context(), bytes.NewReader(want), int64(size)); err != nil {
					t.Fatal(err)
				}
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}
				a.PutInt(int64(size))
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}

				mode, _, err := b.FileMode()
				check(t, mode, 0o644, err)
				if err := b.EndOfMessage(); err != nil {
					t.Fatal(err)
				}
				var got bytes.Buffer
				n, err := b.GetFile(t.Context(), &got, int64(size))
				check(t, n, int64(size), err)
				if !bytes.Equal(got.Bytes(), want) {
					t.Errorf("a file of %d bytes arrives differently", size)
				}
				if err := b.EndOfMessage(); err != nil {
					t.Fatal(err)
				}
				i, err := b.Int()
				check(t, i, int64(size), err)
				if err := b.EndOfMessage(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The end of a file's message goes with what the caller adds to it.
func TestFileAmongItems(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		a.PutString("announced with the size")
		if err := a.PutFile(t.Context(), bytes.NewReader([]byte("abc")), 3); err != nil {
			t.Fatal(err)
		}
		a.PutInt(1) // no message has to end in between
		if err := a.PutEmptyFile(); err != nil {
			t.Fatal(err)
		}
		a.PutInt(2)
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		s, err := b.String()
		check(t, s, "announced with the size", err)
		var got bytes.Buffer
		n, err := b.GetFile(t.Context(), &got, -1)
		check(t, n, 3, err)
		check(t, got.String(), "abc", nil)
		i, err := b.Int()
		check(t, i, 1, err)
		n, err = b.GetFile(t.Context(), &got, -1)
		check(t, n, 0, err)
		i, err = b.Int()
		check(t, i, 2, err)
		if err := b.EndOfMessage(); err != nil {
			t.Error(err)
		}
	})
}

func TestFileTooLarge(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		if err := a.PutFile(t.Context(), bytes.NewReader(pattern(1000)), 1000); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := b.GetFile(t.Context(), &got, 999); !errs.Is(err, errs.Exhausted) {
			t.Errorf("a file beyond the limit: %v", err)
		}
		if got.Len() > 0 {
			t.Errorf("%d bytes of it were taken", got.Len())
		}
		if _, err := b.Int(); !errs.Is(err, errs.Exhausted) || !b.Broken() {
			t.Errorf("the stream goes on: %v", err)
		}
	})
}

var errFull = errors.New("disk full")

// fullDisk takes some bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) > d.left {
		return d.left, errs.E("test", errs.Exhausted, "", errFull)
	}
	d.left -= len(b)
	return len(b), nil
}

// When the receiver cannot write, the stream stays in step.
func TestFileNotWritten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		if err := a.PutFile(t.Context(), bytes.NewReader(pattern(600_000)), 600_000); err != nil {
			t.Fatal(err)
		}
		a.PutInt(5)
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		_, err := b.GetFile(t.Context(), &fullDisk{left: 300_000}, -1)
		if !errors.Is(err, errFull) || !errs.Is(err, errs.Exhausted) || b.Broken() {
			t.Errorf("got %v, broken %v", err, b.Broken())
		}
		i, err := b.Int()
		check(t, i, 5, err)
	})
}

func TestFileShrinks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		err := a.PutFile(t.Context(), bytes.NewReader(pattern(300_000)), 600_000)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errs.Is(err, errs.Broken) || !a.Broken() {
			t.Errorf("got %v, broken %v", err, a.Broken())
		}
		_ = a.Close()
		if _, err := b.GetFile(t.Context(), io.Discard, -1); !errs.Is(err, errs.Transient) {
			t.Errorf("the receiver got %v", err)
		}
	})
}

// What a peer says about its file is looked at.
func TestFileLies(t *testing.T) {
	t.Parallel()
	message := func(c *cedar.Conn, ints ...int64) {
		for _, i := range ints {
			c.PutInt(i)
		}
		if err := c.EndMessage(); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		send func(c *cedar.Conn)
		kind errs.Kind
	}{
		"negative size":     {func(c *cedar.Conn) { message(c, -1, 262144) }, errs.Invalid},
		"no pieces":         {func(c *cedar.Conn) { message(c, 5, 0) }, errs.Invalid},
		"huge pieces":       {func(c *cedar.Conn) { message(c, 5, 1<<40) }, errs.Invalid},
		"more than said":    {func(c *cedar.Conn) { message(c, 5, 262144); message(c, 1) }, errs.Invalid},
		"wrong end":         {func(c *cedar.Conn) { message(c, 0, 1); message(c, 667) }, errs.Invalid},
		"too much with it":  {func(c *cedar.Conn) { message(c, 5, 262144, 9) }, errs.Invalid},
		"closed in between": {func(c *cedar.Conn) { message(c, 5, 262144); _ = c.Close() }, errs.Transient},
	} {
		a, b := pair(t, true)
		tt.send(a)
		if _, err := b.GetFile(t.Context(), io.Discard, -1); !errs.Is(err, tt.kind) {
			t.Errorf("%s: %v, want kind %v", name, err, tt.kind)
		}
	}
}

func TestFileCanceled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := pair(t, encrypted)
		b.SetTimeout(0)
		done := make(chan error, 1)
		go func() {
			_, err := b.GetFile(ctx, io.Discard, -1)
			done <- err
		}()
		a.PutInt(100)
		if encrypted {
			a.PutInt(262144)
		}
		if err := a.EndMessage(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

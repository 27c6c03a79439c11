// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartest

import (
	"fmt"
	"io"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Reader returns a Conn whose next message is b. With encrypted, items are
// read in the form that encryption gives them; b itself is clear.
func Reader(t testing.TB, b []byte, encrypted bool) *cedar.Conn {
	t.Helper()
	out, in := pair(t, encrypted)
	out.PutBytes(b)
	if err := out.EndMessage(); err != nil {
		t.Fatal(err)
	}
	return in
}

// Encode returns the plain text of the message that put writes.
func Encode(t testing.TB, encrypted bool, put func(c *cedar.Conn)) []byte {
	t.Helper()
	out, in := pair(t, encrypted)
	put(out)
	if err := out.EndMessage(); err != nil {
		t.Fatal(err)
	}
	b, err := in.Rest()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pair(t testing.TB, encrypted bool) (out, in *cedar.Conn) {
	t.Helper()
	a, b := Pipe()
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	out, in = cedar.NewConn(a, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
	if encrypted {
		for _, c := range []*cedar.Conn{out, in} {
			if err := c.EnableAES(make([]byte, 32)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out, in
}

// PutItems puts recorded items.
func PutItems(c *cedar.Conn, items []Item) {
	for _, it := range items {
		switch {
		case it.Int != nil:
			c.PutInt(*it.Int)
		case it.Str != nil:
			c.PutString(*it.Str)
		case it.Secret != nil:
			c.PutSecret(cedar.Secret(*it.Secret))
		case it.Ad != nil:
			ad, o := it.RawAd()
			c.PutRawAd(ad, o)
		default:
			c.PutBytes(it.Bytes)
		}
	}
}

// RawAd returns an item that is an ad, and how it is read.
func (it Item) RawAd() (cedar.RawAd, cedar.AdOptions) {
	ad := cedar.RawAd{Lines: *it.Ad}
	if len(it.Types) != 2 {
		return ad, cedar.AdOptions{NoTypes: true}
	}
	ad.MyType, ad.TargetType = it.Types[0], it.Types[1]
	return ad, cedar.AdOptions{}
}

// CheckItems reads a message and holds it against recorded items.
func CheckItems(c *cedar.Conn, items []Item) error {
	for i, want := range items {
		if err := checkItem(c, want); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return c.EndOfMessage()
}

func checkItem(c *cedar.Conn, want Item) error {
	switch {
	case want.Int != nil:
		got, err := c.Int()
		return same(got, *want.Int, err)
	case want.Str != nil:
		got, err := c.String()
		return same(got, *want.Str, err)
	case want.Secret != nil:
		got, err := c.Secret()
		return same(got.Reveal(), *want.Secret, err)
	case want.Ad != nil:
		ad, o := want.RawAd()
		got, err := c.RawAd(o)
		return same(fmt.Sprintf("%q", got), fmt.Sprintf("%q", ad), err)
	}
	got, err := c.Bytes(len(want.Bytes))
	return same(string(got), string(want.Bytes), err)
}

func same[T comparable](got, want T, err error) error {
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// zeros is a source of randomness that has none.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Zeros is an endless source of zeros.
func Zeros() io.Reader { return zeros{} }

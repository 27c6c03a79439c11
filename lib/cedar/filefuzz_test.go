// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
)

// A mode that is read is permissions and nothing else, and is written as it was
// read.
func FuzzFileMode(f *testing.F) {
	for _, n := range []int64{0o644, 0o4755, 0, cedar.ModeMissing, cedar.ModeMissing + 1, -1, 1 << 40} {
		f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { c.PutInt(n) }), false)
	}
	f.Add([]byte{0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, encrypted bool) {
		if len(b) == 0 {
			return
		}
		mode, missing, err := cedartest.Reader(t, b, encrypted).FileMode()
		if mode&^fs.ModePerm != 0 || mode != 0 && (missing || err != nil) {
			t.Fatalf("%q is %v, missing %t, %v", b, mode, missing, err)
		}
		if missing || err != nil {
			return
		}
		again := cedartest.Encode(t, encrypted, func(c *cedar.Conn) { c.PutFileMode(mode) })
		if got, missing, err := cedartest.Reader(t, again, encrypted).FileMode(); got != mode || missing || err != nil {
			t.Errorf("%v is written as %q and reads as %v, missing %t, %v", mode, again, got, missing, err)
		}
	})
}

// Whatever a peer announces and sends as a file, no more than the limit is
// taken, and what is taken is the beginning of what was sent.
func FuzzGetFile(f *testing.F) {
	for _, size := range []int64{0, 3, 18, -1, 1 << 40} {
		for _, encrypted := range []bool{false, true} {
			f.Add(size, int64(262144), int64(1<<20), []byte("a file of 18 bytes"), uint8(7), encrypted)
		}
	}
	f.Add(int64(5), int64(0), int64(-1), []byte("12345"), uint8(1), true)
	f.Add(int64(5), int64(1<<40), int64(4), []byte("12345"), uint8(0), true)
	f.Fuzz(func(t *testing.T, size, chunk, limit int64, sent []byte, piece uint8, encrypted bool) {
		if len(sent) > 1<<17 || encrypted && len(sent) > 1<<12 {
			return // thousands of messages take long and show nothing more
		}
		a, b := pair(t, encrypted)
		a.PutInt(size)
		if encrypted {
			a.PutInt(chunk)
		}
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if encrypted {
			for part := range slices.Chunk(sent, int(piece)+1) {
				a.PutBytes(part)
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}
			}
		} else if _, err := a.NetConn().Write(sent); err != nil {
			t.Fatal(err)
		}
		_ = a.Close()
		var got bytes.Buffer
		n, err := b.GetFile(t.Context(), &got, limit)
		switch {
		case limit >= 0 && int64(got.Len()) > limit, int64(got.Len()) > max(size, 0):
			t.Errorf("%d bytes are taken of a file of %d, the limit is %d", got.Len(), size, limit)
		case !bytes.HasPrefix(sent, got.Bytes()):
			t.Errorf("%q was sent, %q came", sent, got.Bytes())
		case err == nil && (n != size || int64(got.Len()) != size):
			t.Errorf("a file of %d bytes was received whole, with %d bytes of which %d came", size, n, got.Len())
		case err != nil && size > 0 && !b.Broken():
			t.Errorf("the stream goes on after %v", err)
		}
	})
}

// A request to a shared port that is read names an endpoint and no path, and is
// written as it was read.
func FuzzSharedPortRequest(f *testing.F) {
	request := func(id, client string, rest ...int64) {
		f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) {
			c.PutString(id)
			c.PutString(client)
			for _, n := range rest {
				c.PutInt(n)
			}
		}))
	}
	request("startd_1_ab12", "TOOL wirev", -1, 0)
	request("self", "", 20, 0)
	request("../x", "", -1, 0)
	request("x", "", -1, 1<<40)
	request("x", "", -1, 0, 0)
	request("x", "")
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		r, err := cedartest.Reader(t, b, false).SharedPortRequest()
		if err != nil {
			return
		}
		if !cedar.ValidSharedPortID(r.ID) || r.Deadline < -time.Second || r.Deadline > 1<<31*time.Second {
			t.Fatalf("%q is %+v", b, r)
		}
		x, y := pair(t, false)
		if err := x.ConnectSharedPort(r); err != nil {
			t.Fatal(err)
		}
		number, err := y.Int()
		if err != nil || number != command.SharedPortConnect {
			t.Fatal(number, err)
		}
		if again, err := y.SharedPortRequest(); err != nil || again != r {
			t.Errorf("%+v is written and reads as %+v, %v", r, again, err)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handover_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux/handover"
)

// FuzzInput has a parent send bytes with any numbers of descriptors, of any kind.
// What is read is what was sent, a connection is taken where one came, and when
// the input is closed no descriptor is left.
func FuzzInput(f *testing.F) {
	f.Add([]byte("x\n"), []byte{1}, uint8(9), true)
	f.Add([]byte("orders without a connection\n"), []byte{0, 0}, uint8(3), false)
	f.Add([]byte("too many\n"), []byte{6, 1, 0, 4, 2}, uint8(1), true)
	f.Add([]byte("\x00"), []byte{}, uint8(0), false)
	r, w, err := os.Pipe()
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	f.Fuzz(func(t *testing.T, sent, counts []byte, room uint8, connections bool) {
		if len(sent) == 0 || len(sent) > 4096 || len(counts) > 16 {
			return
		}
		before := descriptors(t)
		child, parent, err := handover.New()
		if err != nil {
			t.Fatal(err)
		}
		in, ok := handover.From(child)
		if !ok {
			t.Fatal("the child's end is no socket")
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		passed := int(r.Fd())
		if connections {
			passed = pair[0]
		}
		// Each count goes with a part of what is sent.
		rest, any := sent, false
		for i, n := range counts {
			part := rest[:min(len(rest), 1+len(sent)/len(counts))]
			if rest = rest[len(part):]; i == len(counts)-1 {
				part, rest = append(part, rest...), nil
			}
			if len(part) == 0 {
				break
			}
			fds := make([]int, n%8)
			for j := range fds {
				fds[j] = passed
			}
			any = any || len(fds) > 0
			if _, _, err := parent.WriteMsgUnix(part, unix.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(counts) == 0 {
			if _, err := parent.Write(sent); err != nil {
				t.Fatal(err)
			}
		}
		_ = parent.Close()
		var got []byte
		buf := make([]byte, int(room)+1)
		for {
			n, err := in.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("reading: %v", err)
				}
				break
			}
		}
		if !bytes.Equal(got, sent) {
			t.Errorf("%q was sent, %q came", sent, got)
		}
		nc, err := in.Socket()
		switch {
		case err == nil && !(any && connections):
			t.Error("a connection came that was not passed")
		case err != nil && any && connections:
			t.Errorf("the connection that was passed did not come: %v", err)
		case err == nil:
			_ = nc.Close()
		case any && !errs.Is(err, errs.Invalid), !any && !errs.Is(err, errs.NotFound):
			t.Errorf("%v", err)
		}
		_ = child.Close()
		_ = unix.Close(pair[0])
		_ = unix.Close(pair[1])
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors became %d", before, after)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package syslog

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logger is a system's logger at a place of its own.
func logger(t *testing.T, place string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: place, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func record(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 1<<20)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// Records have facility daemon (3), severity info (6), hence 3*8+6 = 30, name
// and process id; a logger that comes later or again is found.
func TestRecords(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "log")
	l := New("condor_startd")
	l.network, l.place = "unixgram", place
	if n, err := l.Write([]byte("lost\n")); n != 5 || err != nil {
		t.Errorf("without a logger: %d, %v", n, err)
	}
	for _, text := range []string{"one", "two"} {
		_ = os.Remove(place)
		c := logger(t, place)
		if n, err := l.Write([]byte(text + "\n")); n != 4 || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
		got := record(t, c)
		if !strings.HasPrefix(got, "<30>") || !strings.HasSuffix(got, fmt.Sprintf(" condor_startd[%d]: %s\n", os.Getpid(), text)) {
			t.Errorf("the logger gets %q", got)
		}
		if _, err := l.Write([]byte(strings.Repeat("x", 1<<20))); err != nil {
			t.Error(err)
		}
		if got := record(t, c); len(got) < maxRecord || len(got) > maxRecord+200 {
			t.Errorf("a long record is %d bytes", len(got))
		}
		c.Close() // the next one sits at the same place
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/handover"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// channel is how the daemon's starters get their standard input.
func channel() (*os.File, launch.Channel, error) {
	child, parent, err := handover.New()
	if err != nil {
		return nil, nil, err
	}
	return child, parent, nil
}

// descriptors counts those of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// connected returns both ends of a connection.
func connected(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// A connection goes to the starter with its plan, whether the starter was
// waiting or not; it ends with the starter, and nothing of it stays here. A
// plan without one works as it does through a pipe. It counts descriptors, so
// it is not parallel.
func TestSocketGoesAlong(t *testing.T) {
	s, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	run := func(spec launch.Spec, nc net.Conn) {
		t.Helper()
		l := launch.NewLauncher(spec)
		defer l.Close()
		st := newStage(t).sh("echo done")
		h, err := l.Launch(t.Context(), st.ready(), nc)
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := last(t, h).(protocol.Ended); !r.Record.Status.Success() || st.read("out") != "done\n" {
			t.Errorf("%+v, %q", r.Record, st.read("out"))
		}
	}
	spec := launchSpec(s, 0)
	spec.Channel = channel
	run(spec, nil) // whatever is opened once is open now
	before := descriptors(t)
	for _, standby := range []int{0, 2} {
		spec.Standby = standby
		for _, with := range []bool{false, true} {
			if !with {
				run(spec, nil)
				continue
			}
			ours, theirs := connected(t)
			run(spec, ours)
			_ = theirs.SetReadDeadline(time.Now().Add(20 * time.Second))
			if n, err := theirs.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("after the starter's end the shadow reads %d, %v", n, err)
			}
			theirs.Close()
			if err := ours.Close(); err == nil {
				t.Error("the launcher left the connection open")
			}
		}
	}
	// Where nothing can be passed the connection is closed as well, and where
	// there is no starter.
	broken := spec
	broken.Path = "/nonexistent"
	for _, bad := range []struct {
		spec launch.Spec
		kind errs.Kind
	}{{launchSpec(s, 0), errs.Unsupported}, {broken, errs.NotFound}} {
		bad.spec.Standby = 0
		l := launch.NewLauncher(bad.spec)
		ours, theirs := connected(t)
		if h, err := l.Launch(t.Context(), newStage(t).sh("true").ready(), ours); err == nil {
			t.Errorf("%v was launched", h.Proc())
		}
		_ = theirs.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v: the shadow reads %v", bad.kind, err)
		}
		theirs.Close()
		l.Close()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

// last reads to the last report and waits for the end of the starter.
func last(t *testing.T, h *launch.Handle) (r protocol.Report) {
	t.Helper()
	for t := range h.Reports() {
		r = t.What
	}
	<-h.Exited()
	if st, err := h.Exit(); st != (host.ExitStatus{Exited: true}) {
		t.Errorf("the starter %v: %v", st, err)
	}
	return r
}

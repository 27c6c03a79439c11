// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// Whatever comes on the control socket is answered with one line of JSON. The
// user who asks is the one that the system vouches for, whatever the question
// says, and a question that is read is the same when it is written.
func FuzzControl(f *testing.F) {
	for _, line := range []string{
		`{"op":"status"}`, `{"op":"explain","subject":"slot1_1","job":"RequestCpus = 1\n"}`, `{"op":"drain","drain":{"how":"quick","then":"resume","start":"true"}}`,
		`{"op":"vacate","fast":true,"By":"root"}`, `{"op":"resume","by":"root","-":"root"}`, "{nonsense", "", "null", "[]", `{"op":"`, `{"op":7}`, strings.Repeat("[", 10_000),
		"{}\n{}",
	} {
		f.Add([]byte(line + "\n"))
	}
	f.Add([]byte(`{"op":"status"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		asked := 0
		var last Request
		ask := func(b []byte) (resp Response) {
			mine, yours := cedartest.Pipe()
			_, _ = mine.Write(b)
			half := &ended{Conn: yours, left: len(b)}
			serveOne(half, Request{By: "alice"}, func(r Request) Response {
				asked++
				last = r
				return Response{Err: r.Op + r.Subject + r.Job}
			})
			said, err := io.ReadAll(mine)
			if err != nil || bytes.Count(said, []byte("\n")) != 1 || json.Unmarshal(said, &resp) != nil {
				t.Fatalf("%q is answered %q, %v", b, said, err)
			}
			return resp
		}
		resp := ask(b)
		switch {
		case asked == 0 && resp.Err == "", asked > 1:
			t.Fatalf("%q was asked %d times and is answered %+v", b, asked, resp)
		case asked == 0:
			return
		case last.By != "alice" || last.Ours:
			t.Errorf("%q is asked by %q", b, last.By)
		}
		first := last
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		ask(append(again, '\n'))
		if d := cmp.Diff(first, last); d != "" {
			t.Errorf("%q is written as %q (-first +again)\n%s", b, again, d)
		}
	})
}

// ended is a connection whose peer says no more than what it said already.
type ended struct {
	net.Conn
	left int
}

func (e *ended) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.Conn.Read(b)
	e.left -= n
	return n, err
}

// One other user cannot take all there is, and root and the EP's user always get
// an answer.
func TestOneUserOfMany(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var ours atomic.Bool
	done := make(chan error, 1)
	go func() {
		Serve(l, func(net.Conn) (string, bool, error) { return "bob", ours.Load(), nil }, func(r Request) Response { return Response{DrainID: r.By} }, nil)
		done <- nil
	}()
	for range mostOfOne { // says nothing, and is in when the next one is looked at
		c, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if r, err := Call(t.Context(), l.Addr().String(), Request{}); err == nil {
		t.Errorf("one more of the same user is answered %+v", r)
	}
	ours.Store(true)
	if r, err := Call(t.Context(), l.Addr().String(), Request{}); err != nil || r.DrainID != "bob" {
		t.Errorf("%+v, %v", r, err)
	}
	l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// starved is a listener for which there are too few descriptors now and then.
type starved struct {
	net.Listener
	left atomic.Int32 // how often Accept fails
}

func (s *starved) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// A lack of descriptors passes: it is told once, and the socket is there after it.
func TestServeOutlivesAnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &starved{Listener: l}
	s.left.Store(3)
	var told atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		Serve(s, nil, func(r Request) Response { return Response{DrainID: "here"} }, func(error) { told.Add(1) })
	}()
	if r, err := Call(t.Context(), l.Addr().String(), Request{}); err != nil || r.DrainID != "here" {
		t.Errorf("%+v, %v", r, err)
	}
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times", n)
	}
	l.Close()
	<-done
}

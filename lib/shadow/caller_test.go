// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/shadow"
)

// answer answers one message on peer with put in the background; the next one
// may be answered after wait.
func answer(t testing.TB, peer *cedar.Conn, put func(*cedar.Conn)) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		answering(t, peer, put)
	}()
	return func() { <-done }
}

// answering answers one message on peer with put, whatever it is.
func answering(t testing.TB, peer *cedar.Conn, put func(*cedar.Conn)) {
	t.Helper()
	if _, err := peer.Rest(); err != nil {
		t.Error(err)
	}
	if err := peer.EndOfMessage(); err != nil {
		t.Error(err)
	}
	put(peer)
	if err := peer.EndMessage(); err != nil {
		t.Error(err)
	}
}

// A call that is refused says which one and why, and the conversation goes on.
func TestRefused(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	defer caller.End()
	for _, tt := range []struct {
		errno cedar.Errno
		kind  errs.Kind
		is    error
		text  string
	}{
		{cedar.ENOENT, errs.NotFound, fs.ErrNotExist, "no such file or directory"},
		{cedar.EACCES, errs.Denied, fs.ErrPermission, "permission denied"},
		{cedar.EEXIST, errs.Conflict, fs.ErrExist, "file exists"},
		{cedar.ENOTEMPTY, errs.Conflict, fs.ErrExist, "directory not empty"},
		{cedar.EINVAL, errs.Invalid, fs.ErrInvalid, "invalid argument"},
		{cedar.ENOSPC, errs.Exhausted, nil, "no space left on device"},
		{9999, errs.Broken, nil, "error 9999"},
	} {
		wait := answer(t, peer, wire{-1, int(tt.errno)}.put)
		_, err := caller.Open(t.Context(), "f", 0, 0)
		wait()
		var refused *shadow.CallError
		if !errors.As(err, &refused) || refused.Call != "open" || refused.Errno != tt.errno {
			t.Fatalf("errno %d: %v", tt.errno, err)
		}
		if errs.KindOf(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) || errors.Is(err, shadow.ErrLost) {
			t.Errorf("errno %d: kind %s, %v", tt.errno, errs.KindOf(err), err)
		}
		if !strings.Contains(err.Error(), "open") || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), starter.Peer()) {
			t.Errorf("errno %d: %v", tt.errno, err)
		}
	}
	if !caller.Connected() {
		t.Error("the conversation is over")
	}
}

// An answer that cannot be ends the conversation with an error that names the
// peer and the call; nothing of it is taken for an answer.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, c *shadow.Caller) error {
		_, err := c.Read(ctx, 3, 4)
		return err
	}
	write := func(ctx context.Context, c *shadow.Caller) error {
		_, err := c.Write(ctx, 3, []byte("abc"))
		return err
	}
	for _, tt := range []struct {
		name string
		call func(context.Context, *shadow.Caller) error
		put  func(*cedar.Conn)
		text string
	}{
		{"more than asked for", read, wire{5, []byte("abcde")}.put, "at most 4 can be"},
		{"fewer bytes than said", read, wire{4, []byte("abc")}.put, "ends too early"},
		{"something behind it", read, wire{1, []byte("abc")}.put, "2 bytes are left"},
		{"no error number", read, wire{-1}.put, "ends too early"},
		{"a huge number", read, wire{1 << 62}.put, "at most 4 can be"},
		{"more than was written", write, wire{4}.put, "at most 3 can be"},
		{"no ad", func(ctx context.Context, c *shadow.Caller) error { _, err := c.JobInfo(ctx); return err }, wire{0, 1 << 40}.put, "get_job_info"},
		{"half an integer", read, wire{[]byte("abc")}.put, "ends too early"},
		{"a descriptor beyond all", func(ctx context.Context, c *shadow.Caller) error { _, err := c.Open(ctx, "f", 0, 0); return err }, wire{1 << 40}.put, "open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			starter, peer := pair(t)
			caller := shadow.New(starter, shadow.Options{})
			go answering(t, peer, tt.put)
			err := tt.call(t.Context(), caller)
			if !errors.Is(err, shadow.ErrLost) || errs.KindOf(err) != errs.Transient {
				t.Fatalf("%s, %v", errs.KindOf(err), err)
			}
			if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), starter.Peer()) || !strings.Contains(err.Error(), "bad answer to") {
				t.Error(err)
			}
			<-caller.Lost()
			if err := caller.BeginExecution(t.Context()); !errors.Is(err, shadow.ErrLost) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// A text that does not read as what it should be is an error of the call
// alone.
func TestUselessAnswers(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	defer caller.End()
	for _, tt := range []struct {
		call func(context.Context) error
		put  func(*cedar.Conn)
	}{
		{func(ctx context.Context) error { _, err := caller.Stat(ctx, "f"); return err }, wire{0, block("1 2 3\n")}.put},
		{func(ctx context.Context) error { _, err := caller.Statfs(ctx, "f"); return err }, wire{0, block("")}.put},
		{func(ctx context.Context) error { _, err := caller.GetDir(ctx, "d"); return err }, wire{1, "a\nb\n"}.put},
		{func(ctx context.Context) error { _, err := caller.GetDir(ctx, "d"); return err }, wire{1, strings.Repeat("a", 5000) + "\n\n"}.put},
		{func(ctx context.Context) error { _, err := caller.GetLongDir(ctx, "d"); return err }, wire{1, "a\nb\nc\n\n"}.put},
		{func(ctx context.Context) error { _, _, err := caller.UserInfo(ctx); return err }, wire{0, classad.NewAd()}.put},
		{func(ctx context.Context) error { _, err := caller.Creds(ctx, false); return err }, wire{1, ad(t, "Service = \"x\"\nData = \"%%%\"\n"), 0}.put},
	} {
		wait := answer(t, peer, tt.put)
		err := tt.call(t.Context())
		wait()
		if errs.KindOf(err) != errs.Invalid || errors.Is(err, shadow.ErrLost) {
			t.Errorf("%s, %v", errs.KindOf(err), err)
		}
	}
	if !caller.Connected() {
		t.Error("the conversation is over")
	}
}

// What cannot be sent is refused here, and nothing is sent of it.
func TestUnsendable(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	defer caller.End()
	nul := classad.NewAd()
	nul.SetString("A", "x\x00y")
	for _, err := range []error{
		caller.Unlink(t.Context(), "a\x00b"), caller.Log(t.Context(), nul), caller.RegisterJob(t.Context(), nil),
	} {
		if errs.KindOf(err) != errs.Invalid {
			t.Error(err)
		}
	}
	go answering(t, peer, wire{0}.put)
	if err := caller.BeginExecution(t.Context()); err != nil {
		t.Error(err)
	}
}

// Keys do not go over a stream that anybody reads.
func TestClearStream(t *testing.T) {
	t.Parallel()
	a, b := cedartest.Pipe()
	defer func() { _ = b.Close() }()
	caller := shadow.New(cedar.NewConn(a, cedar.Limits{}), shadow.Options{})
	defer caller.End()
	_, _, err := caller.Sessions(t.Context())
	_, err2 := caller.Creds(t.Context(), false)
	_, err3 := caller.DockerCreds(t.Context())
	for _, err := range []error{err, err2, err3} {
		if errs.KindOf(err) != errs.Denied {
			t.Error(err)
		}
	}
}

// A shadow that closes the connection between two calls is missed at once, one
// that says something unasked too.
func TestLostBetweenCalls(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	_ = peer.Close()
	<-caller.Lost()
	if err := caller.Cause(); !errors.Is(err, shadow.ErrLost) || !strings.Contains(err.Error(), "closed the connection") {
		t.Error(err)
	}
	starter, peer = pair(t)
	caller.Replace(starter)
	if caller.Cause() != nil || !caller.Connected() {
		t.Fatal("not connected")
	}
	peer.PutInt(0)
	if err := peer.EndMessage(); err != nil {
		t.Fatal(err)
	}
	<-caller.Lost()
	if err := caller.Cause(); err == nil || !strings.Contains(err.Error(), "answers nothing") {
		t.Error(err)
	}
}

// The time for an answer, and for taking a request, is bounded; the lease
// counts from the last answer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starter, peer := pair(t)
		caller := shadow.New(starter, shadow.Options{})
		time.Sleep(time.Hour) // silence between calls is no harm
		go answering(t, peer, wire{0}.put)
		if err := caller.BeginExecution(t.Context()); err != nil {
			t.Fatal(err)
		}
		contact, began := caller.Contact(), time.Now()
		err := caller.BeginExecution(t.Context())
		if took := time.Since(began); took != shadow.DefaultTimeout {
			t.Errorf("gave up after %s", took)
		}
		if !errors.Is(err, shadow.ErrLost) || !strings.Contains(err.Error(), "no answer within 5m0s") {
			t.Error(err)
		}
		if caller.Contact() != contact {
			t.Error("a call without an answer counts as contact")
		}
		lease := shadow.Lease{Length: 40 * time.Minute, Contact: contact}
		if left := lease.Left(contact.Add(time.Since(began))); left != 35*time.Minute {
			t.Errorf("left %s", left)
		}
	})
}

// A caller that gives up leaves the conversation as it is: the answer that
// comes later is nobody's, and the next call gets its own.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starter, peer := pair(t)
		caller := shadow.New(starter, shadow.Options{})
		defer caller.End()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := caller.JobAttr(ctx, "A"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, shadow.ErrLost) {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			answering(t, peer, wire{0, "one"}.put)
			answering(t, peer, wire{0, "two"}.put)
		}()
		if got, err := caller.JobAttr(t.Context(), "B"); err != nil || got != "two" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// Calls from many goroutines do not mix.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	defer caller.End()
	go func() {
		for {
			r, err := shadow.ReadRequest(peer)
			if err != nil {
				return
			}
			reply := shadow.Reply{Text: "about " + r.Texts[0]}
			reply.Put(peer, r.Call)
			if peer.EndMessage() != nil {
				return
			}
		}
	}()
	done := make(chan error, 8)
	for i := range cap(done) {
		go func() {
			var err error
			for range 50 {
				name := strings.Repeat("x", i+1)
				got, e := caller.JobAttr(t.Context(), name)
				if e == nil && got != "about "+name {
					e = errors.New("got " + got)
				}
				err = errors.Join(err, e)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

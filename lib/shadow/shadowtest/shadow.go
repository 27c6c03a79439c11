// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Version is the version that a shadow says it has if its Job says nothing.
const Version = "$CondorVersion: 25.14.0 2026-11-20 TEST $"

// Job is the job of a shadow, and what belongs to it at the submit machine.
type Job struct {
	Ad    *classad.Ad // answers get_job_info, and may be changed by calls
	Claim claim.ID    // its sessions are those that are shared; zero: none are
	// Transfer is the session of file transfer; zero: made of Claim.
	Transfer shadow.Session
	// Root is where the calls for files act, Iwd of the job being its name.
	// Nil has none.
	Root *os.Root
	// Open lets the job use files whatever its ad says.
	Open bool

	Version    string // "" is Version
	UID, GID   int
	Creds      []shadow.Cred
	DockerAuth *classad.Ad       // nil: an HTCondorError
	Kerberos   map[string]string // what the machine has of users, by their names
	// Proxy is what is delegated; nil is nothing, and the connection is closed then.
	Proxy *delegationtest.Credential
	// Guide answers request_guidance, nil carries on.
	Guide func(request *classad.Ad) (int, *classad.Ad)
}

// Action is what becomes of an answer.
type Action int

// The actions.
const (
	Send   Action = iota // as it stands in the reply
	Silent               // none at all: the starter waits
	Cut                  // the connection is closed in its place
	Half                 // it is closed in the middle of it
)

// Mischief looks at a request, the n-th of the shadow from 0, and the answer
// that it would get, which it may change; it says what becomes of that.
type Mischief func(n int, request *shadow.Request, reply *shadow.Reply) Action

// Record is one call that was made.
type Record struct {
	At      time.Time
	Request *shadow.Request
	Reply   shadow.Reply
}

// End is how the conversation on one connection ended.
type End struct {
	// Exit is the call job_exit, Held the critical event, if it was one of
	// these; else both are nil: the connection ended.
	Exit, Held *shadow.Request
}

// Shadow is a shadow. Its methods may be called by many goroutines; one
// connection is served at a time.
type Shadow struct {
	job Job

	mu       sync.Mutex
	mischief Mischief
	calls    []Record
	grew     chan struct{} // closed and replaced with each call and each transfer
	conn     *cedar.Conn
	starter  *classad.Ad // of register_starter_info
	files    files

	transferKey string
	transfers   Files
	moved       []Transfer
}

// New makes a shadow. Its job ad is the shadow's from then on.
func New(j Job) *Shadow {
	if j.Version == "" {
		j.Version = Version
	}
	if j.Ad == nil {
		j.Ad = classad.NewAd()
	}
	return &Shadow{job: j, grew: make(chan struct{}), files: files{root: j.Root, open: make(map[int64]*os.File)}}
}

// Misbehave sets what looks at each answer, nil nothing.
func (s *Shadow) Misbehave(m Mischief) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mischief = m
}

// Serve answers the calls on a connection until the job exits, asks to be
// held, or the connection ends; it does not close the connection. The error is
// that of a request that cannot be, or of the connection when it did not end
// between two messages.
func (s *Shadow) Serve(ctx context.Context, conn *cedar.Conn) (End, error) {
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	conn.SetLimits(cedar.Limits{Message: shadow.MaxData + 1<<20, Timeout: -1})
	defer conn.Bind(ctx)()
	for {
		request, err := shadow.ReadRequest(conn)
		switch {
		case errs.Is(err, errs.Unsupported):
			continue // logged and not answered, by HTCondor
		case errors.Is(err, io.EOF):
			return End{}, nil
		case err != nil:
			return End{}, err
		}
		end, err := s.serve(conn, request)
		if err != nil || end.Exit != nil || end.Held != nil {
			return end, err
		}
	}
}

// errCut says that the connection was closed by mischief.
var errCut = errors.New("shadowtest: cut by mischief")

// serve answers one request.
func (s *Shadow) serve(conn *cedar.Conn, request *shadow.Request) (end End, err error) {
	s.mu.Lock()
	reply := s.answer(request)
	action := Send
	if s.mischief != nil {
		action = s.mischief(len(s.calls), request, &reply)
	}
	s.calls = append(s.calls, Record{At: time.Now(), Request: request, Reply: reply})
	close(s.grew)
	s.grew = make(chan struct{})
	s.mu.Unlock()
	switch action {
	case Silent:
		return end, nil
	case Cut:
		_ = conn.Close()
		return end, errCut
	case Half: // a header that promises more than comes
		_, _ = conn.NetConn().Write([]byte{1, 0, 0, 1, 0, 42})
		_ = conn.Close()
		return end, errCut
	}
	switch request.Call {
	case shadow.CallUlog:
		if critical(request.Ad) {
			end.Held = request
		}
		return end, nil
	case shadow.CallPutfile:
		return end, s.putfile(conn, request, reply)
	case shadow.CallJobExit:
		end.Exit = request
	}
	reply.Put(conn, request.Call)
	err = conn.EndMessage()
	if request.Call == shadow.CallGetProxy && len(reply.Data) == 0 {
		_ = conn.Close() // as HTCondor's does, which takes it for a failure of the network
	}
	return end, err
}

// critical reports whether an event ends the activation.
func critical(event *classad.Ad) bool {
	number, _ := event.EvalInt("EventTypeNumber", nil)
	if number != 21 {
		return false
	}
	flag, said := event.EvalInt("CriticalError", nil)
	return !said || flag != 0
}

// Calls returns what was asked so far, in order.
func (s *Shadow) Calls() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Wait returns the n-th call of a kind, from 0, once it was made.
func (s *Shadow) Wait(ctx context.Context, call shadow.Call, n int) (Record, error) {
	for seen, found := 0, 0; ; {
		s.mu.Lock()
		calls, grew := s.calls, s.grew
		s.mu.Unlock()
		for ; seen < len(calls); seen++ {
			if calls[seen].Request.Call != call {
				continue
			}
			if found == n {
				return calls[seen], nil
			}
			found++
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return Record{}, context.Cause(ctx)
		}
	}
}

// Vanish closes the connection, as a network or a machine that fails.
func (s *Shadow) Vanish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// Starter returns the ad that the starter registered, nil before it did.
func (s *Shadow) Starter() *classad.Ad {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starter
}

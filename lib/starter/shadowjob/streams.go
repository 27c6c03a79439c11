// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// pumpChunk is how much of a stream is moved at a time.
const pumpChunk = 64 << 10

// lastWords is how long the end of what the job wrote is waited for when its processes
// are gone. What they wrote is in the pipe: a process that holds the pipe open then got
// it from the job and is not of the job.
const lastWords = 2 * time.Second

// streams are the standard files of the job that are read and written at the
// submit machine while it runs, each through a pipe.
type streams struct {
	conv  *conversation
	on    Activation // told of a stream that cannot go on
	ctx   context.Context
	end   context.CancelFunc
	job   [3]*os.File // the job's ends; nil where nothing streams
	ours  []*os.File  // the other ends, which the pumps close
	over  atomic.Bool // the job's processes are gone
	pumps sync.WaitGroup

	mu     sync.Mutex
	back   chan struct{} // closed and replaced each time the shadow is back
	failed *streamError  // why not all that the job wrote is at the submit machine; nil if nothing is known to be lost
}

// openStreams opens the streams that the job wants, as out says for those that
// it writes. They last for one run of the job.
func (j *Job) openStreams(ctx context.Context, out shadow.StreamKind) (_ *streams, err error) {
	of := j.place.Job
	st := &streams{conv: j.conv, on: j.Activation, back: make(chan struct{})}
	st.ctx, st.end = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	both := of.Stdout.Stream != "" && of.Stdout.Stream == of.Stderr.Stream
	for i, f := range []struct {
		path string
		kind shadow.StreamKind
	}{{of.StdinStream, shadow.StreamIn}, {of.Stdout.Stream, out}, {of.Stderr.Stream, out}} {
		switch {
		case f.path == "":
			continue
		case i == 2 && both:
			st.job[2] = st.job[1]
			continue
		}
		remote, err := shadow.OpenStream(ctx, j.conv.caller, f.path, f.kind)
		if err != nil {
			return nil, &streamError{code: holdOfStream(f.kind), path: f.path, err: err}
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if f.kind == shadow.StreamIn {
			st.job[i], st.ours = r, append(st.ours, w)
			st.pumps.Go(func() { st.feed(w, remote) })
		} else {
			st.job[i], st.ours = w, append(st.ours, r)
			st.pumps.Go(func() { st.drain(r, remote, f.path) })
		}
	}
	return st, nil
}

func holdOfStream(kind shadow.StreamKind) reason.Code {
	if kind == shadow.StreamIn {
		return reason.UnableToOpenInputStream
	}
	return reason.UnableToOpenOutputStream
}

// streamError is a stream that could not be opened, or not be gone on with.
type streamError struct {
	code reason.Code
	path string
	err  error
}

func (e *streamError) Error() string { return fmt.Sprintf("the stream %s: %v", e.path, e.err) }
func (e *streamError) Unwrap() error { return e.err }

// hold is why the job is held for it.
func (e *streamError) hold() *protocol.Hold {
	h := &protocol.Hold{Code: int(e.code), Reason: "Failed to stream '" + e.path + "': " + e.err.Error()}
	var refused *shadow.CallError
	if errors.As(e.err, &refused) {
		h.Subcode = refused.Errno.Linux()
	}
	return h
}

// drain writes what the job writes.
func (st *streams) drain(r *os.File, remote *shadow.Stream, path string) {
	defer r.Close()
	buf := make([]byte, pumpChunk)
	broken := false
	for {
		if st.over.Load() {
			if st.ctx.Err() != nil {
				break // whoever writes now is not of the job
			}
			_ = r.SetReadDeadline(time.Now().Add(lastWords))
		}
		n, err := r.Read(buf)
		if n > 0 && !broken {
			_, werr := remote.Write(st.ctx, buf[:n])
			broken = !st.mend(werr, remote, path)
		}
		if err != nil {
			break // all who could write are gone, or the last words are
		}
	}
	if !broken {
		st.mend(remote.Close(st.ctx), remote, path)
	}
}

// feed gives the job what it reads.
func (st *streams) feed(w *os.File, remote *shadow.Stream) {
	defer w.Close()
	for {
		b, err := remote.Read(st.ctx, pumpChunk)
		switch {
		case err != nil && !st.mend(err, remote, "standard input"):
			return
		case err != nil:
			continue
		case len(b) == 0:
			_ = remote.Close(st.ctx) // nothing was written
			return
		}
		if _, err := w.Write(b); err != nil {
			return // the job does not read it
		}
	}
}

// mend goes on after a failure of a stream: it waits for the shadow. It is
// false if the stream is over.
func (st *streams) mend(err error, remote *shadow.Stream, path string) bool {
	for errors.Is(err, shadow.ErrLost) {
		st.mu.Lock()
		back := st.back
		st.mu.Unlock()
		if !st.conv.caller.Connected() {
			select {
			case <-back:
			case <-st.ctx.Done():
				return false
			}
		}
		if err = remote.Reopen(st.ctx); err == nil {
			return true
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return err == nil
	}
	if st.ctx.Err() != nil {
		return false
	}
	failed := &streamError{code: reason.Code(remote.HoldCode()), path: path, err: err}
	if failed.code != reason.UnableToOpenInputStream { // a job that has ended does not miss its input
		st.mu.Lock()
		st.failed = failed
		st.mu.Unlock()
	}
	h := failed.hold()
	go func() {
		// The life may be over before it listens.
		_ = st.on.Do(st.ctx, func() {
			st.on.Order(protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Asked: "starter", Reason: h.Reason, Code: h.Code, Subcode: h.Subcode}})
		})
	}()
	return false
}

// started closes the job's ends: the job has its own now.
func (st *streams) started() {
	if st == nil {
		return
	}
	for i, f := range st.job {
		if f != nil && (i == 0 || f != st.job[i-1]) {
			f.Close()
		}
	}
	st.job = [3]*os.File{}
}

// rejoined lets the streams go on.
func (st *streams) rejoined() {
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	close(st.back)
	st.back = make(chan struct{})
}

// settled waits until all that the job wrote, whose processes are gone, is at the
// submit machine, the conversation breaks, or ctx ends. It is a *streamError if some of
// that is lost: the order to leave that mend gives comes too late for a job that has
// ended.
func (st *streams) settled(ctx context.Context) error {
	if st == nil {
		return nil
	}
	st.last(lastWords)
	done := make(chan struct{})
	go func() {
		st.pumps.Wait()
		close(done)
	}()
	select {
	case <-done:
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.failed != nil {
			return st.failed
		}
		return nil
	case <-st.conv.caller.Lost():
		return shadow.ErrLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// last says that the job's processes are gone, or that the run did not begin: what is
// still in the pipes is waited for that long.
func (st *streams) last(wait time.Duration) {
	st.started()
	st.over.Store(true)
	now := time.Now()
	for _, f := range st.ours {
		_ = f.SetReadDeadline(now.Add(wait))
		_ = f.SetWriteDeadline(now) // nobody reads any more
	}
}

func (st *streams) close() {
	if st == nil {
		return
	}
	st.end()
	st.last(0)
	st.pumps.Wait()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/execpoint/execpoint/lib/errs"
)

// streamChunk is how many bytes of a stream are under way at a time, and lost
// at most when the submit machine dies.
const streamChunk = 64 << 10

// streamMode are the permissions of a file that a stream makes.
const streamMode = 0o666

// StreamKind is which way a stream goes.
type StreamKind int

// The kinds.
const (
	StreamOut    StreamKind = iota // the file is emptied
	StreamAppend                   // the file is kept
	StreamIn
)

// Stream is a standard file of the job that is read or written at the submit
// machine while the job runs. What was written is counted when the shadow says
// so; after a reconnect Reopen finds the place again and sends what was under
// way. One goroutine uses a Stream.
//
// A failure that is ErrLost waits for Reopen; any other ends the stream, and
// is a reason to put the job on hold (9 for output, 10 for input).
type Stream struct {
	c       *Caller
	path    string
	kind    StreamKind
	fd      int
	open    bool
	offset  int64 // acknowledged
	pending []byte
	closing bool // all is written, and is to be made safe
	done    bool
}

// OpenStream opens the file at path, as RemotePath or the job's ad has it.
func OpenStream(ctx context.Context, c *Caller, path string, kind StreamKind) (*Stream, error) {
	s := &Stream{c: c, path: path, kind: kind}
	flags := os.O_WRONLY | os.O_CREATE
	switch kind {
	case StreamOut:
		flags |= os.O_TRUNC
	case StreamIn:
		flags = os.O_RDONLY
	}
	if err := s.start(ctx, flags); err != nil {
		return nil, err
	}
	if kind == StreamAppend {
		end, err := c.Seek(ctx, s.fd, 0, io.SeekEnd)
		if err != nil {
			return nil, s.failed(err)
		}
		s.offset = end
	}
	return s, nil
}

func (s *Stream) start(ctx context.Context, flags int) error {
	fd, err := s.c.Open(ctx, s.path, flags, streamMode)
	if err != nil {
		return s.failed(err)
	}
	s.fd, s.open = fd, true
	return nil
}

// failed is what a call of the stream failed with.
func (s *Stream) failed(err error) error {
	if errors.Is(err, ErrLost) {
		s.open = false
	}
	return errs.E("shadow.Stream", errs.Other, s.path, err)
}

// HoldCode is the code to hold the job with when the stream failed.
func (s *Stream) HoldCode() int {
	if s.kind == StreamIn {
		return 10
	}
	return 9
}

// Offset is how far the stream came: what the shadow acknowledged, or what was
// read.
func (s *Stream) Offset() int64 { return s.offset }

// Write writes all of b. When it fails with ErrLost, b is kept until Reopen
// and must not be written again: the count returned is that of b.
func (s *Stream) Write(ctx context.Context, b []byte) (int, error) {
	if s.kind == StreamIn || s.closing {
		return 0, s.failed(errors.New("the stream is not one to be written"))
	}
	if len(s.pending) > 0 {
		return 0, s.failed(fmt.Errorf("%w: %d bytes wait for it", ErrLost, len(s.pending)))
	}
	s.pending = append(s.pending[:0], b...)
	return len(b), s.flush(ctx)
}

// flush sends what is pending.
func (s *Stream) flush(ctx context.Context) error {
	for sent := 0; ; {
		rest := s.pending[sent:]
		if len(rest) == 0 {
			s.pending = s.pending[:0]
			return nil
		}
		if !s.open {
			return s.keep(sent, fmt.Errorf("%w: the file is not open", ErrLost))
		}
		piece := rest[:min(len(rest), streamChunk)]
		if at, err := s.c.Seek(ctx, s.fd, s.offset, io.SeekStart); err != nil {
			return s.keep(sent, err)
		} else if at != s.offset {
			return s.keep(sent, fmt.Errorf("the file is at %d, not at %d", at, s.offset))
		}
		n, err := s.c.Write(ctx, s.fd, piece)
		if err != nil {
			return s.keep(sent, err)
		}
		if n != len(piece) {
			return s.keep(sent, fmt.Errorf("only %d of %d bytes were written", n, len(piece)))
		}
		s.offset += int64(n)
		sent += n
	}
}

// keep keeps what was not acknowledged.
func (s *Stream) keep(sent int, err error) error {
	s.pending = append(s.pending[:0], s.pending[sent:]...)
	return s.failed(err)
}

// Read reads at most n bytes, none at the end of the file.
func (s *Stream) Read(ctx context.Context, n int) ([]byte, error) {
	if s.kind != StreamIn {
		return nil, s.failed(errors.New("the stream is not one to be read"))
	}
	if !s.open {
		return nil, s.failed(fmt.Errorf("%w: the file is not open", ErrLost))
	}
	if _, err := s.c.Seek(ctx, s.fd, s.offset, io.SeekStart); err != nil {
		return nil, s.failed(err)
	}
	b, err := s.c.Read(ctx, s.fd, min(n, streamChunk))
	if err != nil {
		return nil, s.failed(err)
	}
	s.offset += int64(len(b))
	return b, nil
}

// Close has what was written made safe, and closes the file. When it fails
// with ErrLost, Reopen does that.
func (s *Stream) Close(ctx context.Context) error {
	if s.done {
		return nil
	}
	s.closing = true
	if err := s.flush(ctx); err != nil {
		return err
	}
	if !s.open {
		if s.kind == StreamIn {
			s.done = true
			return nil
		}
		return s.failed(fmt.Errorf("%w: the file is not open", ErrLost))
	}
	if s.kind != StreamIn {
		if err := s.c.Fsync(ctx, s.fd); err != nil {
			return s.failed(err)
		}
	}
	s.done, s.open = true, false
	// The bytes are on disk: what closing says changes nothing.
	_ = s.c.Close(ctx, s.fd)
	return nil
}

// Done reports whether the stream is closed.
func (s *Stream) Done() bool { return s.done }

// Reopen goes on after a reconnect: the file is opened again, and what was not
// acknowledged is sent again, Close included. It fails if the file lost what
// was acknowledged.
func (s *Stream) Reopen(ctx context.Context) error {
	if s.done {
		return nil
	}
	flags := os.O_WRONLY | os.O_CREATE
	if s.kind == StreamIn {
		flags = os.O_RDONLY
	}
	if err := s.start(ctx, flags); err != nil {
		return err
	}
	if s.kind == StreamIn {
		return nil
	}
	size, err := s.c.Seek(ctx, s.fd, 0, io.SeekEnd)
	if err != nil {
		return s.failed(err)
	}
	if size < s.offset {
		return s.failed(fmt.Errorf("the file has %d bytes, %d were written: the submit machine lost some", size, s.offset))
	}
	if s.closing {
		return s.Close(ctx)
	}
	return s.flush(ctx)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// reader takes the items of one message and keeps the first error, so that a
// message reads as it is laid out.
type reader struct {
	conn *cedar.Conn
	err  error
}

func (r *reader) int() int64 {
	if r.err != nil {
		return 0
	}
	var i int64
	i, r.err = r.conn.Int()
	return i
}

// name reads a text that is the name of a user or a token: bounded.
func (r *reader) name(limit int) string {
	if r.err != nil {
		return ""
	}
	var s string
	if s, r.err = r.conn.String(); r.err == nil && len(s) > limit {
		r.err = errs.E("", errs.Exhausted, "", fmt.Errorf("a text of %d bytes, at most %d are taken", len(s), limit))
		return ""
	}
	return s
}

// bytes reads a length between 0 and limit, and as many bytes.
func (r *reader) bytes(limit int) []byte {
	if r.err != nil {
		return nil
	}
	var n int64
	if n, r.err = r.conn.Int(); r.err != nil {
		return nil
	}
	if n < 0 || n > int64(limit) {
		r.err = errs.E("", errs.Invalid, "", fmt.Errorf("a length of %d, want 0 to %d", n, limit))
		return nil
	}
	var b []byte
	b, r.err = r.conn.Bytes(int(n))
	return b
}

// end expects the end of the message and returns the first error.
func (r *reader) end() error {
	if r.err != nil {
		return broken{r.err}
	}
	if err := r.conn.EndOfMessage(); err != nil {
		return broken{err}
	}
	return nil
}

// send ends a message. A stream that cannot be written to cannot be tried with
// another method either.
func send(conn *cedar.Conn) error {
	if err := conn.EndMessage(); err != nil {
		return broken{err}
	}
	return nil
}

// broken marks an error after which the two sides do not agree any more on
// what comes next, so that no other method can follow.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

// agreed marks the failure that both sides know of.
type agreed struct{ error }

func (a agreed) Unwrap() error { return a.error }

func isBroken(err error) bool {
	var b broken
	return errors.As(err, &b)
}

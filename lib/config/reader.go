// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"time"
)

// Reader reads knobs into a value with a field for each, one after the other, and
// keeps what is wrong with any of them. A knob that is wrong reads as if it were not
// there.
type Reader struct {
	Snapshot *Snapshot
	errs     []error
}

func keep[T any](r *Reader, value T, err error) T {
	if err != nil {
		r.errs = append(r.errs, err)
		var none T
		return none
	}
	return value
}

// Bool reads a knob as Snapshot.Bool.
func (r *Reader) Bool(name string) bool {
	value, err := r.Snapshot.Bool(name)
	return keep(r, value, err)
}

// Int reads a knob as Snapshot.Int.
func (r *Reader) Int(name string) int64 {
	value, err := r.Snapshot.Int(name)
	return keep(r, value, err)
}

// Duration reads a knob as Snapshot.Duration.
func (r *Reader) Duration(name string) time.Duration {
	value, err := r.Snapshot.Duration(name)
	return keep(r, value, err)
}

// Text reads a knob as Snapshot.Text.
func (r *Reader) Text(name string) string {
	value, err := r.Snapshot.Text(name)
	return keep(r, value, err)
}

// List reads a knob as Snapshot.List: set to nothing it is empty.
func (r *Reader) List(name string) []string {
	return splitList(r.String(name))
}

// String reads a knob as Snapshot.String: set to nothing it is empty.
func (r *Reader) String(name string) string {
	value, _, err := r.Snapshot.value(name)
	return trim(keep(r, value, err))
}

// Expr reads a knob as Snapshot.Expression.
func (r *Reader) Expr(name string) *Expr {
	value, err := r.Snapshot.Expression(name)
	return keep(r, value, err)
}

// Wrong keeps that a knob, which could be read, does not have a value that is wanted.
func (r *Reader) Wrong(name, message, want string) {
	text, e, _ := r.Snapshot.value(name)
	r.errs = append(r.errs, r.Snapshot.bad(name, e, trim(text), message, want))
}

// Err is all that was wrong, nil if nothing was.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

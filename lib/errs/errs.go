// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errs is the one shape of errors that cross package borders here:
// the operation that failed, a kind to branch on, the subject (a slot, file,
// knob, job) and the cause. It owns the list of kinds and how an error reads;
// it must never log, format for a terminal, or decide what happens next.
//
//	return errs.E("slot.Carve", errs.Exhausted, "slot1", fmt.Errorf("%d cpus of %d", want, free))
//
// prints as "slot.Carve slot1: exhausted: 4 cpus of 2".
package errs

import (
	"errors"
	"strings"
)

// Kind says what a caller can do about an error. Kinds are append-only: they
// are written to journals and exit records.
type Kind uint8

// The kinds. Callers branch on these, never on text.
const (
	Other       Kind = iota // unclassified
	Invalid                 // the input is wrong and will stay wrong
	Denied                  // not permitted
	NotFound                // the named thing does not exist
	Conflict                // the present state forbids it
	Expired                 // a lease, claim or deadline is over
	Exhausted               // no resources left (slots, disk, ids)
	Broken                  // something that should work is damaged
	Transient               // may succeed if tried again
	Unsupported             // this platform or build cannot do it
	Internal                // a defect of this program
)

var kindNames = [...]string{
	Other: "", Invalid: "invalid", Denied: "denied", NotFound: "not found", Conflict: "conflict",
	Expired: "expired", Exhausted: "exhausted", Broken: "broken", Transient: "transient",
	Unsupported: "unsupported", Internal: "internal error",
}

// String returns the lower-case name of k, empty for Other.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Error is one failed operation. Any field may be empty. Err is the cause and
// is reached by errors.Is and errors.As.
type Error struct {
	Op      string // package.Operation
	Kind    Kind
	Subject string // slot name, path, knob, job id
	Err     error
}

// E builds an *Error. When kind is Other the kind of the cause is taken over.
func E(op string, kind Kind, subject string, err error) error {
	if kind == Other {
		kind = KindOf(err)
	}
	return &Error{Op: op, Kind: kind, Subject: subject, Err: err}
}

// Error prints one sentence. A kind or subject that the cause already prints
// is not said twice.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	inner := ""
	if e.Err != nil {
		inner = e.Err.Error()
	}
	var sub *Error
	nested := errors.As(e.Err, &sub)
	if e.Subject != "" && (!nested || sub.Subject != e.Subject) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Subject)
	}
	if e.Kind != Other && (!nested || sub.Kind != e.Kind) {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.Kind.String())
	}
	if inner != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(inner)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost *Error in err's chain that has one,
// Other if there is none.
func KindOf(err error) Kind {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return Other
		}
		if e.Kind != Other {
			return e.Kind
		}
		err = e.Err
	}
	return Other
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return KindOf(err) == k }

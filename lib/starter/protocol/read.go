// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// envelope is a line as JSON has it.
type envelope struct {
	V    int       `json:"v"`
	ID   uint64    `json:"id"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	Body raw       `json:"body"`
}

// raw is JSON that is read later, in place.
type raw []byte

// UnmarshalJSON keeps b, which is no longer than the line.
func (r *raw) UnmarshalJSON(b []byte) error {
	*r = b
	return nil
}

// Reader reads the lines of one side. It is for one goroutine at a time.
type Reader struct {
	from Speaker
	feed feed
	json *json.Decoder // of feed
	at   int64         // how much of it was read
}

// Reader reads lines of s.
func (s Speaker) Reader() *Reader {
	r := &Reader{from: s}
	r.json = json.NewDecoder(&r.feed)
	r.json.DisallowUnknownFields()
	return r
}

// feed gives what there is, and then the end.
type feed []byte

// Read implements io.Reader.
func (f *feed) Read(b []byte) (int, error) {
	if len(*f) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(b, *f)
	*f = (*f)[n:]
	return n, nil
}

// Read reads a line, without its end. Another version of the protocol is
// Unsupported and an *OtherVersion, anything else that the side cannot have said
// Invalid. After an error the reader is of no use.
func (r *Reader) Read(line []byte) (Line, error) {
	const op = "protocol.Read"
	e, ok := unwrap(line)
	if !ok {
		if err := strict(line, &e); err != nil || e.V != Version {
			if other := versionOf(line); other != nil {
				return Line{}, errs.E(op, errs.Unsupported, "", other)
			}
			return Line{}, errs.E(op, errs.Invalid, fmt.Sprintf("%.40q", line), err)
		}
	}
	k, ok := r.from.kinds[e.Kind]
	switch {
	case !ok:
		return Line{}, errs.E(op, errs.Invalid, fmt.Sprintf("%.40q", e.Kind), errors.New("there is no such message"))
	case k.numbered != (e.ID != 0):
		return Line{}, errs.E(op, errs.Invalid, e.Kind, fmt.Errorf("its number is %d", e.ID))
	}
	m, err := k.read(r, e.Body)
	if err != nil {
		return Line{}, errs.E(op, errs.Invalid, e.Kind, err)
	}
	return Line{ID: e.ID, At: e.At, Message: m}, nil
}

// unwrap takes a line apart that is written as Append does. Any other is for the
// reader of JSON.
func unwrap(line []byte) (e envelope, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"v":1,`))
	if !ok || Version != 1 {
		return e, false
	}
	e.V = 1
	if after, numbered := bytes.CutPrefix(rest, []byte(`"id":`)); numbered {
		digits, after, _ := bytes.Cut(after, []byte(","))
		n, err := strconv.ParseUint(string(digits), 10, 64)
		if err != nil || digits[0] == '0' {
			return e, false
		}
		e.ID, rest = n, after
	}
	text := func(name string) (value []byte, ok bool) {
		after, ok := bytes.CutPrefix(rest, []byte(name))
		if !ok {
			return nil, false
		}
		value, after, ok = bytes.Cut(after, []byte(`",`))
		if ok {
			rest = after
		}
		return value, ok && !bytes.ContainsAny(value, `\"`)
	}
	kind, ok := text(`"kind":"`)
	if !ok {
		return e, false
	}
	e.Kind = string(kind)
	if at, ok := text(`"at":"`); ok {
		if e.At.UnmarshalText(at) != nil {
			return e, false
		}
	}
	body, ok := bytes.CutPrefix(rest, []byte(`"body":`))
	if ok {
		body, ok = bytes.CutSuffix(body, []byte("}"))
	}
	e.Body = body
	return e, ok && len(body) > 0 && body[0] == '{'
}

// read reads the body of an M.
func read[M Message](r *Reader, body []byte) (M, error) {
	var m M
	if string(body) == "{}" { // it says nothing, which *Plan may not
		if _, plan := any(m).(*Plan); !plan {
			return m, nil
		}
	}
	if len(body) == 0 || body[0] != '{' {
		return m, errNoObject
	}
	r.feed = body
	if err := r.json.Decode(&m); err != nil {
		return m, err
	}
	was := r.at
	if r.at = r.json.InputOffset(); r.at-was != int64(len(body)) {
		return m, fmt.Errorf("%.20q follows the object", body[min(max(r.at-was, 0), int64(len(body))):])
	}
	return m, nil
}

var errNoObject = errors.New("it is no object")

// strict reads one JSON object and nothing else, of which every field is known.
func strict(b []byte, to any) error {
	if len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if rest := b[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("%.20q follows the object", rest)
	}
	return nil
}

// versionOf is the version of a line that is a message of another one, nil for
// anything else.
func versionOf(line []byte) *OtherVersion {
	var any struct {
		V    int `json:"v"`
		Body struct {
			Program string `json:"program"`
		} `json:"body"`
	}
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return nil
	}
	_ = json.Unmarshal(line, &any) // as much as there is of it
	if any.V == Version {
		return nil
	}
	return &OtherVersion{Theirs: any.V, Program: any.Body.Program}
}

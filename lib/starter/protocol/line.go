// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// MaxLine bounds one line of the conversation in bytes. A longer one ends it.
const MaxLine = 8 << 20

// Message is what a line says: an Order, a Report, or one of StartdHello,
// StarterHello, Taken, Heard and Busy.
type Message interface {
	// Kind names it, on the wire and in logs.
	Kind() string
}

// Line is one line. ID counts a side's orders or reports from 1, and is 0 for every
// other message; At is when a report was made.
type Line struct {
	ID      uint64
	At      time.Time
	Message Message
}

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

// Append appends l as a line to b. One that would be too long is Invalid.
func Append(b []byte, l Line) ([]byte, error) {
	const op = "protocol.Append"
	body, err := json.Marshal(l.Message)
	if err != nil {
		return b, errs.E(op, errs.Invalid, l.Message.Kind(), err)
	}
	if len(body) > MaxLine-200 {
		return b, errs.E(op, errs.Invalid, l.Message.Kind(), errors.New("it is too long for a line"))
	}
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, Version, 10)
	if l.ID != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, l.ID, 10)
	}
	b = append(append(append(b, `,"kind":"`...), l.Message.Kind()...), '"')
	if !l.At.IsZero() {
		b = append(b, `,"at":"`...)
		b = append(l.At.UTC().AppendFormat(b, time.RFC3339Nano), '"')
	}
	b = append(append(b, `,"body":`...), body...)
	return append(b, '}', '\n'), nil
}

// Speaker is the side that a line comes from.
type Speaker struct{ kinds map[string]kind }

// kind is how messages of one kind are read.
type kind struct {
	read     func(body []byte) (Message, error)
	numbered bool
}

// The two sides.
var (
	Startd = Speaker{table(
		numbered(read[*Plan]), numbered(read[Suspend]), numbered(read[Continue]), numbered(read[SoftKill]), numbered(read[HardKill]), numbered(read[Checkpoint]),
		numbered(read[SlotAd]), numbered(read[Ping]), other(read[StartdHello]), other(read[Heard]),
	)}
	Starter = Speaker{table(
		numbered(read[Sandbox]), numbered(read[TransferInStart]), numbered(read[TransferInDone]), numbered(read[Running]), numbered(read[Usage]), numbered(read[Suspended]),
		numbered(read[Continued]), numbered(read[TransferOutStart]), numbered(read[OutputMoved]), numbered(read[TransferOutDone]), numbered(read[Held]), numbered(read[Contact]),
		numbered(read[Refused]), numbered(read[Attributes]), numbered(read[Event]), numbered(read[Ended]), other(read[StarterHello]), other(read[Taken]), other(read[Busy]),
	)}
)

// entry is a row of a table.
type entry struct {
	name string
	kind
}

func numbered[M Message](f func([]byte) (M, error)) entry { return row(f, true) }
func other[M Message](f func([]byte) (M, error)) entry    { return row(f, false) }

func row[M Message](f func([]byte) (M, error), numbered bool) entry {
	var m M
	return entry{m.Kind(), kind{func(body []byte) (Message, error) { return f(body) }, numbered}}
}

func table(rows ...entry) map[string]kind {
	all := make(map[string]kind, len(rows))
	for _, r := range rows {
		all[r.name] = r.kind
	}
	return all
}

func read[M Message](body []byte) (M, error) {
	var m M
	err := strict(body, &m)
	return m, err
}

// strict reads one JSON object and nothing else, of which every field is known.
func strict(b []byte, to any) error {
	if len(b) == 0 || b[0] != '{' {
		return errors.New("it is no object")
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

// Read reads a line of s, without its end. Another version of the protocol is
// Unsupported and an *OtherVersion, anything else that s cannot have said Invalid.
func (s Speaker) Read(line []byte) (Line, error) {
	const op = "protocol.Read"
	var e envelope
	if err := strict(line, &e); err != nil || e.V != Version {
		if other := versionOf(line); other != nil {
			return Line{}, errs.E(op, errs.Unsupported, "", other)
		}
		return Line{}, errs.E(op, errs.Invalid, fmt.Sprintf("%.40q", line), err)
	}
	k, ok := s.kinds[e.Kind]
	switch {
	case !ok:
		return Line{}, errs.E(op, errs.Invalid, fmt.Sprintf("%.40q", e.Kind), errors.New("there is no such message"))
	case k.numbered != (e.ID != 0):
		return Line{}, errs.E(op, errs.Invalid, e.Kind, fmt.Errorf("its number is %d", e.ID))
	}
	m, err := k.read(e.Body)
	if err != nil {
		return Line{}, errs.E(op, errs.Invalid, e.Kind, err)
	}
	return Line{ID: e.ID, At: e.At, Message: m}, nil
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

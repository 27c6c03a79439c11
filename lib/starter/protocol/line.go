// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/json"
	"errors"
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

// Append appends l as a line to b. One that would be too long is Invalid.
func Append(b []byte, l Line) ([]byte, error) {
	const op = "protocol.Append"
	was := len(b)
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
	to := sink(append(b, `,"body":`...))
	if err := json.NewEncoder(&to).Encode(l.Message); err != nil {
		return b[:was], errs.E(op, errs.Invalid, l.Message.Kind(), err)
	}
	b = append(to[:len(to)-1], '}', '\n') // for the line end of an encoder
	if len(b)-was > MaxLine {
		return b[:was], errs.E(op, errs.Invalid, l.Message.Kind(), errors.New("it is too long for a line"))
	}
	return b, nil
}

// sink appends what is written to it.
type sink []byte

// Write implements io.Writer.
func (s *sink) Write(b []byte) (int, error) {
	*s = append(*s, b...)
	return len(b), nil
}

// Speaker is the side that a line comes from.
type Speaker struct{ kinds map[string]kind }

// kind is how messages of one kind are read.
type kind struct {
	name     string
	read     func(r *Reader, body []byte) (Message, error)
	numbered bool
}

// The two sides.
var (
	Startd = Speaker{table(
		numbered(read[*Plan]), numbered(read[Suspend]), numbered(read[Continue]), numbered(read[SoftKill]), numbered(read[HardKill]), numbered(read[Checkpoint]),
		numbered(read[SlotAd]), numbered(read[Cataloged]), numbered(read[Ping]), other(read[StartdHello]), other(read[Heard]),
	)}
	Starter = Speaker{table(
		numbered(read[Sandbox]), numbered(read[TransferInStart]), numbered(read[TransferInDone]), numbered(read[Running]), numbered(read[Usage]), numbered(read[Suspended]),
		numbered(read[Continued]), numbered(read[TransferOutStart]), numbered(read[OutputMoved]), numbered(read[TransferOutDone]), numbered(read[Held]), numbered(read[Contact]),
		numbered(read[Refused]), numbered(read[Attributes]), numbered(read[Event]), numbered(read[Catalog]), numbered(read[Color]), numbered(read[Ended]), other(read[StarterHello]), other(read[Taken]), other(read[Busy]),
	)}
)

func numbered[M Message](f func(*Reader, []byte) (M, error)) kind { return row(f, true) }
func other[M Message](f func(*Reader, []byte) (M, error)) kind    { return row(f, false) }

func row[M Message](f func(*Reader, []byte) (M, error), numbered bool) kind {
	var m M
	return kind{m.Kind(), func(r *Reader, body []byte) (Message, error) { return f(r, body) }, numbered}
}

func table(rows ...kind) map[string]kind {
	all := make(map[string]kind, len(rows))
	for _, r := range rows {
		all[r.name] = r
	}
	return all
}

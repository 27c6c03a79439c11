// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// MaxRecord bounds a line of input in bytes, without its newline.
const MaxRecord = 16 << 20

// World is what expressions see besides ads.
type World struct {
	// Env returns the world as it is when a record is read; its ads are replaced.
	// nil is a world without time, place and randomness.
	Env func() classad.Env

	// Zone finds a time zone by its name, such as time.LoadLocation; nil knows UTC
	// alone.
	Zone func(name string) (*time.Location, error)
}

func (w World) env() classad.Env {
	if w.Env == nil {
		return classad.Env{}
	}
	return w.Env()
}

func (w World) zone(name string) (*time.Location, error) {
	switch {
	case w.Zone != nil:
		return w.Zone(name)
	case name == "UTC":
		return time.UTC, nil
	}
	return nil, errors.New("unknown time zone " + name)
}

// Eval answers evaluation records, one to a line, until the input ends. A record
// that cannot be read gets an answer that says why, and is counted. The error is
// the reader's or the writer's.
func Eval(in io.Reader, out io.Writer, world World) (unread int, err error) {
	a := &answerer{world: world}
	return run(in, out, func(b, line []byte) ([]byte, error) {
		var rec record
		if err := decodeRecord(line, &rec); err != nil {
			return b, &recordError{rec.ID, err}
		}
		b, err := a.answer(b, &rec)
		if err != nil {
			return b, &recordError{rec.ID, err}
		}
		return b, nil
	})
}

// Match answers match records, one to a line, until the input ends. A record that
// cannot be read gets an answer that says why, and is counted. The error is the
// reader's or the writer's.
func Match(in io.Reader, out io.Writer, world World) (unread int, err error) {
	return run(in, out, func(b, line []byte) ([]byte, error) {
		var rec pair
		if err := decodeRecord(line, &rec); err != nil {
			return b, &recordError{rec.ID, err}
		}
		b, err := answerMatch(b, &rec, world.env())
		if err != nil {
			return b, &recordError{rec.ID, err}
		}
		return b, nil
	})
}

// recordError is a record that could not be read.
type recordError struct {
	id  *string // nil if that is not known
	err error
}

func (e *recordError) Error() string { return e.err.Error() }

var (
	errRecordSize = fmt.Errorf("longer than %s", words.Size(MaxRecord))
	errRecordUTF8 = errors.New("no valid UTF-8: a text with other bytes is given in base64, in a field with _b64 added to its name")
)

// run calls answer with each line that is not blank. It appends a line to
// its first argument, or returns what is wrong with the record; reading goes
// on then. What was answered is written before the input is waited for.
func run(in io.Reader, to io.Writer, answer func(b, line []byte) ([]byte, error)) (unread int, err error) {
	w := bufio.NewWriterSize(to, 64<<10)
	var out []byte
	err = EachLine(flushFirst{in, w}, MaxRecord, func(number int, line []byte, long bool) error {
		line = bytes.TrimSpace(line)
		if len(line) == 0 && !long {
			return nil
		}
		var err error
		if long {
			err = errRecordSize
		} else {
			out, err = answer(out[:0], line)
		}
		if err != nil {
			unread++
			out = append(out[:0], `{"id":`...)
			var rec *recordError
			if errors.As(err, &rec) && rec.id != nil {
				out = appendJSONString(out, *rec.id)
			} else {
				out = append(out, "null"...)
			}
			out = append(out, `,"error":`...)
			out = appendJSONString(out, "line "+strconv.Itoa(number)+": "+strings.ToValidUTF8(err.Error(), "\ufffd"))
			out = append(out, '}')
		}
		_, err = w.Write(append(out, '\n'))
		if cap(out) > 1<<20 { // one huge answer does not hold its memory
			out = nil
		}
		return err
	})
	if err == nil {
		err = w.Flush()
	}
	return unread, err
}

// flushFirst writes out what is buffered before it waits for more input, so
// that whoever feeds a pipe line by line gets each answer.
type flushFirst struct {
	r io.Reader
	w *bufio.Writer
}

func (f flushFirst) Read(p []byte) (int, error) {
	if err := f.w.Flush(); err != nil {
		return 0, err
	}
	return f.r.Read(p)
}

// EachLine calls do with each line, its newline taken off, and its number. Of
// a line longer than limit bytes only that is told; line is then empty. The
// bytes are do's only until it returns.
func EachLine(r io.Reader, limit int, do func(number int, line []byte, long bool) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	long := false
	for number := 1; ; {
		part, err := br.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		switch {
		case long:
		case len(buf)+len(part) > limit:
			long, buf = true, nil
		case len(buf) > 0 || !ended:
			buf = append(buf, part...)
			part = buf
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			part = nil
		}
		if err := do(number, part, long); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		number++
		long = false
		if buf = buf[:0]; cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// decodeRecord reads a JSON object. It refuses what the decoder would silently
// replace: bytes that are no UTF-8, and halves of surrogate pairs.
func decodeRecord(line []byte, rec any) error {
	if err := json.Unmarshal(line, rec); err != nil {
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind) && kind.Field != "":
			return fmt.Errorf("%s is a JSON %s, want another type", kind.Field, kind.Value)
		case errors.As(err, &kind):
			return fmt.Errorf("a JSON %s, want an object", kind.Value)
		}
		return err
	}
	if !utf8.Valid(line) || halfSurrogate(line) {
		return errRecordUTF8
	}
	return nil
}

// halfSurrogate reports whether a JSON text names one half of a surrogate pair
// without the other.
func halfSurrogate(text []byte) bool {
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		switch unicodeEscape(text, i) & 0xfc00 {
		case 0xdc00:
			return true
		case 0xd800:
			if i += 6; i >= len(text) || text[i-1] != '\\' || unicodeEscape(text, i)&0xfc00 != 0xdc00 {
				return true
			}
		}
	}
	return false
}

// unicodeEscape reads uXXXX at text[i], 0 if there is something else.
func unicodeEscape(text []byte, i int) uint64 {
	if i+5 > len(text) || text[i] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
	if err != nil {
		return 0
	}
	return n
}

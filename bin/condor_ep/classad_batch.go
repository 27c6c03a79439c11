// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/classad"
)

// maxRecord bounds a line of batch input in bytes, without its newline.
const maxRecord = 16 << 20

// batchEval answers evaluation records, one to a line, until the input ends.
func batchEval(s classadStreams) int {
	a := &answerer{}
	return runBatch(s, "condor_ep classad eval", func(b, line []byte) ([]byte, error) {
		var rec evalRecord
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

// batchMatch answers match records, one to a line, until the input ends.
func batchMatch(s classadStreams) int {
	return runBatch(s, "condor_ep classad match", func(b, line []byte) ([]byte, error) {
		var rec matchRecord
		if err := decodeRecord(line, &rec); err != nil {
			return b, &recordError{rec.ID, err}
		}
		b, err := answerMatch(b, &rec, batchEnv())
		if err != nil {
			return b, &recordError{rec.ID, err}
		}
		return b, nil
	})
}

// batchEnv is the world that records are evaluated in: that of the process,
// but in UTC, as the recordings are.
func batchEnv() classad.Env {
	return classad.Env{Now: time.Now(), Location: time.UTC, Rand: rand.Float64, HomeDir: homeDir}
}

// recordError is a record that could not be read.
type recordError struct {
	id  *string // nil if that is not known
	err error
}

func (e *recordError) Error() string { return e.err.Error() }

var (
	errRecordSize = fmt.Errorf("longer than %s", size(maxRecord))
	errRecordUTF8 = errors.New("no valid UTF-8: a text with other bytes is given in base64, in a field with _b64 added to its name")
)

// runBatch calls answer with each line that is not blank. It appends a line to
// its first argument, or returns what is wrong with the record; reading goes
// on then. What was answered is written before the input is waited for.
func runBatch(s classadStreams, who string, answer func(b, line []byte) ([]byte, error)) int {
	w := bufio.NewWriterSize(s.out, 64<<10)
	status := exitOK
	var out []byte
	err := eachLine(flushFirst{s.in, w}, maxRecord, func(number int, line []byte, long bool) error {
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
			status = exitSomeFailed
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
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", who, err)
		return exitUsage
	}
	return status
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

// eachLine calls do with each line, its newline taken off, and its number. Of
// a line longer than limit bytes only that is told; line is then empty. The
// bytes are do's only until it returns.
func eachLine(r io.Reader, limit int, do func(number int, line []byte, long bool) error) error {
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

// textField decides between a field and its form in base64.
func textField(name string, plain, b64 *string) (text string, ok bool, err error) {
	if b64 == nil {
		if plain == nil {
			return "", false, nil
		}
		return *plain, true, nil
	}
	b, err := base64.StdEncoding.DecodeString(*b64)
	if err != nil {
		return "", false, fmt.Errorf("%s_b64: %w", name, err)
	}
	return string(b), true, nil
}

// appendField appends ,"name":"text"; a text that is no valid UTF-8 stands in
// base64 under the name with _b64 added.
func appendField(b []byte, name, text string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	if !utf8.ValidString(text) {
		b = append(b, `_b64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(text))
		return append(b, '"')
	}
	b = append(b, `":`...)
	return appendJSONString(b, text)
}

// appendTyped appends ,"name":{"type":…,"value":…}.
func appendTyped(b []byte, name string, v typedValue) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":{"type":`...)
	b = appendJSONString(b, v.Type)
	b = appendField(b, "value", v.Value)
	return append(b, '}')
}

// appendBool appends ,"name":true or false.
func appendBool(b []byte, name string, v bool) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":`...)
	return strconv.AppendBool(b, v)
}

// appendNames appends ,"name":["…",…]. If one of them is no valid UTF-8 all
// are in base64, and the name has _b64 added.
func appendNames(b []byte, name string, list []string) []byte {
	encode := false
	for _, s := range list {
		encode = encode || !utf8.ValidString(s)
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	if encode {
		b = append(b, "_b64"...)
	}
	b = append(b, `":[`...)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if encode {
			s = base64.StdEncoding.EncodeToString([]byte(s))
		}
		b = appendJSONString(b, s)
	}
	return append(b, ']')
}

// appendJSONString appends a string that is valid UTF-8 as the recordings
// write it: only quotes, backslashes and control characters are escaped.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

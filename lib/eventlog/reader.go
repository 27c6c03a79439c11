// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits of what a Reader takes in, because a log may come from anywhere.
const (
	maxLine   = 64 << 10 // bytes of one line
	maxRecord = 1 << 20  // bytes of one record
)

// Record is one event read back. Line is the number of its header line,
// counted from 1.
type Record struct {
	Header
	Event Event
	Line  int
}

// BadRecord is a record that cannot be understood. Reading can go on after it.
type BadRecord struct {
	Line int    // of the line that is wrong, counted from 1
	Text string // that line, shortened
	Msg  string // what was expected
	Err  error  // io.ErrUnexpectedEOF when the log ends inside the record
}

// Error prints the line number, what was expected and the line.
func (e *BadRecord) Error() string {
	text := e.Text
	if len(text) > 60 {
		text = text[:60] + "..."
	}
	return fmt.Sprintf("line %d: %s, found %q", e.Line, e.Msg, text)
}

// Unwrap returns Err.
func (e *BadRecord) Unwrap() error { return e.Err }

// ReaderOptions say how times in a log are to be understood.
type ReaderOptions struct {
	Location *time.Location // of times without a zone; nil is UTC
	Year     int            // of times in the old layout without a year (MM/DD); 0 refuses them
}

// Reader reads a job event log. It is not safe for concurrent use.
type Reader struct {
	r      *bufio.Reader
	opts   ReaderOptions
	line   int    // number of the last line read
	held   string // a header line read too early, because a record before it was torn
	isHeld bool
}

// NewReader returns a Reader of the log in r.
func NewReader(r io.Reader, opts ReaderOptions) *Reader {
	if opts.Location == nil {
		opts.Location = time.UTC
	}
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), opts: opts}
}

// Next returns the next record. The error is io.EOF after the last one, a
// *BadRecord for one that was skipped (Next may be called again), or what
// reading failed with. A log whose last record has no end mark gives a
// BadRecord that wraps io.ErrUnexpectedEOF.
func (r *Reader) Next() (Record, error) {
	var lines []string
	first, size := 0, 0
	for {
		line, err := r.readLine()
		if err != nil {
			if err != io.EOF {
				return Record{}, err
			}
			if len(lines) == 0 {
				return Record{}, io.EOF
			}
			return Record{}, &BadRecord{Line: r.line, Text: lines[len(lines)-1], Msg: `expected the end mark "..." before the end of the log`, Err: io.ErrUnexpectedEOF}
		}
		if len(lines) == 0 {
			if line == "" || isEndMark(line) {
				continue // left over between records
			}
			first = r.line
		} else if isEndMark(line) {
			return r.parse(lines, first)
		} else if looksLikeHeader(line) {
			// The writer before was stopped in the middle of a record.
			r.held, r.isHeld = line, true
			r.line--
			return Record{}, &BadRecord{Line: r.line + 1, Text: line, Msg: fmt.Sprintf(`expected the end mark "..." of the record of line %d`, first)}
		}
		if size += len(line); size > maxRecord {
			return Record{}, r.skip(first, lines[0])
		}
		lines = append(lines, line)
	}
}

// skip reads to the end of a record that is too long.
func (r *Reader) skip(first int, text string) error {
	for {
		line, err := r.readLine()
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || isEndMark(line) {
			return &BadRecord{Line: first, Text: text, Msg: fmt.Sprintf("expected a record of at most %d bytes", maxRecord)}
		}
	}
}

// readLine returns one line without its end. A line that is too long is cut:
// its rest is read and dropped. The last line needs no line end.
func (r *Reader) readLine() (string, error) {
	r.line++
	if r.isHeld {
		r.isHeld = false
		return r.held, nil
	}
	var b []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if room := maxLine - len(b); room > 0 {
			b = append(b, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (err != io.EOF || len(b) == 0) {
			r.line--
			return "", err
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
}

func isEndMark(line string) bool { return line == endMark }

// looksLikeHeader reports whether line starts like "005 (001.000.000) ". No
// line of an event this package writes does.
func looksLikeHeader(line string) bool {
	if len(line) < 12 || !isDigits(line[:3]) || line[3:5] != " (" {
		return false
	}
	id, _, ok := strings.Cut(line[5:], ") ")
	return ok && len(id) < 40 && strings.Count(id, ".") == 2 && isDigits(strings.ReplaceAll(id, ".", ""))
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Record is one job of a history.
type Record struct {
	Offset int64       // where it begins in its file
	Ad     *classad.Ad // nil with Err
	Banner string      // its last line, without the end of the line
	// Err is why the record cannot be read: it is not whole, too long or no ad.
	// The others are read all the same.
	Err error
}

// mark begins a banner line.
const mark = "*** "

// maxBanner bounds a banner line.
const maxBanner = 64 << 10

// Backwards yields the records of a file that is so many bytes long, the last
// one first. An error of reading ends it. It holds one record at a time, of at
// most 4 MiB.
func Backwards(from io.ReaderAt, size int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		w := window{from: from, step: chunk}
		end := size
		at, err := w.lastMark(end)
		for end > 0 {
			if err != nil {
				yield(Record{}, err)
				return
			}
			if at < 0 {
				yield(Record{Err: errors.New("a record without its last line")}, nil)
				return
			}
			line, err2 := w.lineAt(at, end)
			if err = err2; err != nil {
				yield(Record{}, err)
				return
			}
			after := min(at+int64(len(line))+1, end)
			if after < end {
				if !yield(Record{Offset: after, Err: errors.New("a record without its last line")}, nil) {
					return
				}
			}
			var before, begin int64
			before, err = w.lastMark(at)
			if err == nil && before >= 0 {
				var line []byte
				line, err = w.lineAt(before, at)
				begin = min(before+int64(len(line))+1, at)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			rec := Record{Offset: begin, Banner: string(bytes.TrimRight(line, "\r"))}
			if rec.Ad, rec.Err = w.ad(begin, at); !yield(rec, nil) {
				return
			}
			end, at = begin, before
		}
	}
}

// window is the part of a file that was read last.
type window struct {
	from  io.ReaderAt
	step  int64 // how much is read at once
	start int64
	data  []byte
}

// chunk is how much a reader reads at once.
const chunk = 64 << 10

// load reads [start, end) into the window.
func (w *window) load(start, end int64) error {
	if int64(cap(w.data)) < end-start {
		w.data = make([]byte, end-start)
	}
	w.start, w.data = start, w.data[:end-start]
	n, err := w.from.ReadAt(w.data, start)
	if err != nil && (!errors.Is(err, io.EOF) || n < len(w.data)) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // it became shorter meanwhile
		}
		return err
	}
	return nil
}

// holds reports whether [start, end) is in the window.
func (w *window) holds(start, end int64) bool {
	return start >= w.start && end <= w.start+int64(len(w.data))
}

// last returns where what begins last, wholly before end; -1 if nowhere.
func (w *window) last(what string, end int64) (int64, error) {
	for end > 0 {
		start := max(0, end-w.step)
		if w.holds(max(0, end-1), end) {
			start = w.start
		} else if err := w.load(start, end); err != nil {
			return 0, err
		}
		if i := bytes.LastIndex(w.data[:end-start], []byte(what)); i >= 0 {
			return start + int64(i), nil
		}
		if start == 0 {
			break
		}
		// It may lie across the border.
		end = start + int64(len(what)) - 1
		w.data = w.data[:0]
	}
	return -1, nil
}

// lastMark returns where the last banner that begins before end begins, -1 if
// there is none.
func (w *window) lastMark(end int64) (int64, error) {
	at, err := w.last("\n"+mark, end)
	if err != nil || at >= 0 {
		return at + 1, err
	}
	first := min(int64(len(mark)), end)
	if first < int64(len(mark)) {
		return -1, nil
	}
	if !w.holds(0, first) {
		if err := w.load(0, first); err != nil {
			return 0, err
		}
	}
	if string(w.data[:first]) == mark {
		return 0, nil
	}
	return -1, nil
}

// lineAt returns the line that begins at, up to end, without its end. A longer
// one than any banner is cut.
func (w *window) lineAt(at, end int64) ([]byte, error) {
	line := make([]byte, min(end-at, maxBanner))
	if w.holds(at, at+int64(len(line))) {
		copy(line, w.data[at-w.start:])
	} else if n, err := w.from.ReadAt(line, at); err != nil && n < len(line) {
		return nil, fmt.Errorf("the file became shorter: %w", err)
	}
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return line, nil
}

// ad reads the ad in [begin, end).
func (w *window) ad(begin, end int64) (*classad.Ad, error) {
	if end-begin > maxRecord {
		return nil, fmt.Errorf("a record of %d bytes is longer than %d", end-begin, maxRecord)
	}
	text := make([]byte, end-begin)
	if w.holds(begin, end) {
		copy(text, w.data[begin-w.start:])
	} else if n, err := w.from.ReadAt(text, begin); err != nil && n < len(text) {
		return nil, err
	}
	return classad.ParseAd(string(text), classad.Old)
}

// Query says which records are wanted.
type Query struct {
	// Limit ends the search after so many records that match, 0: never.
	Limit int
	// Scan ends the search after so many records that can be read, 0: never.
	Scan int
	// Since ends the search at the first ad of which it is true, which is not found
	// itself; nil: never.
	Since *classad.Expr
	// Constraint must be true of the ad, nil for every one.
	Constraint *classad.Expr
	Env        classad.Env // for Since and Constraint; My is the ad
}

// Search passes the records that match to found, the newest first, until it
// returns false, ctx ends or the budget of Env is spent. Records that cannot be
// read are passed to bad, with the file.
func (q *Query) Search(ctx context.Context, files []string, found func(Record) bool, bad func(path string, offset int64, err error)) error {
	left := remaining{found: q.Limit, scanned: q.Scan}
	for _, path := range files {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // rotated meanwhile
		}
		if err != nil {
			return errs.E("history.Search", errs.Denied, path, err)
		}
		more, err := q.searchFile(ctx, f, &left, found, func(offset int64, err error) { bad(path, offset, err) })
		err = errors.Join(err, f.Close())
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case q.spent():
			return errs.E("history.Search", errs.Exhausted, path, errors.New("the constraint took all the steps it was given"))
		case err != nil:
			return errs.E("history.Search", errs.Broken, path, err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// remaining is how many records are still to be found and to be read, never 0 at
// first if there is no end.
type remaining struct{ found, scanned int }

func (q *Query) searchFile(ctx context.Context, f *os.File, left *remaining, found func(Record) bool, bad func(int64, error)) (more bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("not a file")
	}
	for rec, err := range Backwards(f, info.Size()) {
		switch {
		case err != nil:
			return false, err
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case rec.Err != nil:
			bad(rec.Offset, rec.Err)
			continue
		}
		ends := q.Since != nil && q.holds(q.Since, rec.Ad)
		wanted := !ends && (q.Constraint == nil || q.holds(q.Constraint, rec.Ad))
		if ends || q.spent() {
			return false, nil
		}
		if wanted {
			if !found(rec) {
				return false, nil
			}
			left.found--
		}
		if left.scanned--; left.scanned == 0 || wanted && left.found == 0 {
			return false, nil
		}
	}
	return true, nil
}

// spent reports whether the constraint has used up its budget.
func (q *Query) spent() bool { return q.Env.Budget != nil && q.Env.Budget.Spent() }

// holds reports whether an expression is true of an ad.
func (q *Query) holds(x *classad.Expr, ad *classad.Ad) bool {
	env := q.Env
	env.My = ad
	ok, is := x.Eval(&env).AsBool()
	return is && ok
}

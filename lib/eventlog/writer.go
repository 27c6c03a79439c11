// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/execpoint/execpoint/lib/errs"
)

// Writer appends records to a log, each with one write, so that whoever reads
// the file meanwhile sees whole records. It may be used from several
// goroutines.
type Writer struct {
	mu   sync.Mutex
	w    io.Writer
	file *os.File // nil when made by NewWriter
	buf  []byte
}

// NewWriter returns a Writer on w, which it never closes.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Open opens the log at path for appending and creates it with mode 0644. A
// log whose last record was never finished gets its end mark first, so that
// what follows can be read.
func Open(path string) (*Writer, error) {
	const op = "eventlog.Open"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, errs.E(op, kindOf(err), path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeDevice == 0 {
		err = fmt.Errorf("a job event log must be a file, not %s", info.Mode().Type())
	}
	if err == nil && info.Mode().IsRegular() {
		err = endLastRecord(f, info.Size())
	}
	if err != nil {
		return nil, errs.E(op, errs.Invalid, path, errors.Join(err, f.Close()))
	}
	return &Writer{w: f, file: f}, nil
}

func kindOf(err error) errs.Kind {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errs.NotFound
	case errors.Is(err, os.ErrPermission):
		return errs.Denied
	}
	return errs.Invalid
}

func endLastRecord(f *os.File, size int64) error {
	tail := make([]byte, min(size, int64(len(endMark)+2)))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	if s := string(tail); s == "" || s == endMark+"\n" || s == "\n"+endMark+"\n" {
		return nil
	}
	_, err := f.WriteString("\n" + endMark + "\n")
	return err
}

// Write appends one record. After an error the log has either the whole record
// or nothing of it, as far as the file allows to take a part back.
func (w *Writer) Write(h Header, ev Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = Append(w.buf[:0], h, ev)
	n, err := w.w.Write(w.buf)
	if err == nil {
		return nil
	}
	const op = "eventlog.Write"
	if n > 0 && w.file != nil {
		err = errors.Join(err, w.takeBack(int64(n)))
	}
	if w.file != nil {
		return errs.E(op, kindOf(err), w.file.Name(), err)
	}
	return errs.E(op, errs.Other, ev.Code().String(), err)
}

// takeBack cuts off the part of a record that a failed write has left, as when
// the disk is full.
func (w *Writer) takeBack(n int64) error {
	info, err := w.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return w.file.Truncate(info.Size() - n)
}

// Sync makes what was written durable. A Writer without a file has nothing to
// do.
func (w *Writer) Sync() error {
	if w.file == nil {
		return nil
	}
	if err := w.file.Sync(); err != nil {
		return errs.E("eventlog.Sync", errs.Transient, w.file.Name(), err)
	}
	return nil
}

// Close closes the file. The Writer must not be used afterwards.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}

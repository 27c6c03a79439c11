// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// mostRecords is how large HTCondor lets FILE_TRANSFER_STATS_LOG become, in bytes,
// before it is put aside as .old.
const mostRecords = 5_000_000

// openRecords opens the file of FILE_TRANSFER_STATS_LOG. as calls a function with
// the rights of whoever owns the directory: HTCondor's daemons write the same file.
func openRecords(path string, as func(func() error) error) (io.Writer, error) {
	r := records{as: as}
	err := as(func() (err error) {
		r.to, err = observe.OpenLog(path, observe.LogLimit{Bytes: mostRecords}, 1, time.Now)
		return err
	})
	return r, err
}

// records is a file that is written, and put aside, with other rights.
type records struct {
	to io.Writer
	as func(func() error) error
}

// Write implements io.Writer.
func (r records) Write(record []byte) (n int, err error) {
	err = r.as(func() (err error) {
		n, err = r.to.Write(record)
		return err
	})
	return n, err
}

// openLog opens a starter's log for the rest of the process's life, and tells
// when another process wrote there last.
func openLog(p protocol.LogPlan) (log *slog.Logger, touched time.Time, err error) {
	open := systemLog
	if !p.Syslog {
		open = func() (io.Writer, error) {
			f, err := observe.OpenLog(p.Path, observe.LogLimit{Bytes: p.MaxBytes, Age: p.MaxAge}, p.Keep, time.Now)
			if err != nil {
				return nil, err
			}
			touched = f.Touched()
			return f, nil
		}
	}
	to, err := open()
	if err != nil {
		return nil, touched, err
	}
	debug, _ := observe.ParseDebug(p.Debug...) // the daemon has complained of unknown words
	debug.TimeFormat = p.TimeFormat
	debug.Timestamp, debug.Bare = debug.Timestamp || p.Stamps, p.Syslog
	return slog.New(observe.NewDebugHandler(to, debug, os.Getpid())), touched, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"log/slog"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Files are moved by a thread that has the rights of the job's user alone. What
// the machine's owner keeps of it, the log and FILE_TRANSFER_STATS_LOG, is written
// beside: with the rights of the starter, or of whom the starter takes instead.

// beside calls f with the rights of the starter, and waits for its end.
func beside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// ownHandler is a log that is written beside.
type ownHandler struct{ slog.Handler }

func (h ownHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	beside(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

func (h ownHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ownHandler{h.Handler.WithAttrs(attrs)}
}

func (h ownHandler) WithGroup(name string) slog.Handler {
	return ownHandler{h.Handler.WithGroup(name)}
}

// ownLog is the starter's log for those who have the rights of the job's user.
func (s *shadowJob) ownLog() *slog.Logger { return slog.New(ownHandler{s.log.Handler()}) }

// records writes FILE_TRANSFER_STATS_LOG: a record of each file of the input and
// of each result of a plugin. nil where the owner wants none.
func (s *shadowJob) records() func(*classad.Ad) {
	a := s.a
	path := s.set.Records
	if path == "" || a.host.OpenRecords == nil {
		return nil
	}
	return func(file *classad.Ad) {
		record := transfer.Record(a.job.ad, file)
		if record == nil {
			s.log.Debug("a record of a transfer is too large for FILE_TRANSFER_STATS_LOG and left out", "path", path)
			return
		}
		beside(func() {
			err := s.recordsErr
			if s.recordsTo == nil && err == nil {
				s.recordsTo, err = a.host.OpenRecords(path)
			}
			if err == nil {
				_, err = s.recordsTo.Write(record)
			}
			if err != nil && s.recordsErr == nil {
				s.recordsErr = err
				s.log.Warn("FILE_TRANSFER_STATS_LOG cannot be written; this job's transfers are not in it", "path", path, "err", err)
			}
		})
	}
}

// outside opens what the job's list of output names by absolute paths outside of
// its directory, with the rights of its user. nil where the owner forbids it
// (ALLOW_OUTPUT_OUTSIDE_SCRATCH).
func (s *shadowJob) outside() transfer.Outside {
	a := s.a
	if a.host.Outside == nil || !s.set.Outside {
		return nil
	}
	return func(path string) (*os.File, error) { return a.host.Outside(a.plan.RunAs, path) }
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"io"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Files are moved by a thread that has the rights of the job's user alone. What
// the machine's owner keeps of it, the log and FILE_TRANSFER_STATS_LOG, is written
// beside: with the rights of the starter, or of whom the starter takes instead.

// records is FILE_TRANSFER_STATS_LOG: to is nil until something was written to it,
// and err is why no more is.
type records struct {
	to  io.Writer
	err error
}

// recorder writes FILE_TRANSFER_STATS_LOG: a record of each file of the input and
// of each result of a plugin. nil where the owner wants none.
func (m *mover) recorder() func(*classad.Ad) {
	path := m.cfg.Plan.Settings.Pool.Records
	if path == "" || m.cfg.OpenRecords == nil {
		return nil
	}
	return func(file *classad.Ad) {
		record := transfer.Record(m.place.Job.Ad, file)
		if record == nil {
			m.conv.log.Debug("a record of a transfer is too large for FILE_TRANSFER_STATS_LOG and left out", "path", path)
			return
		}
		job.Apart(func() {
			err := m.records.err
			if m.records.to == nil && err == nil {
				m.records.to, err = m.cfg.OpenRecords(path)
			}
			if err == nil {
				_, err = m.records.to.Write(record)
			}
			if err != nil && m.records.err == nil {
				m.records.err = err
				m.conv.log.Warn("FILE_TRANSFER_STATS_LOG cannot be written; this job's transfers are not in it", "path", path, "err", err)
			}
		})
	}
}

// outside opens what the job's list of output names by absolute paths outside of
// its directory, with the rights of its user. nil where the owner forbids it
// (ALLOW_OUTPUT_OUTSIDE_SCRATCH).
func (m *mover) outside() transfer.Outside {
	if m.cfg.Outside == nil || !m.cfg.Plan.Settings.Pool.Outside {
		return nil
	}
	return func(path string) (*os.File, error) { return m.cfg.Outside(m.place.User, path) }
}

// owner gives the job's user what plugins with the starter's own rights make in
// the scratch directory; nil if there are none, for all else is made by that user.
func (m *mover) owner() func(root *os.Root, name string, dir bool) error {
	u := m.place.User
	if u == nil || !m.cfg.Plan.Settings.Pool.Plugins.WithRoot {
		return nil
	}
	return func(root *os.Root, name string, _ bool) error {
		var err error
		job.Apart(func() { err = m.cfg.Accounts.Access.Give(u, root, name) })
		return err
	}
}

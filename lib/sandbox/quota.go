// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// quota is what the file system counts of the scratch directory.
type quota struct {
	counter host.Counter // nil where it does not
	err     error        // why, where that is not how the machine is
}

// count has the scratch directory counted, which is empty and still the starter's. A
// job runs without that, too.
func (s *Sandbox) count(parent *os.Root, by host.Quotas) {
	if by == nil {
		return
	}
	dir, err := parent.Open(scratchDir)
	if err == nil {
		if s.quota.counter, err = by.Count(dir); err != nil {
			dir.Close()
			s.quota.counter = nil
		}
	}
	if err != nil && !errs.Is(err, errs.Unsupported) {
		s.quota.err = err
	}
}

// CountedBy says for a log by what the file system counts the scratch directory, empty
// where it does not. An error is one of a file system that should.
func (s *Sandbox) CountedBy() (string, error) {
	if s.quota.counter == nil {
		return "", s.quota.err
	}
	return s.quota.counter.Name(), nil
}

// Counted is what the file system counts of the scratch directory now, in blocks and
// files of all kinds; false where it does not. The job's user can falsify it: see
// host.Counter.
func (s *Sandbox) Counted() (Usage, bool) {
	if s.quota.counter == nil {
		return Usage{}, false
	}
	f, err := s.quota.counter.Used()
	return Usage{KiB: (f.UsedBytes + 1023) / 1024, Files: f.Files}, err == nil
}

func (q *quota) close() {
	if q.counter != nil {
		q.counter.Close()
	}
	*q = quota{}
}

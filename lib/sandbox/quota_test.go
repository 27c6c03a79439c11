// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// quotas counts what it is told.
type quotas struct {
	fails  error
	fill   host.Fill
	dir    *os.File
	closed bool
}

func (q *quotas) Count(dir *os.File) (host.Counter, error) {
	names, err := dir.Readdirnames(-1)
	if q.dir = dir; q.fails != nil || err != nil || len(names) > 0 {
		return nil, errors.Join(q.fails, err)
	}
	return q, nil
}
func (q *quotas) Name() string             { return "a fake" }
func (q *quotas) Used() (host.Fill, error) { return q.fill, q.fails }
func (q *quotas) Close() error             { q.closed = true; return q.dir.Close() }

// The file system counts the scratch directory, which is new and empty. The count is
// told as it is, and is the figure where a walk does not see everything.
func TestCounted(t *testing.T) {
	t.Parallel()
	q := &quotas{fill: host.Fill{UsedBytes: 5000, Files: 7}}
	spec := Spec{Execute: t.TempDir(), Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o700, Quotas: q}
	s, err := Create(spec)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := s.CountedBy(); name != "a fake" || err != nil || filepath.Base(q.dir.Name()) != "scratch" {
		t.Errorf("%q, %v, %s", name, err, q.dir.Name())
	}
	if u, ok := s.Counted(); !ok || u != (Usage{KiB: 5, Files: 7}) {
		t.Errorf("%+v, %v", u, ok)
	}
	if u := s.Usage(); u != (Usage{}) {
		t.Errorf("a walk sees %+v", u)
	}
	at := s.Scratch()
	for range maxDeep + 2 {
		at = filepath.Join(at, "d")
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u != (Usage{KiB: 5, Files: 7, Cut: true}) {
		t.Errorf("where a walk ends: %+v", u)
	}
	q.fails = errors.New("no")
	if u, ok := s.Counted(); ok || s.Usage() != (Usage{Cut: true}) {
		t.Errorf("nothing is counted: %+v", u)
	}
	if err := s.Remove(); err != nil || !q.closed {
		t.Errorf("%v, closed: %v", err, q.closed)
	}
}

// A job runs where nothing is counted. That is told of a file system which should.
func TestNotCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		by   host.Quotas
		told bool
	}{
		{nil, false},
		{&quotas{fails: errs.E("count", errs.Unsupported, "", errors.New("it does not"))}, false},
		{&quotas{fails: errs.E("count", errs.Broken, "", errors.New("it fails"))}, true},
	} {
		s, err := Create(Spec{Execute: t.TempDir(), Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o700, Quotas: tt.by})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Counted(); ok {
			t.Error("something is counted")
		}
		if name, err := s.CountedBy(); name != "" || (err != nil) != tt.told {
			t.Errorf("%q, %v", name, err)
		}
		if q, ok := tt.by.(*quotas); ok && q.dir.Close() == nil {
			t.Error("the directory was left open")
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	q := &quotas{}
	s, err := Create(Spec{Execute: t.TempDir(), Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o700, Quotas: q, Volume: &host.Volume{}, Mounter: &mounter{}})
	if err != nil || q.dir != nil {
		t.Errorf("with a file system of its own: %v, %v", q.dir, err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// lockset is a host.Locker in memory.
type lockset struct {
	until   map[string]time.Time // held by another one until then
	bad     map[string]error
	touched int
	closed  []string
}

type oneLock struct {
	s    *lockset
	path string
}

func (l oneLock) Touch() error { l.s.touched++; return nil }
func (l oneLock) Close() error { l.s.closed = append(l.s.closed, l.path); return nil }

func (s *lockset) lock(path string, _ host.Share, _ host.Holder) (host.Lock, error) {
	if err := s.bad[path]; err != nil {
		return nil, err
	}
	if time.Now().Before(s.until[path]) {
		return nil, errs.E("lockset", errs.Conflict, path, &host.HeldError{By: host.Holder{
			Program: "condor_startd", Name: "first", Machine: "m", Proc: host.ProcID{PID: 7, Start: 70}, Since: time.Unix(0, 0),
		}})
	}
	return oneLock{s, path}, nil
}

func TestOccupy(t *testing.T) {
	t.Parallel()
	places := []Place{ExecutePlace("EXECUTE", "/x"), LogPlace("STARTD_LOG", "/log/StartLog"), NamePlace("STARTD_NAME", "a/b@c", "/lock")}
	const execute, log, name = "/x/.execpoint.lock", "/log/.StartLog.lock", "/lock/.startd_a%2Fb@c.lock"
	for _, tt := range []struct {
		name   string
		busy   map[string]time.Duration
		bad    map[string]error
		want   []string // of the error, nil for none
		said   string
		closed int // of the locks, before they are released
	}{
		{"free", nil, nil, nil, "", 0},
		{"ends in time", map[string]time.Duration{execute: 3 * time.Second}, nil, nil, "waiting for who uses it now", 0},
		{"stays", map[string]time.Duration{log: time.Hour}, nil,
			[]string{"STARTD_LOG", "/log/StartLog", `condor_startd "first"`, "7@70"}, "waiting", 1},
		{"no locks there", nil, map[string]error{execute: errs.E("x", errs.Unsupported, execute, errors.New("no locks"))}, nil, "cannot be locked", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			s := &lockset{until: map[string]time.Time{}, bad: tt.bad}
			for path, d := range tt.busy {
				s.until[path] = time.Now().Add(d)
			}
			began := time.Now()
			got, err := Occupy(t.Context(), Occupation{Lock: s.lock, Patience: OccupyPatience, Log: slog.New(slog.NewTextHandler(&said, nil))}, places...)
			if took := time.Since(began); took > OccupyPatience {
				t.Errorf("%s: it took %v", tt.name, took)
			}
			if len(s.closed) != tt.closed || !strings.Contains(said.String(), tt.said) || (err == nil) != (tt.want == nil) {
				t.Errorf("%s: %v, closed %v, said %q", tt.name, err, s.closed, said.String())
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v does not say %q", tt.name, err, w)
				}
			}
			if err != nil {
				return
			}
			ctx, cancel := context.WithCancel(t.Context())
			go got.Keep(ctx)
			time.Sleep(time.Hour)
			cancel()
			synctest.Wait()
			locks := len(places) - len(tt.bad)
			// condor_preen removes what is older than half an hour.
			if s.touched < 3*locks {
				t.Errorf("%s: touched %d times in an hour", tt.name, s.touched)
			}
			if err := got.Release(); err != nil || len(s.closed) != locks {
				t.Errorf("%s: %v, %v", tt.name, err, s.closed)
			}
		})
	}
	if got, err := Occupy(t.Context(), Occupation{}, places...); err != nil || got.Release() != nil {
		t.Errorf("without locks: %v", err)
	}
	if f := NamePlace("", strings.Repeat("n", 500), "/lock").File; len(f) > 255 {
		t.Errorf("a file name of %d bytes", len(f))
	}
	for i, want := range []string{execute, log, name} {
		if places[i].File != want {
			t.Errorf("%s, want %s", places[i].File, want)
		}
	}
}

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

// A record that is written again and again, with many processes in it, stays one
// that a sweep reads.
func TestRecordStaysReadable(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	starter := host.ProcID{PID: 4712, Start: 9}
	s := create(t, execute, starter)
	var strays []host.ProcID
	for i := range mostStrays + 10 {
		strays = append(strays, host.ProcID{PID: 1<<22 - i, Start: 1 << 60})
	}
	for i := range 20 {
		if err := s.Record(Record{Boot: "now", Starter: starter, Strays: strays[:len(strays)-i]}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(s.Dir(), ownDir, recordFile))
		if err != nil || info.Size() > maxRecord {
			t.Fatalf("the record has %d bytes (%v)", info.Size(), err)
		}
	}
	c := &census{boot: "now"}
	if swept, err := (Sweeper{Census: c}).Sweep(execute); err != nil || len(swept.Removed) != 1 || len(c.killed) != 1 || len(c.killed[0].Strays) != mostStrays-9 {
		t.Errorf("%+v, %v; %d families killed", swept, err, len(c.killed))
	}
}

// What a starter leaves for a later startd is read from a sandbox that nobody else could
// have made, and no more than there may be of it.
func TestLeft(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	s, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: 77, Start: 5}, Mode: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(s.Dir(), nil); !errs.Is(err, errs.NotFound) {
		t.Errorf("without a record: %v", err)
	}
	if err := s.Record(Record{Activation: "a", Starter: host.ProcID{PID: 77, Start: 5}}); err != nil {
		t.Fatal(err)
	}
	read := func(want string) {
		t.Helper()
		left, err := Open(s.Dir(), func(*os.Root) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer left.Own.Close()
		if left.Record.Activation != "a" || string(left.Unheard) != want {
			t.Errorf("%+v, %q; want %q", left.Record, left.Unheard, want)
		}
	}
	read("")
	if err := s.RemoveJob(); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteUnheard([]byte("lines\n")); err != nil {
		t.Fatal(err)
	}
	read("lines\n")
	if entries, err := os.ReadDir(s.Dir()); err != nil || len(entries) != 1 || entries[0].Name() != "htcondor" {
		t.Errorf("the sandbox holds %v, %v", entries, err)
	}
	own, err := s.OpenOwn()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if names, err := own.Readdirnames(-1); err != nil || len(names) != 2 {
		t.Errorf("the starter's own directory holds %v, %v", names, err)
	}
	if err := s.WriteUnheard(make([]byte, maxUnheard+1)); !errs.Is(err, errs.Invalid) {
		t.Errorf("too much: %v", err)
	}
	if err := os.Truncate(filepath.Join(s.Dir(), "htcondor", unheardFile), maxUnheard+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Dir(), nil); err == nil {
		t.Error("too much was read")
	}
	if _, err := Open(s.Dir(), func(*os.Root) error { return errors.New("of another") }); !errs.Is(err, errs.Denied) {
		t.Errorf("of another user: %v", err)
	}
	if _, err := Open(filepath.Join(execute, "dir_78"), nil); !errs.Is(err, errs.NotFound) {
		t.Errorf("none: %v", err)
	}
}

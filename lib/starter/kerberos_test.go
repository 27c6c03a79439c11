// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// private reads the files of this test.
type private struct{}

func (private) ReadPrivate(path string, _ int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode() != 0o600 {
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// tickets is the directory of a credential monitor.
type tickets struct {
	t   *testing.T
	dir string
}

func newTickets(t *testing.T) *tickets {
	k := &tickets{t, t.TempDir()}
	k.write("pid", "4711\n")
	return k
}

// write makes a file of the directory, whole at once.
func (k *tickets) write(name, text string) {
	k.t.Helper()
	next := filepath.Join(k.dir, name+".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		k.t.Error(err)
	}
	if err := os.Rename(next, filepath.Join(k.dir, name)); err != nil {
		k.t.Error(err)
	}
}

// monitor makes a cache of what was stored.
func (k *tickets) monitor(pid int) error {
	if pid != 4711 {
		return errors.New("no such process")
	}
	path := filepath.Join(k.dir, "alice.cred")
	text, err := os.ReadFile(path)
	if info, serr := os.Stat(path); err == nil && (serr != nil || info.Mode() != 0o600) {
		k.t.Errorf("what was stored has mode %v", info.Mode())
	}
	if err == nil {
		k.write("alice.cc", "tickets "+string(text))
	}
	return err
}

// pool starts a job of alice's that wants tickets.
func (k *tickets) pool(program hosttest.Program, knobs string) *pool {
	return startPool(k.t, "SendCredential = true\n", program, func(h *Host) {
		h.System = func() authn.System { return authn.System{User: "alice", Files: private{}} }
		h.Wake = k.monitor
	}, func(_ *pool, plan *protocol.Plan) {
		plan.Settings = configured(k.t, "SEC_CREDENTIAL_DIRECTORY_KRB = "+k.dir+"\nCREDD_POLLING_TIMEOUT = 1\n"+knobs)
	})
}

// A job finds tickets that the credential monitor of the machine has made of what its
// access point has, for its own eyes. They do not come back, and no part of a file is
// left with the monitor.
func TestKerberos(t *testing.T) {
	t.Parallel()
	k := newTickets(t)
	k.write("alice.mark", "")
	var got, at string
	var mode os.FileMode
	p := k.pool(func(p *hosttest.Process) host.ExitStatus {
		at = variable(p, "KRB5CCNAME")
		path := strings.TrimPrefix(at, "FILE:")
		text, _ := os.ReadFile(path)
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode()
		}
		got = string(text)
		if at = strings.TrimPrefix(path, p.Spec().Dir); os.WriteFile(path, []byte("changed"), 0o600) != nil {
			return host.ExitStatus{Exited: true, Code: 1}
		}
		return host.ExitStatus{Exited: true}
	}, "")
	p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
		t.Fatalf("%+v of %v", end, p.calls())
	}
	if got != "tickets of alice" || mode != 0o600 || at != "/alice.cc" {
		t.Errorf("the job has %q with mode %v at %s", got, mode, at)
	}
	if _, err := os.Stat(filepath.Join(p.submit, "alice.cc")); err == nil {
		t.Error("the tickets came back")
	}
	var names []string
	entries, err := os.ReadDir(k.dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"alice.cc", "alice.cred", "pid"}) {
		t.Errorf("the directory holds %v, %v", names, err)
	}
}

// Tickets that are there are taken as they are, unless the owner wants younger ones;
// and what the monitor makes later reaches a job that runs.
func TestKerberosFresh(t *testing.T) {
	t.Parallel()
	for knobs, want := range map[string]string{
		"": "old", "SEC_CREDENTIAL_REFRESH_INTERVAL = 7200\n": "old",
		"SEC_CREDENTIAL_REFRESH_INTERVAL = 60\n": "tickets of alice", "SEC_CREDENTIAL_REFRESH_INTERVAL = 0\n": "tickets of alice",
	} {
		k := newTickets(t)
		k.write("alice.cc", "old")
		hour := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(k.dir, "alice.cc"), hour, hour); err != nil {
			t.Fatal(err)
		}
		first, later := "", ""
		p := k.pool(func(p *hosttest.Process) host.ExitStatus {
			path := strings.TrimPrefix(variable(p, "KRB5CCNAME"), "FILE:")
			text, _ := os.ReadFile(path)
			first = string(text)
			k.write("alice.cc", "renewed")
			for later = first; later == first && t.Context().Err() == nil; {
				runtime.Gosched()
				text, _ := os.ReadFile(path)
				later = string(text)
			}
			return host.ExitStatus{Exited: true}
		}, "SEC_CREDENTIAL_REFRESH = 1\n"+knobs)
		p.last()
		<-p.ended
		if first != want || later != "renewed" {
			t.Errorf("%q: the job has %q, then %q", knobs, first, later)
		}
	}
}

// A job without tickets is not run.
func TestKerberosRefused(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(k *tickets, h *Host){
		"made no tickets": func(_ *tickets, h *Host) { h.Wake = func(int) error { return nil } },
		"no credential of this": func(_ *tickets, h *Host) {
			h.System = func() authn.System { return authn.System{User: "bob", Files: private{}} }
		},
		"permission denied": func(k *tickets, _ *Host) {
			k.write("alice.cc", "x")
			if err := os.Chmod(filepath.Join(k.dir, "alice.cc"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"cannot be that of a file": func(_ *tickets, h *Host) {
			h.System = func() authn.System { return authn.System{User: "../alice", Files: private{}} }
		},
	} {
		k := newTickets(t)
		p := startPool(t, "SendCredential = true\n", untilKilled, func(h *Host) {
			h.System = func() authn.System { return authn.System{User: "alice", Files: private{}} }
			h.Wake = k.monitor
			prepare(k, h)
		}, func(_ *pool, plan *protocol.Plan) {
			plan.Settings = configured(t, "SEC_CREDENTIAL_DIRECTORY_KRB = "+k.dir+"\nCREDD_POLLING_TIMEOUT = 1\n")
		})
		rec := p.last()
		if end := <-p.ended; end.Held == nil || !strings.Contains(rec.Reason, what) || slices.Contains(p.calls(), "begin_execution") {
			t.Errorf("%s: %+v, %q", what, end, rec.Reason)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
)

// serve is an Execution Point that answers with its process id, or with a refusal.
func serve(t *testing.T, pid int) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "here") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		observe.Serve(l, nil, func(observe.Request) observe.Response { // until l is closed
			if pid == 0 {
				return observe.Response{Err: "not you"}
			}
			return observe.Response{Status: &observe.Status{PID: pid}}
		}, nil)
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return socket
}

// TestOne: what changes something is told to the one that is meant, or to none.
func TestOne(t *testing.T) {
	t.Parallel()
	one, two, refuses, gone := serve(t, 11), serve(t, 22), serve(t, 0), filepath.Join(t.TempDir(), "gone")
	for _, tt := range []struct {
		name string
		f    Found
		pid  int
		want string
		err  string
	}{
		{"the only one is not asked", Found{Sockets: []string{gone}}, 0, gone, ""},
		{"by its process", Found{Sockets: []string{one, two}}, 22, two, ""},
		{"the only one that answers", Found{Sockets: []string{gone, one, refuses}}, 0, one, ""},
		{"the one of the configuration", Found{Sockets: []string{one, two}, named: []string{two}}, 0, two, ""},
		{"several", Found{Sockets: []string{one, two}}, 0, "", "several Execution Points of this user run here; -pid or CONDOR_CONFIG says which: [11 22]"},
		{"another process", Found{Sockets: []string{one, two}}, 33, "", "no Execution Point of this user has pid 33; there are [11 22]"},
		{"the only one, by another process", Found{Sockets: []string{one}}, 33, "", "no Execution Point of this user has pid 33; there are [11]"},
		{"none", Found{}, 0, "", ErrNone.Error()},
		{"none that answers", Found{Sockets: []string{gone, gone}}, 0, "", ErrNone.Error()},
	} {
		got, err := tt.f.One(t.Context(), tt.pid)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	all := Found{Sockets: []string{gone, one, refuses}}.Ask(t.Context(), observe.Request{Op: observe.OpStatus})
	if len(all) != 2 || all[0].Socket != one || all[0].Said.Status.PID != 11 || all[1].Err == nil || all[1].Err.Error() != "not you" {
		t.Errorf("%+v", all)
	}
}

// TestFind: what runs can be asked, what has ended is told of, and each once.
func TestFind(t *testing.T) {
	t.Parallel()
	alive, dead := host.ProcID{PID: 1, Start: 1}, host.ProcID{PID: 2, Start: 1}
	dirs := []run.Dir{{Number: 1, Path: "/b/1"}, {Number: 2, Path: "/b/2"}, {Number: 3, Path: "/b/3"}}
	dir, err := os.MkdirTemp("", "here") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	snap, err := config.Parse("c", "RUN = "+dir+"\nSTARTD_LOG = /var/log/c\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		path, err := run.ControlPath(snap, name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	control := run.ControlSockets(snap)
	if of := Of(snap); len(control) != 2 || strings.Join(of.Sockets, " ") != strings.Join(control, " ") || len(of.ended) != 1 || of.ended[0].Log != "/var/log/c" {
		t.Fatalf("%q, %+v", control, of)
	}
	m := Machine{
		Runs: func() ([]run.Dir, []run.Owner, error) { return dirs, []run.Owner{{Proc: alive}, {Proc: dead}, {}}, nil },
		Daemons: func() ([]run.Daemon, error) {
			return []run.Daemon{{Proc: alive, Socket: control[0]}, {Proc: dead, Socket: "/d/2", Log: "/l/2"}}, nil
		},
		Alive:  func(p host.ProcID) bool { return p == alive },
		Config: func() *config.Snapshot { return snap },
	}
	want := append([]string{dirs[0].Socket()}, control...)
	f, err := m.Find()
	if err != nil || strings.Join(f.Sockets, " ") != strings.Join(want, " ") || len(f.ended) != 1 || f.ended[0].Log != "/l/2" || f.named != nil {
		t.Errorf("%+v, %v, want %q", f, err, want)
	}
	m.Named = true
	if f, err = m.Find(); err != nil || strings.Join(f.named, " ") != strings.Join(control, " ") {
		t.Errorf("%+v, %v", f, err)
	}
	m.Daemons = func() ([]run.Daemon, error) { return nil, errs.E("x", errs.Denied, "", errors.New("no")) }
	if _, err := m.Find(); !errs.Is(err, errs.Denied) {
		t.Errorf("got %v", err)
	}
}

// TestHistories: every place where ended jobs are kept, each once.
func TestHistories(t *testing.T) {
	t.Parallel()
	parse := func(text string) *config.Snapshot {
		snap, err := config.Parse("c", text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	dirs := []run.Dir{{Files: "/f1"}, {}}
	for text, want := range map[string]string{
		"STARTD_HISTORY = /h/3\n": dirs[0].Log() + "/startd_history /h/2 /h/3",
		"STARTD_HISTORY = /h/2\n": dirs[0].Log() + "/startd_history /h/2",
		"STARTD_HISTORY =\n":      dirs[0].Log() + "/startd_history /h/2",
	} {
		m := Machine{
			Runs:    func() ([]run.Dir, []run.Owner, error) { return dirs, nil, nil },
			Daemons: func() ([]run.Daemon, error) { return []run.Daemon{{History: "/h/2"}, {}}, nil },
			Config:  func() *config.Snapshot { return parse(text) },
		}
		if got, err := m.Histories(); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", text, got, err, want)
		}
	}
	if got, err := HistoryOf(parse("STARTD_HISTORY = /h/2\n")); got != "/h/2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := HistoryOf(parse("STARTD_HISTORY =\n")); err == nil || !strings.Contains(err.Error(), "no history is kept") {
		t.Errorf("got %v", err)
	}
}

// TestNothing tells the last line of the log, whatever it holds.
func TestNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                                  "",
		"first\nlast\n\n":                   "last",
		"first\na\x1b[2Jb\u009b31mc\x9b\n":  `a\x1b[2Jb\u009b31mc\x9b`,
		strings.Repeat("x", 3*mostLastLine): strings.Repeat("x", mostLastLine),
		strings.Repeat("x\n", mostLastLine): "x",
		"a\tb\r\n":                          `a\tb`,
	} {
		path := filepath.Join(dir, "log")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		Found{ended: []run.Daemon{{Log: path}, {Log: filepath.Join(dir, "none")}, {Log: dir}}}.Nothing(&b)
		said := ErrNone.Error() + "\n"
		if want != "" {
			said += "the log of one that ended, " + path + ", ends with:\n  " + want + "\n"
		}
		if b.String() != said {
			t.Errorf("%.40q: %q, want %q", text, &b, said)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
)

// An end waits for nothing that hangs: not for a test of a directory, not for a
// command of the configuration, and only a moment for the history.
func TestEndWaitsForNothingThatHangs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		hangs func(l *laboratory, until chan struct{})
		most  time.Duration
	}{
		{"a test of EXECUTE", func(l *laboratory, _ chan struct{}) {
			l.faults.tests["/execute"] = &executeTest{done: make(chan error)}
			l.testExecute("/execute")
		}, 0},
		{"a configuration", func(l *laboratory, _ chan struct{}) {
			l.o.Load = func(ctx context.Context) (*config.Snapshot, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return nil, context.Cause(ctx)
			}
			l.reload()
		}, 0},
		{"the history", func(l *laboratory, until chan struct{}) {
			l.write("the history of a job", func() error { <-until; return nil })
		}, recordsPatience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLaboratory(t, "NUM_SLOTS = 1\n", nil)
				until := make(chan struct{})
				tt.hangs(l, until)
				synctest.Wait()
				began := time.Now()
				time.AfterFunc(time.Hour, func() { close(until) })
				l.node.close()
				if took := time.Since(began); took > tt.most {
					t.Errorf("the end took %v", took)
				}
				if lost := strings.Contains(l.log.String(), "may be lost"); lost != (tt.most > 0) {
					t.Errorf("the log: %s", l.log)
				}
				l.node = nil
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// The history has the address of the daemon, and how its starter ended.
func TestHistoryOfAPool(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, address, want string
		ended               *host.ExitStatus
		status              string
	}{
		{"of a pool", "<192.0.2.1:9618?sock=startd>", `"<192.0.2.1:9618?sock=startd>"`, &host.ExitStatus{Exited: true, Code: 2}, "512"},
		{"killed", "<192.0.2.1:9618?sock=startd>", `"<192.0.2.1:9618?sock=startd>"`, &host.ExitStatus{Signal: 9}, "9"},
		{"alone", "", `"<127.0.0.1:0?addrs=127.0.0.1-0&alias=host.example>"`, &host.ExitStatus{Exited: true}, "0"},
		{"never ended", "", `"<127.0.0.1:0?addrs=127.0.0.1-0&alias=host.example>"`, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "history")
			l := newLaboratory(t, "NUM_SLOTS = 1\nSTARTD_HISTORY = "+path+"\n", nil)
			l.member.address = tt.address
			l.starter.live["slot1#1"] = &activation{ended: tt.ended}
			job := classad.NewAd()
			job.SetInt("ClusterId", 7)
			l.keep(l.clock.Now(), ep.ActivationEnded{Activation: "slot1#1", Job: job})
			delete(l.starter.live, "slot1#1")
			l.node.close()
			l.node = nil
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "StartdIpAddr = "+tt.want+"\n") {
				t.Errorf("%v, %s", err, text)
			}
			if has := strings.Contains(string(text), "StarterExitStatus = "+tt.status+"\n"); has != (tt.status != "") {
				t.Errorf("%s", text)
			}
		})
	}
}

// A daemon that logs to the system has no log by which it could be told that it is
// gone: its record stays while its socket is there.
func TestRecordsWithoutALog(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), t.TempDir()
	socket := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := Daemon{Proc: host.ProcID{PID: 11}, Socket: socket("one")}
	two := Daemon{Proc: host.ProcID{PID: 12}, Socket: socket("two")}
	all := func() (pids []int) {
		found, err := Daemons(someones{}, base)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			pids = append(pids, d.Proc.PID)
		}
		return pids
	}
	for _, d := range []Daemon{one, two} {
		if err := d.Record(someones{}, base); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(); len(got) != 2 {
		t.Errorf("%v are recorded, want both", got)
	}
	if err := os.Remove(one.Socket); err != nil {
		t.Fatal(err)
	}
	if err := two.Record(someones{}, base); err != nil {
		t.Fatal(err)
	}
	if got := all(); len(got) != 1 || got[0] != 12 {
		t.Errorf("%v are recorded, want the one that is there", got)
	}
}

// An old log that cannot be closed is told, and is opened again for what follows.
func TestLogThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, string(rune('A'+i/26))+string(rune('A'+i%26))) }
	l := newLogs(func(_ string, f func() error) error { return f() })
	defer l.close()
	write := func(i int) error {
		return l.append(path(i), eventlog.Header{Cluster: 1, Time: time.Unix(1, 0)}, eventlog.Released{Reason: "so"})
	}
	for i := range maxLogs {
		if err := write(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.open[path(0)].Close(); err != nil { // so the next Close fails
		t.Fatal(err)
	}
	if err := write(maxLogs); err == nil {
		t.Error("it is not told")
	}
	for _, i := range []int{0, maxLogs} {
		if err := write(i); err != nil {
			t.Errorf("log %d: %v", i, err)
		}
		if text, _ := os.ReadFile(path(i)); strings.Count(string(text), "...\n") != 2 {
			t.Errorf("log %d has %q", i, text)
		}
	}
}

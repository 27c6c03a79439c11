// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// logged is a Platform whose system's log is kept here.
type logged struct {
	Platform
	err  error
	tag  string
	said bytes.Buffer
	ends int
}

func (p *logged) Syslog(tag string) (io.WriteCloser, error) {
	p.tag = tag
	return p, p.err
}

func (p *logged) Write(b []byte) (int, error) { return p.said.Write(b) }

func (p *logged) Close() error {
	p.ends++
	return nil
}

// LOG_TO_SYSLOG sends the lines of the categories that are shown to the
// system's log, without the header, instead of the file; a reconfig changes it
// either way, as dprintf_config is called again by it. SYSLOG for the file is
// the same.
func TestLogToSyslog(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"LOG_TO_SYSLOG = True\n", "STARTD.LOG_TO_SYSLOG = True\n", "STARTD_LOG = SYSLOG\n"} {
		dir := t.TempDir()
		read := func(text string) *config.Snapshot {
			s, err := config.Parse("c", "LOG = "+dir+"\nALL_DEBUG = D_PID D_CAT\n"+text, config.Options{Subsystem: "STARTD"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		file := filepath.Join(dir, "StartLog")
		p := &logged{}
		l, err := openLogs(read(on), Options{Platform: p, PID: 7})
		if err != nil {
			t.Fatal(err)
		}
		l.log.Info("one", "slot", "slot1")
		l.log.Debug("not shown")
		if got := p.said.String(); got != "slot1: one\n" || p.tag != "condor_startd" {
			t.Errorf("%s: %q of %q", on, got, p.tag)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a file as well: %v", on, err)
		}
		again := func(text string) {
			set, err := l.prepare(read(text))
			if err != nil {
				t.Fatal(err)
			}
			l.reconfigure(set)
		}
		again("")
		l.log.Info("two")
		again(on)
		l.log.Info("three")
		if got := p.said.String(); got != "slot1: one\nthree\n" {
			t.Errorf("%s: %q", on, got)
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(text), " (pid:7) (D_ALWAYS) two\n") || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%s: the file holds %q, %v", on, text, err)
		}
		if err := l.close(); err != nil || p.ends != 1 {
			t.Errorf("%s: %v, closed %d times", on, err, p.ends)
		}
	}
}

// Where there is no system's log the daemon does not begin; a reconfig that wants
// it is refused.
func TestNoSyslog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(text string) *config.Snapshot {
		s, err := config.Parse("c", "LOG = "+dir+"\n"+text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := &logged{err: errs.E("x", errs.Unsupported, "", errors.New("no such thing"))}
	if _, err := openLogs(read("LOG_TO_SYSLOG = True\n"), Options{Platform: none}); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "LOG_TO_SYSLOG") {
		t.Error(err)
	}
	l, err := openLogs(read(""), Options{Platform: none})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.prepare(read("LOG_TO_SYSLOG = True\n")); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "LOG_TO_SYSLOG") {
		t.Error(err)
	}
	l.log.Info("still here")
	if err := l.close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "StartLog"))
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), "still here") {
		t.Errorf("%q, %v", text, err)
	}
	// Who is at a terminal sees the lines there, with their headers.
	var out bytes.Buffer
	if l, err = openLogs(read("LOG_TO_SYSLOG = True\n"), Options{Platform: none, Out: &out}); err != nil {
		t.Fatal(err)
	}
	set, err := l.prepare(read("LOG_TO_SYSLOG = True\n"))
	if err != nil {
		t.Fatal(err)
	}
	l.reconfigure(set)
	l.log.Info("here")
	if got := out.String(); !strings.HasSuffix(got, " here\n") || len(got) < 20 {
		t.Errorf("%q", got)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

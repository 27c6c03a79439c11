// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The banner is one that condor_who understands: the words between the two rows
// of stars, and the process id between "Log last touched" and "STARTING UP".
func TestBanner(t *testing.T) {
	t.Parallel()
	header := regexp.MustCompile(`(?m)^\d\d/\d\d/\d\d \d\d:\d\d:\d\d `)
	for _, tt := range []struct {
		name   string
		banner Banner
		want   string
	}{
		{"startd", Banner{Program: "condor_startd", Version: "$CondorVersion: 25.14.0 $", PID: 4711, Touched: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			stars + "\n** condor_startd (CONDOR_STARTD) STARTING UP config=/etc/condor\n** $CondorVersion: 25.14.0 $\n** PID = 4711 RealUID = 0\n" +
				"** Log last touched 1/2 03:04:05\n" + stars + "\n**** condor_startd (condor_STARTD) pid 4711 EXITING WITH STATUS 0\n"},
		{"starter without users", Banner{Program: "condor_starter", PID: 9, UID: -1},
			stars + "\n** condor_starter (CONDOR_STARTER) STARTING UP config=/etc/condor\n** PID = 9\n" +
				"** Log last touched time unavailable (No such file or directory)\n" + stars + "\n**** condor_starter (condor_STARTER) pid 9 EXITING WITH STATUS 0\n"},
	} {
		var text bytes.Buffer
		d, _ := ParseDebug()
		log := slog.New(NewDebugHandler(&text, d, 1))
		tt.banner.Begin(log, "config", "/etc/condor")
		tt.banner.End(log, 0)
		if lines, headers := strings.Count(text.String(), "\n"), len(header.FindAllString(text.String(), -1)); lines != headers {
			t.Errorf("%s: %d lines, %d headers", tt.name, lines, headers)
		}
		if diff := cmp.Diff(tt.want, header.ReplaceAllString(text.String(), "")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// When a log was last written is found before it is opened.
func TestLogTouched(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "StartLog")
	for i, want := range []time.Time{{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} {
		l, err := OpenLog(path, LogLimit{}, 1, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Touched(); !got.Equal(want) {
			t.Errorf("%d: touched at %v, want %v", i, got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

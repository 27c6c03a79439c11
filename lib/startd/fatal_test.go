// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// A fatal error that has no file to stand in is told to the system's log,
// without a header: where the configuration names none, where it cannot be
// written, and where the system's log is the daemon's.
func TestFatalErrorsInTheSystemsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "StartLog"), 0o755); err != nil {
		t.Fatal(err)
	}
	problems := config.Problems{{Message: "A is wrong"}, {Message: "B is wrong too"}}
	for _, tt := range []struct {
		name, text string
		cause      error
		want       string
	}{
		{"no configuration", "", errors.New("none is there"), "ERROR \"none is there\"\n"},
		{"no directory", "LOG = " + dir + "/none\n", problems, "ERROR \"" + problems[0].Error() + "\"\nERROR \"" + problems[1].Error() + "\"\n"},
		{"not to be written", "LOG = " + dir + "\n", errors.New("a\nb"), "ERROR \"a\\nb\"\n"},
		{"as configured", "LOG = " + dir + "\nLOG_TO_SYSLOG = True\n", errors.New("x"), "ERROR \"x\"\n"},
	} {
		var snap *config.Snapshot
		if tt.text != "" {
			var err error
			if snap, err = config.Parse("c", tt.text, config.Options{Subsystem: "STARTD"}); err != nil {
				t.Fatal(err)
			}
		}
		p := &logged{}
		TellFatal(tt.cause, 4, snap, p, 7)
		want := tt.want + "**** condor_startd (condor_STARTD) pid 7 EXITING WITH STATUS 4\n"
		if got := p.said.String(); got != want || p.tag != "condor_startd" || p.ends != 1 {
			t.Errorf("%s: %q of %q, closed %d times; want %q", tt.name, got, p.tag, p.ends, want)
		}
	}
	TellFatal(errors.New("x"), 4, nil, &logged{err: errors.New("no such thing")}, 7)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || !strings.HasPrefix(left[1].Name()+left[0].Name(), "dprintf_failure.STARTD") {
		t.Errorf("%v, %v", left, err)
	}
}

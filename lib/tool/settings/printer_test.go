// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
)

func snapshot(t *testing.T, text string) *config.Snapshot {
	t.Helper()
	snap, err := config.Parse("c", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestPrint: each way to be asked, of a value of several lines and of one that is
// empty, which counts as not defined.
func TestPrint(t *testing.T) {
	t.Parallel()
	snap := snapshot(t, "A = 1\nB = $(A) two\nEMPTY =\nHERE @=end\nfirst\n  second $(A)\n@end\n")
	for _, tt := range []struct {
		name     string
		p        Printer
		out, err string
		defined  bool
	}{
		{"B", Printer{}, "1 two\n", "", true},
		{"b", Printer{Raw: true}, "$(A) two\n", "", true},
		{"B", Printer{Default: true}, "", "Not defined: B\n", false},
		{"MINUTE", Printer{Default: true}, "60\n", "", true},
		{"EMPTY", Printer{}, "", "Not defined: EMPTY\n", false},
		{"EMPTY", Printer{Raw: true}, "\n", "", true},
		{"nope", Printer{}, "", "Not defined: NOPE\n", false},
		{"HERE", Printer{Verbose: true}, "HERE @=end\n   first\n   second 1\n@end\n # at: c, line 7\n # raw: \n #   HERE = first\n #   second $(A)\n\n", "", true},
	} {
		var out, err strings.Builder
		tt.p.Out, tt.p.Err = &out, &err
		defined := tt.p.Print(tt.name, Look(snap, tt.name))
		if defined != tt.defined || out.String() != tt.out || err.String() != tt.err {
			t.Errorf("%s: %v, %q, %q; want %v, %q, %q", tt.name, defined, &out, &err, tt.defined, tt.out, tt.err)
		}
	}
}

// TestTracer: what is replaced is printed, of the names alone or of what they match.
func TestTracer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names    []string
		patterns bool
		want     string
	}{
		{[]string{"a"}, false, " # trace: A\n  # was: 1\n  # set at: c, line 1\n"},
		{[]string{"^a"}, false, ""},
		{[]string{"^a", "("}, true, " # trace: A\n  # was: 1\n  # set at: c, line 1\n"},
		{[]string{"^A(?!B)"}, true, " # trace: A\n  # was: 1\n  # set at: c, line 1\n"}, // as PCRE has it
	} {
		var out, errOut strings.Builder
		p := Printer{Out: &out, Err: &errOut}
		if _, err := config.Parse("c", "A = 1\nA = 2\nBB = 1\nBB = 3\n", config.Options{Trace: p.Tracer(tt.names, tt.patterns)}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, out.String()); d != "" {
			t.Errorf("%q: -want +got\n%s", tt.names, d)
		}
		warned := ""
		if len(tt.names) > 1 {
			warned = "warning: failed to compile trace pattern '('; ignoring it.\n"
		}
		if errOut.String() != warned {
			t.Errorf("%q: %q, want %q", tt.names, &errOut, warned)
		}
	}
}

// TestDumpPatterns: patterns are those of PCRE, and one that is none matches nothing.
func TestDumpPatterns(t *testing.T) {
	t.Parallel()
	snap := snapshot(t, "ZZ_A = 1\nZZ_B = 2\nZZ.C = 3\n")
	for pattern, want := range map[string]string{
		"^zz_": "ZZ_A = 1\nZZ_B = 2\n", "^ZZ_(?!A)": "ZZ_B = 2\n", "^ZZ(.)A": "ZZ_A = 1\n", `^ZZ\.C$`: "ZZ.C = 3\n", "^ZZ(": "", `^(Z)\1_B`: "ZZ_B = 2\n",
	} {
		var out strings.Builder
		p := Printer{Out: &out, Err: io.Discard}
		p.Dump(snap, []string{pattern})
		_, got, _ := strings.Cut(out.String(), "match "+pattern+":\n")
		got, _, _ = strings.Cut(got, "# Contributing")
		if got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// TestDumpSavedDefault: what has no default is shown as it is set, as HTCondor's tool
// shows what a daemon says.
func TestDumpSavedDefault(t *testing.T) {
	t.Parallel()
	four := "4"
	saved := &config.Saved{Subsystem: "STARTD", Settings: []config.SavedSetting{{Name: "A", Raw: "5", Value: "5", Default: &four}, {Name: "B", Raw: "$(A)", Value: "5"}}}
	var out strings.Builder
	p := Printer{Out: &out, Err: io.Discard, Default: true}
	p.DumpSaved(saved, "f", nil)
	if want := "# Configuration from STARTD as of f\nA = 4\nB = $(A)\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// TestLoad: a configuration that changes what is known of the machine is read with that,
// and one that cannot be used says where.
func TestLoad(t *testing.T) {
	t.Parallel()
	facts := func(snap *config.Snapshot) (map[string]string, bool) {
		if snap == nil {
			return map[string]string{"DETECTED_CPUS": "8"}, false
		}
		return map[string]string{"DETECTED_CPUS": "4"}, snap.String("COUNT_HYPERTHREAD_CPUS") == "False"
	}
	for _, tt := range []struct {
		text, want, err string
	}{
		{"A = $(DETECTED_CPUS)\n", "8", ""},
		{"A = $(DETECTED_CPUS)\nCOUNT_HYPERTHREAD_CPUS = False\n", "4", ""},
		{"A = 1\nendif\n", "", "\nConfiguration Error Line 2 while reading config source /c\n"},
	} {
		var out, errOut strings.Builder
		p := Printer{Out: &out, Err: &errOut}
		snap, ok := p.Load(config.Options{Root: "/c", Subsystem: "TOOL", ReadFile: func(string) ([]byte, error) { return []byte(tt.text), nil }}, facts)
		if ok != (tt.err == "") || !strings.HasSuffix(errOut.String(), tt.err) || tt.err == "" && errOut.Len() > 0 {
			t.Errorf("%q: %v, %q", tt.text, ok, &errOut)
		}
		if ok && (!p.Names(snap, []string{"A"}, Names) || out.String() != tt.want+"\n") {
			t.Errorf("%q: %q, want %s", tt.text, &out, tt.want)
		}
	}
}

// TestNames: names, templates and texts; with -info all count as defined.
func TestNames(t *testing.T) {
	t.Parallel()
	snap := snapshot(t, "A = /x//y\n")
	for _, tt := range []struct {
		names   []string
		as      Text
		info    bool
		out     string
		defined bool
	}{
		{[]string{"A"}, Names, false, "/x//y\n", true},
		{[]string{"$(A)/z"}, Macros, false, "/x//y/z\n", true},
		{[]string{"$(A)/z"}, Paths, false, "/x/y/z\n", true},
		{[]string{"NOPE", "A"}, Names, false, "/x//y\n", false},
		{[]string{"NOPE", "A"}, Names, true, "/x//y\n", true},
		{[]string{"^ROLE:NOPE"}, Names, false, "Not defined: use ROLE:NOPE\n", true},
	} {
		var out strings.Builder
		p := Printer{Out: &out, Err: io.Discard, Info: tt.info}
		if defined := p.Names(snap, tt.names, tt.as); defined != tt.defined || out.String() != tt.out {
			t.Errorf("%q: %v, %q", tt.names, defined, &out)
		}
	}
}

// TestSavedTemplate: of a daemon no template can be asked.
func TestSavedTemplate(t *testing.T) {
	t.Parallel()
	p := Printer{Out: io.Discard, Err: io.Discard}
	if _, err := p.Saved(&config.Saved{}, []string{"^ROLE"}); err == nil || err.Error() != "remote query not supported for use ROLE" {
		t.Errorf("got %v", err)
	}
}

// TestWriteFails: the error is the writer's own.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	if err := Write(closed{}, snapshot(t, "A = 1\n"), WriteOptions{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// closed takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

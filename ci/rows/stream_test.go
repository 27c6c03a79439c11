// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
)

const testModule = "example.org/m"

// stream writes what go test -json would: each line is "ACTION FOLDER [TEST]",
// for output followed by ": TEXT". A line that begins with = is itself.
func stream(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "="); ok {
			b.WriteString(text + "\n")
			continue
		}
		words, output, isOutput := strings.Cut(line, ": ")
		w := append(strings.Fields(words), "", "")
		e := map[string]string{"Time": "2026-11-23T01:50:48.2Z", "Action": w[0], "Package": testModule + "/" + w[1]}
		if w[2] != "" {
			e["Test"] = w[2]
		}
		if isOutput {
			e["Output"] = output + "\n"
		}
		text, _ := json.Marshal(e) // a map of strings
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// hostileStreams are the seeds of the fuzz target, too.
var hostileStreams = []struct{ name, text, want string }{
	{"no end of the package", stream("start lib/a", "run lib/a TestA", "pass lib/a TestA"), "x.json:3: the stream ends before package example.org/m/lib/a does"},
	{"several without an end", stream("start lib/b", "start lib/a", "start lib/c"), "x.json:3: the stream ends before package example.org/m/lib/a and 2 more do"},
	{"cut in a line", stream("start lib/a", "pass lib/a") + `{"Action":"sta`, `x.json:3: the last line is cut off: unexpected end of JSON input: "{\"Action\":\"sta"`},
	{"cut in a word", stream("start lib/a", "pass lib/a") + `{"Action":"start","Package":"p"`, "x.json:3: the last line is cut off: "},
	{"not JSON", "hello\n", `x.json:1: neither an event of go test -json nor a word of the go command: "hello"`},
	{"output of go test without -json", "ok  \tlib/a\t0.1s\n--- FAIL: TestA\n", "x.json:2: neither an event"},
	{"an array", "[]\n", "x.json:1: neither an event"},
	{"wrong type", `{"Action":7}` + "\n", "x.json:1: json: cannot unmarshal number"},
	{"no action", "{}\n", "x.json:1: an event without an Action"},
	{"no package", `{"Action":"pass","Test":"TestA"}` + "\n", `x.json:1: an event of test "TestA" without a Package`},
	{"two objects in a line", `{"Action":"start"}{"Action":"start"}` + "\n", "x.json:1: invalid character '{' after top-level value"},
	{"deep", strings.Repeat(`{"a":`, 20000) + "\n", "x.json:1: "},
	{"a line without end", `{"Action":"output","Output":"` + strings.Repeat("x", maxLine) + `"}`, "x.json:1: a line of more than 1048576 bytes is not from go test -json"},
	{"bytes", "{\x00\xff\n", "x.json:1: invalid character"},
}

func TestReadStreamRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range hostileStreams {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := readStream("x.json", strings.NewReader(tt.text), func(event) {})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	lost := errors.New("the disk is gone")
	if err := readStream("x.json", io.MultiReader(strings.NewReader(stream("start lib/a")), iotest.ErrReader(lost)), func(event) {}); !errors.Is(err, lost) {
		t.Errorf("got %v, want %v", err, lost)
	}
}

func TestReadStreamTakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		events     int
	}{
		{"nothing", "", 0},
		{"empty lines and CRLF", "\n\r\n" + strings.ReplaceAll(stream("start lib/a", "pass lib/a"), "\n", "\r\n"), 2},
		{"no newline at the end", strings.TrimSuffix(stream("start lib/a", "pass lib/a"), "\n"), 2},
		{"a build that fails", stream(`={"ImportPath":"m/lib/a","Action":"build-output","Output":"# m/lib/a\n"}`, `={"ImportPath":"m/lib/a","Action":"build-fail"}`,
			"start lib/a", "output lib/a: FAIL", `={"Action":"fail","Package":"example.org/m/lib/a","FailedBuild":"m/lib/a"}`), 5},
		{"words of the go command", "go: downloading x v1\n# m/lib/a\nlib/a/a.go:3:1: undefined: b\nlib/a/a.go:3: x\n\thave (int)\ntoo many errors\nFAIL\tm/lib/a [build failed]\nFAIL\n", 0},
		{"no tests", stream("start lib/a", "output lib/a: ?", "skip lib/a"), 3},
		{"actions of a later release", stream("start lib/a", "attr lib/a TestA", "artifacts lib/a TestA", "pass lib/a"), 4},
		{"the same package twice", stream("start lib/a", "pass lib/a", "start lib/a", "fail lib/a"), 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			if err := readStream("x.json", iotest.OneByteReader(strings.NewReader(tt.text)), func(event) { n++ }); err != nil || n != tt.events {
				t.Errorf("got %d events, %v; want %d", n, err, tt.events)
			}
		})
	}
}

// FuzzResults reads anything: it is understood, or refused with one line that
// says where, and nothing of it moves a cursor.
func FuzzResults(f *testing.F) {
	for _, tt := range hostileStreams {
		f.Add([]byte(tt.text))
	}
	for _, tt := range fateCases {
		for _, run := range tt.runs {
			f.Add([]byte(run))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newResults(testModule)
		if err := r.read("x.json", bytes.NewReader(text)); err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "x.json:") || strings.Contains(s, "\n") {
				t.Errorf("got %q", s)
			}
			return
		}
		var out bytes.Buffer
		if err := printSkips(&out, r, nil); err != nil {
			t.Error(err)
		}
		if i := bytes.IndexFunc(out.Bytes(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
			t.Errorf("%q has a control character", out.Bytes())
		}
		for key, s := range r.tests {
			if got, why := r.of(proof{testKey: key, whole: true}); got == ran && (s.failed || !s.passed) || got == skipped && why == "" {
				t.Errorf("%s: %v %q of %+v", key, got, why, s)
			}
		}
	})
}

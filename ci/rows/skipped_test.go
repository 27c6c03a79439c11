// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestPrintSkips(t *testing.T) {
	t.Parallel()
	r := newResults(testModule)
	for _, run := range []string{
		whole("pass", join(skipOf("TestRoot", "only root can"), skipOf("TestPool", "HTCondor is not here"), skipOf("TestElsewhere", "HTCondor is not here"),
			skipOf("TestFailing", "needs x"), skipOf("TestParts/a", "needs a"), passOf("TestParts/b"), passOf("TestParts"),
			skipOf("TestAll/a", "HTCondor is not here"), passOf("TestAll"), passOf("TestGood"), skipOf("TestBad/\u009b", "needs x"))...),
		whole("fail", join(passOf("TestElsewhere"), []string{"fail lib/a TestFailing"})...),
	} {
		if err := r.read("x.json", strings.NewReader(run)); err != nil {
			t.Fatal(err)
		}
	}
	const list = `HTCondor is not here
    lib/a TestAll/a
    lib/a TestPool
needs a
    lib/a TestParts/a
needs x
    lib/a TestBad/?
only root can
    lib/a TestRoot
5 tests or parts of tests were skipped in every run
`
	for _, tt := range []struct{ required, want string }{
		{"", ""},
		{"no such words", ""},
		{"HTCondor is not here", "these had to run here:\nlib/a TestAll/a: HTCondor is not here\nlib/a TestPool: HTCondor is not here"},
		{"^lib/a TestRoot", "these had to run here:\nlib/a TestRoot: only root can"},
	} {
		var required *regexp.Regexp
		if tt.required != "" {
			required = regexp.MustCompile(tt.required)
		}
		var out bytes.Buffer
		err := printSkips(&out, r, required)
		if got := out.String(); got != list {
			t.Errorf("got\n%swant\n%s", got, list)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%s: got %v, want %s", tt.required, err, tt.want)
		}
	}
}

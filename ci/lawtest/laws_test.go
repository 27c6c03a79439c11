// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

const header = "// Copyright 2026 The execpoint Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"

func TestLawsOfGoFiles(t *testing.T) {
	t.Parallel()
	type files map[string]string
	for _, tt := range []struct {
		name  string
		law   func([]source.File) []string
		files files
		want  []string
	}{
		{"one doc", PackageDocs, files{"lib/a/a.go": "// Package a is one.\npackage a", "lib/a/b.go": "package a", "lib/a/a_test.go": "// words\npackage a"}, nil},
		{"no doc", PackageDocs, files{"lib/a/a.go": header + "package a"}, []string{"lib/a: package a has no package doc"}},
		{"two docs", PackageDocs, files{"lib/a/a.go": "// Package a is one.\npackage a", "lib/a/b.go": "// Package a is two.\npackage a"},
			[]string{"lib/a: package a has 2 package docs: lib/a/a.go, lib/a/b.go"}},
		{"another name", PackageDocs, files{"lib/a/a.go": "// Package b is it.\npackage a"}, []string{`lib/a/a.go:1: the package doc does not begin with "Package a "`}},
		{"a command", PackageDocs, files{"bin/x/x.go": "// Command x does.\npackage main"}, nil},
		{"a command as a word", PackageDocs, files{"bin/x/x.go": "// X does.\npackage main"}, nil},
		{"a command's words", PackageDocs, files{"bin/x/x.go": "// Does x.\npackage main"}, []string{`bin/x/x.go:1: the package doc does not begin with "Command x "`}},
		{"tests only", PackageDocs, files{"integration/x_test.go": "// Package integration runs.\npackage integration_test"}, nil},
		{"tests only, no doc", PackageDocs, files{"integration/x_test.go": "package integration"}, []string{"integration: package integration has no package doc"}},

		{"header", Licences, files{"a.go": header + "package a\n"}, nil},
		{"header for another year, CRLF", Licences, files{"a.go": "// Copyright 2031 The execpoint Authors.\r\n// SPDX-License-Identifier: Apache-2.0\r\n\r\npackage a\r\n"}, nil},
		{"no header", Licences, files{"a.go": "package a\n"}, []string{"a.go:1: the first two lines are not the copyright and the SPDX-License-Identifier"}},
		{"another licence", Licences, files{"a.go": "// Copyright 2026 The execpoint Authors.\n// SPDX-License-Identifier: MIT\n\npackage a\n"},
			[]string{"a.go:1: the first two lines are not the copyright and the SPDX-License-Identifier"}},

		{"init", NoInit, files{"a.go": "package a\n\nfunc init() {}\n"}, []string{"a.go:3: init function; call it from main or make it a value"}},
		{"a method init", NoInit, files{"a.go": "package a\ntype t int\nfunc (t) init() {}\n"}, nil},

		{"sleep", NoSleep, files{"a_test.go": "package a\nfunc f() {\n\ttime.Sleep(1)\n}\n"}, []string{"a_test.go:3: a test that sleeps; wait for the event itself, or use testing/synctest"}},
		{"sleep outside tests", NoSleep, files{"a.go": "package a\nfunc f() { time.Sleep(1) }\n"}, nil},
		{"sleep in a bubble", NoSleep, files{"a_test.go": "package a\nfunc f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }\n"}, nil},

		{"skip", SkipsSayWhy, files{"a_test.go": "package a\nfunc f() {\n\tt.Skip()\n\tb.SkipNow()\n\tt.Skip(\" \")\n}\n"}, []string{
			"a_test.go:3: skipped without a word; say what is missing on this machine",
			"a_test.go:4: skipped without a word; say what is missing on this machine",
			"a_test.go:5: skipped without a word; say what is missing on this machine"}},
		{"skip with words", SkipsSayWhy, files{"a_test.go": "package a\nfunc f() { t.Skip(\"needs root\"); t.Skipf(\"%v\", err); t.Skip(err) }\n"}, nil},

		{"put off", NothingPutOff, files{"a.go": "package a\n\n// TO" + "DO: more\nvar x = \"FIX" + "ME\"\n"}, []string{"a.go:3: TO" + "DO in a comment; do it or open an issue"}},
		{"not put off", NothingPutOff, files{"a.go": "package a // what TODOS the AUTODOCS\n"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var parsed []source.File
			for name, text := range tt.files {
				f, err := source.Parse(name, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				parsed = append(parsed, f)
			}
			slices.SortFunc(parsed, func(a, b source.File) int {
				if a.Path < b.Path {
					return -1
				}
				return 1
			})
			if got := tt.law(parsed); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestLawsOfTexts(t *testing.T) {
	t.Parallel()
	paths := func(name, text string) []string { return NoOwnFolders(name, text, "/srv/checkout/") }
	for _, tt := range []struct {
		name string
		law  func(name, text string) []string
		text string
		want []string
	}{
		{"replace", NoReplace, "module m\n\nreplace a => ../a\n", []string{"f:3: replace a => ../a"}},
		{"replace block", NoReplace, "replace (\n\ta => b v1\n)\n", []string{"f:1: replace ("}},
		{"exclude", NoReplace, "exclude a v1.0.0\n", []string{"f:1: exclude a v1.0.0"}},
		{"no replace", NoReplace, "module example.org/replace\n\nrequire (\n\treplacement.org/x v1.0.0\n)\n", nil},
		{"home", paths, "x\nsee /home/mary/notes\n", []string{"f:2: a path in somebody's own folder: /home/mary"}},
		{"root's home", paths, `cat "/root/x"`, []string{"f:1: a path in somebody's own folder: /root"}},
		{"macOS", paths, "/Users/mary/x", []string{"f:1: a path in somebody's own folder: /Users/mary"}},
		{"Windows", paths, `C:\Users\mary\x`, []string{`f:1: a path in somebody's own folder: C:\Users\mary`}},
		{"this checkout", paths, "in /srv/checkout/lib", []string{"f:1: a path that only this machine has: /srv/checkout/"}},
		{"examples", paths, "/home/alice/job and /home/user/x, C:\\Users\\alice\\y, sandbox/root/x, $HOME/root/x, https://example.org/root/x", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.law("f", tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

// judge checks one file of the small tree.
func judge(t *testing.T, path, text string) []Violation {
	t.Helper()
	f, err := source.Parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return CheckSource(smallLayers(t), f)
}

func TestForbiddenSourceIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, path, text, want string }{
		{"clock", "lib/slot/a.go", "package slot\nimport \"time\"\nvar t = time.Now()\n",
			"lib/slot/a.go:3: lib/slot → time.Now: a pure package is told the time"},
		{"clock passed on", "lib/slot/a.go", "package slot\nimport \"time\"\nvar f = time.Now\n", "lib/slot/a.go:3: lib/slot → time.Now"},
		{"clock under another name", "lib/slot/a.go", "package slot\nimport tm \"time\"\nvar t = tm.Since(tm.Time{})\n", "lib/slot/a.go:3: lib/slot → time.Since"},
		{"timer", "lib/ep/a.go", "package ep\nimport \"time\"\nvar t = time.NewTicker(1)\n", "time.NewTicker: a pure package does not wait"},
		{"files through filepath", "lib/slot/a.go", "package slot\nimport \"path/filepath\"\nvar f, _ = filepath.Glob(\"*\")\n",
			"path/filepath.Glob: a pure package reads no files"},
		{"terminal", "lib/slot/a.go", "package slot\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", "fmt.Println: a pure package writes to no terminal"},
		{"shared randomness", "lib/slot/a.go", "package slot\nimport \"math/rand/v2\"\nvar x = rand.IntN(3)\n",
			"math/rand/v2.IntN: a pure package has no randomness of its own"},
		{"shared randomness in a test", "bin/condor_ep/a_test.go", "package main\nimport \"math/rand/v2\"\nvar x = rand.IntN(3)\n",
			"math/rand/v2.IntN: a test draws the same on every run"},
		{"another seed in each run", "lib/slot/a_test.go", "package slot\nimport \"pgregory.net/rapid\"\nfunc f() { rapid.Check(t, p) }\n",
			"pgregory.net/rapid.Check: a test draws the same on every run; use rapidtest.Check"},
		{"log", "lib/slot/a.go", "package slot\nimport \"log/slog\"\nfunc f() { slog.Info(\"x\") }\n", "log/slog.Info: a pure package does not log"},
		{"logger handed in", "lib/slot/a.go", "package slot\nimport \"log/slog\"\nfunc f(l *slog.Logger) {}\n", "log/slog.Logger: a pure package does not log"},
		{"goroutine", "lib/ep/a.go", "package ep\nfunc f() {\n\tgo f()\n}\n", "lib/ep/a.go:3: lib/ep: a pure package starts no goroutine"},
		{"dot import", "lib/ep/a.go", "package ep\nimport . \"time\"\nvar t = Now()\n", "lib/ep/a.go:2: lib/ep: a pure package names what it uses"},
		{"system in the code", "lib/host/a.go", "package host\nimport \"runtime\"\nvar w = runtime.GOOS == \"windows\"\n",
			"lib/host/a.go:3: lib/host → runtime.GOOS: lib knows no operating system"},
		{"system in a test", "lib/host/a_test.go", "package host\nimport \"runtime\"\nvar w = runtime.GOOS == \"windows\"\n", "runtime.GOOS: lib knows no operating system"},
		{"system in the name", "lib/host/a_linux.go", "package host\n", "lib/host/a_linux.go:1: lib/host: the file name picks GOOS linux"},
		{"system in a test's name", "lib/host/a_windows_test.go", "package host\n", "the file name picks GOOS windows"},
		{"system and processor in the name", "lib/host/a_darwin_arm64.go", "package host\n", "the file name picks GOOS darwin"},
		{"system in a tag", "lib/host/a.go", "//go:build !(windows && cgo)\n\npackage host\n", "lib/host/a.go:1: lib/host: the build tag picks GOOS windows"},
		{"unix in a tag", "lib/host/a.go", "//go:build race || unix\n\npackage host\n", "the build tag picks GOOS unix"},
		{"cgo", "bin/condor_ep/a.go", "package main\nimport \"C\"\n", "bin/condor_ep/a.go:2: bin/condor_ep → C: no cgo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := judge(t, tt.path, tt.text)
			if len(got) != 1 || !strings.Contains(got[0].String(), tt.want) {
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAllowedSourcePasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, path, text string }{
		{"times as values", "lib/slot/a.go", "package slot\nimport \"time\"\nfunc f(now time.Time) time.Time { return now.Add(time.Second) }\n"},
		{"a parameter named as a package", "lib/slot/a.go", "package slot\nimport _ \"time\"\ntype c struct{}\nfunc (c) Now() int { return 1 }\nfunc f(time c) int { return time.Now() }\n"},
		{"a random source handed in", "lib/slot/a.go", "package slot\nimport \"math/rand/v2\"\nfunc f(r *rand.Rand) int { return r.IntN(3) }\n"},
		{"a seed in a test", "lib/slot/a_test.go", "package slot\nimport \"math/rand/v2\"\nvar r = rand.New(rand.NewPCG(1, 2))\nvar n = r.IntN(3)\n"},
		{"tests of pure packages have a clock", "lib/slot/a_test.go", "package slot\nimport \"time\"\nvar t = time.Now()\nfunc f() { go f() }\n"},
		{"a clock where it belongs", "lib/host/a.go", "package host\nimport \"time\"\nvar t = time.Now()\nfunc f() { go f() }\n"},
		{"how a secret is printed", "lib/slot/a.go", "package slot\nimport \"log/slog\"\ntype s string\nfunc (s) LogValue() slog.Value { return slog.StringValue(\"...\") }\n"},
		{"a system under platform", "platform/linux/a_linux.go", "//go:build linux\n\npackage linux\n"},
		{"a file about linux", "lib/host/linux.go", "package host\n"},
		{"a word in the middle", "lib/host/a_linux_text.go", "package host\n"},
		{"other tags", "lib/host/a.go", "//go:build race\n\npackage host\n"},
		{"a folder that is not listed", "lib/new/a.go", "package new\nimport \"time\"\nvar t = time.Now()\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := judge(t, tt.path, tt.text); len(got) > 0 {
				t.Errorf("refused: %v", got)
			}
		})
	}
}

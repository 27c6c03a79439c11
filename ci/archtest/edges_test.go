// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"strings"
	"testing"
)

// small is a tree like ours in a few lines: the tests of the test break it in
// one way each and look for the sentence that says so.
const small = `level L0
lib/errs pure
level L2
lib/slot pure
lib/policy pure <- lib/slot
level L3
lib/ep pure
lib/host
lib/host/hosttest testonly <- lib/host
level L4
lib/local test<- platform/linux
area platform sees L0 lib/host
platform/linux
area bin sees *
bin/condor_ep
area ci sees
ci/rows
module golang.org/x/sys in platform/... bin/...
module github.com/google/go-cmp in tests
`

func smallLayers(t *testing.T) Layers {
	t.Helper()
	l, err := ParseLayers("layers.txt", small)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// smallGraph is a graph of all packages of small with no imports but those in
// edges: "from > import path", with a leading ! for a test import. A path with
// @ in front is of this module.
func smallGraph(l Layers, edges ...string) Graph {
	byPath := map[string]*Package{}
	for path := range l.Packages {
		byPath[path] = &Package{Path: path}
	}
	for _, e := range edges {
		from, to, _ := strings.Cut(e, " > ")
		from, test := strings.CutPrefix(from, "!")
		if rel, ours := strings.CutPrefix(to, "@"); ours {
			to = "example.org/m/" + rel
		}
		p := byPath[from]
		if p == nil {
			p = &Package{Path: from}
			byPath[from] = p
		}
		if test {
			p.TestImports = append(p.TestImports, Import{to, from + "/x_test.go:7"})
		} else if to != "" {
			p.Imports = append(p.Imports, Import{to, from + "/x.go:5"})
		}
	}
	g := Graph{Module: "example.org/m"}
	for _, p := range byPath {
		g.Packages = append(g.Packages, *p)
	}
	return g
}

func TestForbiddenEdgesAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ edge, want string }{
		{"lib/slot > @lib/ep", "lib/slot/x.go:5: lib/slot → lib/ep: L2 may not import L3, which is above it"},
		{"lib/slot > @lib/policy", "lib/slot/x.go:5: lib/slot → lib/policy: both are in L2, and ci/layers.txt:4 does not name this edge after <-"},
		{"lib/local > @platform/linux", "lib/local/x.go:5: lib/local → platform/linux: L4 may not import platform: levels import only levels"},
		{"lib/ep > @bin/condor_ep", "lib/ep/x.go:5: lib/ep → bin/condor_ep: L3 may not import bin: levels import only levels"},
		{"platform/linux > @lib/slot", "platform/linux/x.go:5: platform/linux → lib/slot: platform sees only L0, lib/host (ci/layers.txt:12)"},
		{"ci/rows > @lib/errs", "ci/rows/x.go:5: ci/rows → lib/errs: ci sees only itself (ci/layers.txt:16)"},
		{"lib/local > @lib/host/hosttest", "lib/local/x.go:5: lib/local → lib/host/hosttest: the package is for tests only (ci/layers.txt:9)"},
		{"bin/condor_ep > @lib/secret", "bin/condor_ep/x.go:5: bin/condor_ep → lib/secret: the imported package is not in ci/layers.txt"},
		{"!lib/slot > @lib/ep", "lib/slot/x_test.go:7: lib/slot → lib/ep: L2 may not import L3, which is above it"},
		{"!lib/ep > @platform/linux", "lib/ep/x_test.go:7: lib/ep → platform/linux: L3 may not import platform: levels import only levels"},
		{"lib/new > ", "lib/new: the package is not in ci/layers.txt; give it a line in its level"},

		{"lib/slot > os", "lib/slot/x.go:5: lib/slot → os: a pure package reads no files, environment or processes"},
		{"lib/slot > os/exec", "lib/slot/x.go:5: lib/slot → os/exec: a pure package reads no files"},
		{"lib/slot > net/http", "lib/slot/x.go:5: lib/slot → net/http: a pure package has no sockets"},
		{"lib/slot > log", "lib/slot/x.go:5: lib/slot → log: a pure package does not log"},
		{"lib/slot > crypto/rand", "lib/slot/x.go:5: lib/slot → crypto/rand: a pure package has no randomness"},
		{"lib/slot > runtime/debug", "lib/slot/x.go:5: lib/slot → runtime/debug: a pure package does not ask"},
		{"lib/host > syscall", "lib/host/x.go:5: lib/host → syscall: system calls belong under platform"},
		{"lib/host > os/exec", "lib/host/x.go:5: lib/host → os/exec: lib starts processes through lib/host"},
		{"lib/local > os/signal", "lib/local/x.go:5: lib/local → os/signal: signals are received in bin"},

		{"lib/host > golang.org/x/sys/unix", "lib/host/x.go:5: lib/host → golang.org/x/sys/unix: golang.org/x/sys may be imported only in platform/..., bin/... (ci/layers.txt:18)"},
		{"bin/condor_ep > github.com/google/go-cmp/cmp", "github.com/google/go-cmp may be imported only in tests"},
		{"bin/condor_ep > github.com/spf13/cobra", "bin/condor_ep/x.go:5: bin/condor_ep → github.com/spf13/cobra: the module is not in ci/layers.txt"},
		{"bin/condor_ep > golang.org/x/sysx", "golang.org/x/sysx: the module is not in ci/layers.txt"},
	} {
		t.Run(tt.edge, func(t *testing.T) {
			t.Parallel()
			l := smallLayers(t)
			got := CheckGraph(l, smallGraph(l, tt.edge))
			if len(got) != 1 || !strings.Contains(got[0].String(), tt.want) {
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAllowedEdgesPass(t *testing.T) {
	t.Parallel()
	l := smallLayers(t)
	g := smallGraph(l,
		"lib/policy > @lib/slot", "lib/slot > @lib/errs", "lib/slot > strings", "lib/slot > net/netip", "lib/slot > net/url",
		"lib/host > os", "lib/host > net", "lib/host/hosttest > @lib/host", "platform/linux > @lib/host", "platform/linux > @lib/errs",
		"platform/linux > syscall", "platform/linux > golang.org/x/sys/unix", "bin/condor_ep > @platform/linux", "bin/condor_ep > @lib/ep",
		"bin/condor_ep > os/signal", "!lib/slot > os", "!lib/slot > github.com/google/go-cmp/cmp", "!lib/ep > @lib/host/hosttest",
		"!lib/slot > @lib/slot", "!lib/local > @platform/linux", "!lib/slot > @lib/host/hosttest",
	)
	if got := CheckGraph(l, g); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
}

func TestListAndTreeMustAgree(t *testing.T) {
	t.Parallel()
	l, err := ParseLayers("layers.txt", "level L0\nlib/here\nlib/gone\nlib/coming later\nlib/came later\n")
	if err != nil {
		t.Fatal(err)
	}
	g := Graph{Module: "example.org/m", Packages: []Package{{Path: "lib/here"}, {Path: "lib/came"}}}
	var got []string
	for _, v := range CheckGraph(l, g) {
		got = append(got, v.String())
	}
	want := []string{
		"lib/came: the package is there now; take the mark later off it (ci/layers.txt:5)",
		"lib/gone: listed in ci/layers.txt:3 but there is no such package",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

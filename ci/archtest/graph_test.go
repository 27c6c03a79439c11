// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWholeCheckOnATree runs go list over a tree on disk, so that what the
// other tests feed by hand is what the go command really says.
func TestWholeCheckOnATree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                 "module example.org/m\n\ngo 1.26\n",
		"lib/slot/slot.go":       "package slot\n\nimport _ \"example.org/m/lib/ep\"\n",
		"lib/ep/ep.go":           "package ep\n",
		"lib/ep/ep_test.go":      "package ep_test\n\nimport (\n\t_ \"os\"\n\n\t_ \"example.org/m/bin/x\"\n)\n",
		"bin/x/x.go":             "package x\n",
		"bin/x/host_linux.go":    "package x\n\nimport _ \"example.org/m/lib/slot\"\n",
		"bin/x/host_windows.go":  "package x\n\nimport _ \"example.org/m/lib/gone\"\n",
		"bin/y/y.go":             "package y\n",
		"bin/y/z_windows.go":     "package z\n",
		"lib/ep/testdata/bad.go": "package bad\n\nimport _ \"example.org/m/lib/nowhere\"\n",
	} {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layers, err := ParseLayers("layers.txt", "level L0\nlib/slot pure\nlevel L1\nlib/ep\narea bin sees *\nbin/x\nbin/y\n")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := Load(root, "example.org/m", "linux", "windows")
	if err == nil || !strings.Contains(err.Error(), "GOOS=windows: example.org/m/bin/y: ") || strings.Contains(err.Error(), "GOOS=linux") {
		t.Errorf("a package that is broken on one system is not told: %v", err)
	}
	var got []string
	for _, v := range CheckGraph(layers, graph) {
		got = append(got, v.String())
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		"lib/slot/slot.go:3: lib/slot → lib/ep: L0 may not import L1, which is above it",
		"lib/ep/ep_test.go:6: lib/ep → bin/x: L1 may not import bin: levels import only levels",
		"bin/x/host_windows.go:3: bin/x → lib/gone: the imported package is not in ci/layers.txt",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %s", want)
		}
	}
	if strings.Contains(all, "nowhere") || strings.Contains(all, "host_linux.go") {
		t.Errorf("too much was refused:\n%s", all)
	}
}

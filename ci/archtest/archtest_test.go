// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

// TestRepository is the law itself: this tree, as it is, on the systems it
// builds for.
func TestRepository(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	module, err := source.Module(root)
	if err != nil {
		t.Fatal(err)
	}
	layers := readLayers(t, root)
	graph, err := Load(root, module, "linux", "windows", "darwin")
	if err != nil {
		t.Errorf("some packages cannot be read:\n%v", err)
	}
	for _, v := range CheckGraph(layers, graph) {
		t.Error(v)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Errorf("some files cannot be read:\n%v", err)
	}
	for _, f := range files {
		for _, v := range CheckSource(layers, f) {
			t.Error(v)
		}
	}
}

func readLayers(t *testing.T, root string) Layers {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ci", "layers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := ParseLayers("ci/layers.txt", string(text))
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

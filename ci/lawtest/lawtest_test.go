// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

// TestRepository applies every law to this tree.
func TestRepository(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Errorf("some files cannot be read:\n%v", err)
	}
	var broken []string
	for _, law := range []func([]source.File) []string{PackageDocs, Licences, NoInit, NoSleep, SkipsSayWhy, NothingPutOff} {
		broken = append(broken, law(files)...)
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	broken = append(broken, NoReplace("go.mod", string(gomod))...)
	err = source.Walk(root, func(name string) error {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		// The tests of this law must spell out what it refuses.
		if name != "ci/lawtest/laws_test.go" && !bytes.ContainsRune(text, 0) {
			broken = append(broken, NoOwnFolders(name, string(text), root+string(filepath.Separator))...)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

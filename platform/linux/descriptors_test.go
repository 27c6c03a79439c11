// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDescriptors(t *testing.T) {
	t.Parallel()
	root := RootAt(t.TempDir())
	if _, err := Descriptors(root); err == nil {
		t.Error("counted without a procfs")
	}
	fd := filepath.Join(root.Proc, "self", "fd")
	if err := os.MkdirAll(fd, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0", "1", "2", "7"} {
		if err := os.WriteFile(filepath.Join(fd, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Descriptors(root)
	if err != nil || d.Open != 3 || d.Most < 3 {
		t.Errorf("%+v, %v; want 3, for one of the four is that of the list", d, err)
	}
	d, err = Descriptors(DefaultRoot())
	if err != nil || d.Open < 3 || d.Open > d.Most {
		t.Errorf("of this process: %+v, %v", d, err)
	}
}

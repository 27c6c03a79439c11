// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import "testing"

func TestMyself(t *testing.T) {
	t.Parallel()
	u, err := Myself()
	if err != nil {
		t.Fatal(err)
	}
	// A Go program has some megabytes, and far more address space.
	if u.Procs != 1 || u.RSSKiB < 1024 || u.ImageSizeKiB < u.RSSKiB || u.UserCPU < 0 || u.SysCPU < 0 {
		t.Errorf("%+v", u)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"

	"golang.org/x/sys/unix"
)

// Cores are the processors that this process may use, by their numbers, ascending;
// nil if the kernel does not say.
func Cores() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil
	}
	var all []int
	for n := range len(set) * 64 {
		if set.IsSet(n) {
			all = append(all, n)
		}
	}
	return all
}

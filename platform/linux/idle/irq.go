// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package idle

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/machine/proctext"
	"github.com/execpoint/execpoint/platform/linux"
)

// irq is an interrupt of a keyboard or mouse, watched by its counter. The
// per-interrupt file of sysfs is read and not /proc/interrupts, which on a
// large server takes milliseconds to write.
type irq struct {
	path  string
	count uint64
	known bool // count was read before
}

const (
	maxIRQs   = 4096
	maxActs   = 4 << 10
	maxCounts = 128 << 10 // 8192 processors with long counters
)

// inputDrivers are the names under which drivers of keyboards and mice ask
// for their interrupts.
var inputDrivers = [...]string{"i8042", "keyboard", "mouse"}

// findIRQs returns the interrupts of input devices. A machine without such
// devices, or a kernel that does not tell, has none.
func findIRQs(root linux.Root) []irq {
	base := filepath.Join(root.Sys, "kernel", "irq")
	dir, err := os.Open(base)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxIRQs)
	if err != nil {
		return nil
	}
	var irqs []irq
	for _, name := range names {
		actions, err := readBounded(filepath.Join(base, name, "actions"), maxActs)
		if err != nil || len(actions) <= 1 {
			continue
		}
		for _, driver := range inputDrivers {
			if strings.Contains(strings.ToLower(string(actions)), driver) {
				irqs = append(irqs, irq{path: filepath.Join(base, name, "per_cpu_count")})
				break
			}
		}
	}
	return irqs
}

// moved reports whether the device was used since the last call. The first
// call only learns where the counter stands.
func (q *irq) moved() (bool, error) {
	text, err := readBounded(q.path, maxCounts)
	if err != nil {
		if notThere(err) {
			q.known = false // the device was taken away
			return false, nil
		}
		return false, fileError(q.path, err)
	}
	count, err := proctext.IRQCount(text)
	if err != nil {
		return false, fileError(q.path, err)
	}
	moved := q.known && count != q.count
	q.count, q.known = count, true
	return moved, nil
}

// readBounded returns at most limit bytes of a file.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

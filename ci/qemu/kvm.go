// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// kvmLimit is how long a machine with KVM may take on trial. One that works is up
// in less than two seconds.
const kvmLimit = 15 * time.Second

var hasVirtual = regexp.MustCompile(`(?m)^flags\s*:.*\b(svm|vmx)\b`)

// kvm says whether KVM works here. That /dev/kvm is there proves nothing: QEMU may
// end at once, or spin without a word. So a machine is tried, once for this
// processor and kernel, and the store remembers the answer.
func (b Base) kvm(ctx context.Context) (works bool, err error) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !hasVirtual.Match(cpu) {
		return false, nil
	}
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false, nil
	}
	_ = device.Close()
	file := filepath.Join(b.store.dir, "kvm-"+trialKey(cpu, b))
	err = b.store.exclusive(func() error {
		said, err := os.ReadFile(file)
		if err == nil {
			works = string(bytes.TrimSpace(said)) == "yes"
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		works, err = b.try(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(file, []byte(map[bool]string{true: "yes\n", false: "no\n"}[works]), 0o600)
	})
	return works, err
}

var changing = regexp.MustCompile(`(?m)^(cpu MHz|bogomips)\s*:.*$`)

func trialKey(cpu []byte, b Base) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s", changing.ReplaceAll(cpu, nil), b.kernel.version, b.emulator)
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// try runs a machine with KVM that does nothing.
func (b Base) try(ctx context.Context) (bool, error) {
	dir, err := os.MkdirTemp("", "execpoint-guest-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	m := Machine{Memory: 512, Limit: kvmLimit}
	f, err := b.prepare(ctx, m, Command{Shell: "true"}, dir)
	if err != nil {
		return false, err
	}
	_, err = b.boot(ctx, m, f, true, io.Discard)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// programs runs lvm2's program and that which makes file systems, found once in the
// directories of the system: nobody's PATH is asked.
type programs struct {
	lvm, mkfs string
	udev      bool
	limit     time.Duration
	run       func(ctx context.Context, path string, args []string) (out, problem []byte, err error) // a test's in place of exec
}

// directories are where programs of the system are.
var directories = []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin"}

func findPrograms(limit time.Duration) (*programs, error) {
	p := &programs{limit: limit, run: execute}
	for _, one := range []struct {
		name, pkg string
		path      *string
	}{{"lvm", "lvm2", &p.lvm}, {"mkfs.ext4", "e2fsprogs", &p.mkfs}} {
		for _, dir := range directories {
			if path := filepath.Join(dir, one.name); *one.path == "" && unix.Access(path, unix.X_OK) == nil {
				*one.path = path
			}
		}
		if *one.path == "" {
			return nil, fmt.Errorf("there is no %s in %s: install %s", one.name, strings.Join(directories, ", "), one.pkg)
		}
	}
	_, err := os.Stat("/run/udev/control")
	p.udev = err == nil
	return p, nil
}

// mostOutput is how much of what a program says is kept.
const mostOutput = 8 << 20

// environment is all that the programs see of ours.
var environment = []string{"LC_ALL=C", "PATH=/usr/sbin:/sbin:/usr/bin:/bin", "LVM_SUPPRESS_FD_WARNINGS=1"}

// execute runs a program without a shell.
func execute(ctx context.Context, path string, args []string) (out, problem []byte, err error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = environment, "/"
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // of what it may have started
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// limited keeps the beginning.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	l.Buffer.Write(b[:max(0, min(len(b), mostOutput-l.Len()))])
	return len(b), nil
}

// failure is a program that failed.
type failure struct {
	what, said string
	err        error
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %v: %s", f.what, f.err, f.said) }
func (f *failure) Unwrap() error { return f.err }

// missing reports whether lvm found no such volume or group.
func missing(err error) bool {
	var f *failure
	return errors.As(err, &f) && (strings.Contains(f.said, "Failed to find logical volume") || strings.Contains(f.said, "not found"))
}

// do runs a command of lvm2.
func (p *programs) do(ctx context.Context, c command) ([]byte, error) {
	args := append([]string{c[0]}, c[1:]...)
	if !p.udev {
		args = append([]string{c[0], "--config", withoutUdev}, c[1:]...)
	}
	return p.timed(ctx, p.lvm, args, c.String())
}

// format makes a file system on a device.
func (p *programs) format(ctx context.Context, device string) error {
	c := format(device)
	_, err := p.timed(ctx, p.mkfs, c, "mkfs.ext4 "+c.String())
	return err
}

func (p *programs) timed(ctx context.Context, path string, args []string, what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	out, problem, err := p.run(ctx, path, args)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it took more than %v (VOLUME_MANAGER_TIMEOUT): %w", p.limit, err)
		}
		said := strings.Join(strings.Fields(string(problem)), " ")
		return nil, &failure{what, said[:min(len(said), 500)], err}
	}
	return out, nil
}

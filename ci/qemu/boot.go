// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Result is what became of a machine.
type Result struct {
	Status  int           // of the program
	Console string        // the end of what the kernel and init printed
	Took    time.Duration // from the start of QEMU to its end
}

// Run starts a machine, runs the command in it and passes on what that prints. An
// error is that of a machine which did not come to tell the program's status.
func (b Base) Run(ctx context.Context, m Machine, c Command, stdout io.Writer) (Result, error) {
	if err := b.Has(m); err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp("", "execpoint-guest-")
	if err != nil {
		return Result{}, fmt.Errorf("qemu: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f, err := b.prepare(ctx, m, c, dir)
	if err != nil {
		return Result{}, err
	}
	kvm, err := b.kvm(ctx)
	if err != nil {
		return Result{}, err
	}
	return b.boot(ctx, m, f, kvm, stdout)
}

// prepare makes the files of one machine.
func (b Base) prepare(ctx context.Context, m Machine, c Command, dir string) (files, error) {
	f := files{kernel: b.kernel.image(), initrd: filepath.Join(dir, "initrd")}
	if len(m.Programs) > 0 {
		built, err := buildPrograms(ctx, m.Programs, dir)
		if err != nil {
			return f, err
		}
		all := map[string]string{}
		maps.Copy(all, m.Files)
		for name, file := range built {
			all["/usr/local/bin/"+name] = file
		}
		m.Files = all
	}
	if m.Systemd {
		f.system = b.store.systemFile(b.kernel)
	}
	w, err := os.Create(f.initrd)
	if err != nil {
		return f, fmt.Errorf("qemu: %w", err)
	}
	base, err := os.Open(b.archive)
	if err != nil {
		return f, errors.Join(fmt.Errorf("qemu: %w", err), w.Close())
	}
	defer func() { _ = base.Close() }() // it was only read
	if _, err = io.Copy(w, base); err == nil {
		err = m.order(w, c)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return f, err
	}
	for i, size := range m.Disks {
		name := filepath.Join(dir, "disk"+strconv.Itoa(i))
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, int64(size)<<20)); err != nil {
			return f, fmt.Errorf("qemu: a disk: %w", err)
		}
		f.disks = append(f.disks, name)
	}
	return f, nil
}

const (
	usualLimit = 5 * time.Minute
	// consoleKept is how much of a console is kept: its end.
	consoleKept = 32 << 10
)

// boot runs QEMU.
func (b Base) boot(ctx context.Context, m Machine, f files, kvm bool, stdout io.Writer) (r Result, err error) {
	limit := m.Limit
	if limit == 0 {
		limit = usualLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than its limit of %v", limit))
	defer cancel()
	var console tail
	cmd := exec.CommandContext(ctx, b.emulator, m.arguments(f, kvm)...)
	cmd.Stdout, cmd.Stderr = &console, &console
	cmd.WaitDelay = 5 * time.Second
	var status strings.Builder
	outputs, err := pipes(cmd, stdout, &status)
	if err != nil {
		return r, err
	}
	begin := time.Now()
	err = runBound(cmd, outputs.started)
	copied := outputs.wait()
	r.Took, r.Console = time.Since(begin), console.String()
	word := strings.TrimSpace(status.String())
	if code, ok := strings.CutPrefix(word, "exit "); ok {
		if r.Status, err = strconv.Atoi(code); err == nil {
			return r, copied
		}
	}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		err = cause
	case err == nil:
		err = errors.New("it ended without telling the status of its program")
	}
	return r, fmt.Errorf("qemu: the guest: %w; the end of its console:\n%s", err, last(r.Console, 40))
}

// streams carry what comes out of a machine.
type streams struct {
	far  []*os.File // QEMU's ends
	done sync.WaitGroup
	mu   sync.Mutex
	err  error
}

// pipes gives the command a descriptor for each writer.
func pipes(cmd *exec.Cmd, to ...io.Writer) (*streams, error) {
	s := &streams{}
	for _, w := range to {
		near, far, err := os.Pipe()
		if err != nil {
			s.started()
			return nil, fmt.Errorf("qemu: %w", err)
		}
		s.far = append(s.far, far)
		cmd.ExtraFiles = append(cmd.ExtraFiles, far)
		s.done.Go(func() {
			defer func() { _ = near.Close() }() // it was only read
			if _, err := io.Copy(w, near); err != nil {
				s.mu.Lock()
				s.err = errors.Join(s.err, err)
				s.mu.Unlock()
				_, _ = io.Copy(io.Discard, near) // the guest waits for nobody
			}
		})
	}
	return s, nil
}

// started closes what is the process's alone from now on.
func (s *streams) started() {
	for _, f := range s.far {
		_ = f.Close()
	}
}

// wait waits for the end of the streams.
func (s *streams) wait() error {
	s.done.Wait()
	return s.err
}

// runBound runs a command that is killed when this program is. Linux kills it with
// the thread that started it, which therefore has to last as long.
func runBound(cmd *exec.Cmd, started func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Start()
	started()
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - consoleKept; over > consoleKept {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text[max(0, len(t.text)-consoleKept):]
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), "?"), "\r", "")
}

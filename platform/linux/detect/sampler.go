// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// Idler tells how long the machine's people have left it alone;
// *idle.Watcher of platform/linux/idle is one.
type Idler interface {
	Idle(now clock.Instant) (machine.Idle, error)
}

// Sampler measures load, idle times, swap and the disk of EXECUTE. It keeps
// the two files of procfs open and reads them into a buffer of its own, since
// it runs every few seconds as long as the EP lives. It is used by one
// goroutine.
type Sampler struct {
	clock clock.Clock
	idler Idler // may be nil: nobody watches
	load  *openText
	mem   *openText
	disk  *volume // nil when there is no EXECUTE to watch
	last  machine.Sample
}

var _ machine.Sampler = (*Sampler)(nil)

// NewSampler returns a sampler of the machine. The idler may be nil, then
// nothing is ever reported as used; execute may be empty, then disk space is
// never measured.
func NewSampler(sys System, c clock.Clock, idler Idler, execute string) *Sampler {
	s := &Sampler{
		clock: c,
		idler: idler,
		load:  &openText{path: filepath.Join(sys.Root.Proc, "loadavg"), fd: -1},
		mem:   &openText{path: filepath.Join(sys.Root.Proc, "meminfo"), fd: -1},
	}
	if execute != "" {
		s.disk = &volume{sys: sys, path: execute}
	}
	return s
}

// Sample implements machine.Sampler. What cannot be measured keeps its last
// value and is missing from Fresh.
func (s *Sampler) Sample(ctx context.Context) (machine.Sample, error) {
	var problems []error
	s.last.At = s.clock.Now()
	s.last.Fresh = 0
	note := func(what machine.Readings, err error) {
		if err != nil {
			problems = append(problems, err)
			return
		}
		s.last.Fresh |= what
	}
	note(machine.ReadLoad, s.readLoad())
	note(machine.ReadSwap, s.readSwap())
	if s.idler != nil {
		note(machine.ReadIdle, s.readIdle())
	} else {
		s.last.KeyboardIdle = machine.NeverUsed(s.last.At)
	}
	if s.disk != nil {
		found, err := s.disk.measure(ctx)
		if err == nil {
			s.last.FreeDiskKiB, s.last.TotalDiskKiB = found.availableKiB, found.totalKiB
		}
		note(machine.ReadDisk, err)
	}
	return s.last, errors.Join(problems...)
}

func (s *Sampler) readLoad() error {
	text, err := s.load.read()
	if err != nil {
		return err
	}
	load, err := proctext.LoadAvg(text)
	if err != nil {
		return broken(s.load.path, err)
	}
	s.last.LoadAvg = load
	return nil
}

func (s *Sampler) readSwap() error {
	text, err := s.mem.read()
	if err != nil {
		return err
	}
	total, ok := proctext.MemKiB(text, "MemTotal")
	if !ok {
		return broken(s.mem.path, errNoTotal)
	}
	// A kernel built without swap has no such line.
	free, _ := proctext.MemKiB(text, "SwapFree")
	s.last.FreeSwapKiB = clampKiB(uint64(free)) + clampKiB(uint64(total))
	return nil
}

func (s *Sampler) readIdle() error {
	idle, err := s.idler.Idle(s.last.At)
	s.last.KeyboardIdle, s.last.ConsoleIdle, s.last.HasConsole = idle.Keyboard, idle.Console, idle.HasConsole
	return err
}

// Close gives back the open files. A look at a file system that hangs cannot
// be called back; it ends by itself when the file system answers.
func (s *Sampler) Close() error {
	return errors.Join(s.load.close(), s.mem.close())
}

// openText is a small file of procfs that is read again and again.
type openText struct {
	path string
	fd   int // -1 when closed
	buf  [4096]byte
}

// read returns the file as it is now, at most the size of the buffer. The
// bytes belong to o and are valid until the next read.
func (o *openText) read() ([]byte, error) {
	if o.fd >= 0 {
		if n, err := unix.Pread(o.fd, o.buf[:], 0); err == nil {
			return o.buf[:n], nil
		}
		// The file of a procfs that was mounted anew; open it again.
		unix.Close(o.fd)
		o.fd = -1
	}
	fd, err := unix.Open(o.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError("open", o.path, err)
	}
	n, err := unix.Pread(fd, o.buf[:], 0)
	if err != nil {
		unix.Close(fd)
		return nil, pathError("read", o.path, err)
	}
	o.fd = fd
	return o.buf[:n], nil
}

func (o *openText) close() error {
	if o.fd < 0 {
		return nil
	}
	fd := o.fd
	o.fd = -1
	return unix.Close(fd)
}

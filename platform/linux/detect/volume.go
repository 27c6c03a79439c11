// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
)

// hangLimit is how long a file system may take to say how full it is. A dead
// NFS server takes for ever.
const hangLimit = 3 * time.Second

// ErrHung is the cause when the volume does not answer. It is remembered: as
// long as the first question is open, nobody waits for it again.
var ErrHung = errors.New("the file system does not answer")

// space is what one look at a volume finds.
type space struct {
	totalKiB, availableKiB int64
	device                 string // major:minor
	id                     string // the same as one number
	major                  uint32
	err                    error
}

// volume looks at one path, never waiting longer than hangLimit. Looking
// happens in a goroutine of its own, because a system call on a dead file
// system cannot be interrupted. At most one such goroutine exists per volume;
// it ends when the file system answers, and its answer is taken at the next
// look. A volume is used by one goroutine.
type volume struct {
	sys   System
	path  string
	name  bool       // ask for the device as well
	open  chan space // answer of a look that took too long; nil when none is out
	since time.Time  // when that look began
	wait  *time.Timer
}

// measure returns the present space of the volume.
func (v *volume) measure(ctx context.Context) (space, error) {
	answer := v.open
	if answer != nil {
		select {
		case s := <-answer:
			v.open = nil
			return s, s.err
		default:
			return space{}, errs.E("detect.volume", errs.Transient, v.path,
				fmt.Errorf("%w for %v", ErrHung, time.Since(v.since).Round(time.Second)))
		}
	}
	answer = make(chan space, 1)
	start := time.Now()
	go func() { answer <- v.look() }()
	if v.wait == nil {
		v.wait = time.NewTimer(hangLimit)
	} else {
		v.wait.Reset(hangLimit)
	}
	defer v.wait.Stop()
	select {
	case s := <-answer:
		return s, s.err
	case <-ctx.Done():
		v.open, v.since = answer, start
		return space{}, errs.E("detect.volume", errs.Transient, v.path, ctx.Err())
	case <-v.wait.C:
		v.open, v.since = answer, start
		return space{}, errs.E("detect.volume", errs.Transient, v.path, fmt.Errorf("%w within %v", ErrHung, hangLimit))
	}
}

// look asks the file system. It may block without end, so that measure runs it
// beside itself; it reads nothing of v that measure writes.
func (v *volume) look() space {
	var fs unix.Statfs_t
	if err := v.sys.Statfs(v.path, &fs); err != nil {
		return space{err: pathError("statfs", v.path, err)}
	}
	s := space{totalKiB: kib(fs.Blocks, blockSize(&fs)), availableKiB: kib(fs.Bavail, blockSize(&fs))}
	if !v.name {
		return s
	}
	var st unix.Stat_t
	if err := v.sys.Stat(v.path, &st); err == nil {
		s.id = strconv.FormatUint(uint64(st.Dev), 10)
		s.major = unix.Major(uint64(st.Dev))
		s.device = strconv.FormatUint(uint64(s.major), 10) + ":" + strconv.FormatUint(uint64(unix.Minor(uint64(st.Dev))), 10)
	}
	return s
}

// blockSize returns the unit in which the file system counts its blocks.
func blockSize(fs *unix.Statfs_t) uint64 {
	if fs.Frsize > 0 {
		return uint64(fs.Frsize)
	}
	return uint64(max(fs.Bsize, 0))
}

// kib multiplies without overflow; a file system may claim any size.
func kib(blocks, size uint64) int64 {
	hi, lo := bits.Mul64(blocks, size)
	return clampKiB(hi<<54 | lo>>10)
}

func pathError(call, path string, err error) error {
	kind := errs.Transient
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		kind = errs.NotFound
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		kind = errs.Denied
	}
	return errs.E("detect."+call, kind, path, err)
}

// Volume returns the scanner of the volume that path, normally EXECUTE, lies
// on, and of those of the slots that have a directory of their own
// (machine.SlotExecutes). It runs after the configuration named the paths and
// before machine.ConfigScanner, which applies DISK and RESERVED_DISK.
func Volume(sys System, path string, slots ...machine.SlotExecute) machine.Scanner {
	return volumeScanner{&volume{sys: sys, path: path, name: true}, slots}
}

type volumeScanner struct {
	v     *volume
	slots []machine.SlotExecute
}

func (volumeScanner) Name() string { return "volume" }

func (s volumeScanner) Scan(ctx context.Context, inv *machine.Inventory) error {
	others := ask(ctx, s.v.sys, s.slots)
	err := s.execute(ctx, inv)
	return errors.Join(err, others.volumes(inv, s.slots))
}

func (s volumeScanner) execute(ctx context.Context, inv *machine.Inventory) error {
	inv.Execute.Path = s.v.path
	found, err := s.v.measure(ctx)
	if err != nil {
		return err
	}
	inv.Execute = machine.Disk{
		Path:         s.v.path,
		Device:       found.device,
		ID:           found.id,
		TotalKiB:     found.totalKiB,
		AvailableKiB: found.availableKiB,
		FreeKiB:      found.availableKiB,
		Rotational:   s.rotational(found),
	}
	inv.Learn("statfs(2) of "+s.v.path, "Execute")
	return nil
}

// rotational says whether the disk below the volume turns. A volume without a
// block device (tmpfs, NFS, overlay) has major number 0 and does not. A
// partition has the answer in the directory of its disk.
func (s volumeScanner) rotational(found space) machine.Tristate {
	if found.device == "" {
		return machine.Unknown
	}
	if found.major == 0 {
		return machine.No
	}
	for _, place := range []string{"/queue/rotational", "/../queue/rotational"} {
		// Not cleaned: the kernel resolves .. behind the link of the device.
		text, err := readFile(maxText, s.v.sys.Root.Sys+"/dev/block/"+found.device+place)
		if err != nil || len(text) == 0 {
			continue
		}
		if text[0] == '1' {
			return machine.Yes
		}
		return machine.No
	}
	return machine.Unknown
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"encoding/binary"
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// instruction is one of the kernel's virtual machine, struct bpf_insn: an operation,
// the registers in a byte (destination below, source above), a jump or a place in
// memory relative to here, and a number.
type instruction struct {
	op     uint8
	regs   uint8
	offset int16
	number int32
}

// Operations, of include/uapi/linux/bpf.h.
const (
	opLoadWord    = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
	opSet         = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
	opAnd         = unix.BPF_ALU64 | unix.BPF_AND | unix.BPF_K
	opUnlessEqual = unix.BPF_JMP | unix.BPF_JNE | unix.BPF_K
	opExit        = unix.BPF_JMP | unix.BPF_EXIT
)

// deviceProgram lets all device files be opened and made but those in closed. The
// kernel runs it with register 1 at the struct bpf_cgroup_dev_ctx: the kind of device
// and what is wanted of it in one word, the major and the minor number in the two
// behind it. It returns in register 0 whether that may be. Version 2 has no file for
// that.
func deviceProgram(closed []host.Device) []instruction {
	const kind, major, minor = 2, 3, 4 // registers
	p := []instruction{
		{opLoadWord, kind | 1<<4, 0, 0},
		{opAnd, kind, 0, 0xffff}, // the upper half is what is wanted
		{opLoadWord, major | 1<<4, 4, 0},
		{opLoadWord, minor | 1<<4, 8, 0},
	}
	for _, d := range closed {
		k := int32(unix.BPF_DEVCG_DEV_CHAR)
		if d.Block {
			k = unix.BPF_DEVCG_DEV_BLOCK
		}
		p = append(p,
			instruction{opUnlessEqual, kind, 4, k},
			instruction{opUnlessEqual, major, 3, int32(d.Major)},
			instruction{opUnlessEqual, minor, 2, int32(d.Minor)},
			instruction{opSet, 0, 0, 0},
			instruction{opExit, 0, 0, 0},
		)
	}
	return append(p, instruction{opSet, 0, 0, 1}, instruction{opExit, 0, 0, 0})
}

// encode is the program as the kernel reads it.
func encode(p []instruction) []byte {
	var b []byte
	for _, i := range p {
		b = append(b, i.op, i.regs)
		b = binary.NativeEndian.AppendUint16(b, uint16(i.offset))
		b = binary.NativeEndian.AppendUint32(b, uint32(i.number))
	}
	return b
}

// attachDevices closes devices for the group of version 2 in dir and all below it,
// until it is removed. It is Unsupported where this process may not, or the kernel
// cannot. Programs that others have attached above go on to count.
func attachDevices(dir string, closed []host.Device) error {
	const op = "cgroup.Devices"
	group, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errs.E(op, errs.Broken, dir, err)
	}
	defer unix.Close(group)
	code, license := encode(deviceProgram(closed)), []byte("Apache-2.0\x00")
	// The beginning of union bpf_attr for BPF_PROG_LOAD: what the kernel does not
	// get is 0.
	load := struct {
		kind, count   uint32
		code, license uint64
		rest          [96]byte
	}{
		kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(code) / 8),
		code: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	program, err := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if err != nil {
		return errs.E(op, bpfKind(err), dir, err)
	}
	defer unix.Close(int(program))
	attach := struct{ target, program, kind, flags, replace uint32 }{
		uint32(group), uint32(program), unix.BPF_CGROUP_DEVICE, unix.BPF_F_ALLOW_MULTI, 0,
	}
	if _, err := bpf(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attach), unsafe.Sizeof(attach)); err != nil {
		return errs.E(op, bpfKind(err), dir, err)
	}
	return nil
}

func bpf(command uintptr, attr unsafe.Pointer, size uintptr) (uintptr, error) {
	for {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
		switch errno {
		case 0:
			return fd, nil
		case unix.EAGAIN: // a signal came
			continue
		}
		return 0, errno
	}
}

// bpfKind tells what this process may not, or this kernel cannot, from a failure.
func bpfKind(err error) errs.Kind {
	for _, n := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP} {
		if errors.Is(err, n) {
			return errs.Unsupported
		}
	}
	return errs.Broken
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// The first process of a PID namespace has duties: it waits for processes that have
// lost their parent, it cannot be killed by those of its namespace, and the kernel
// kills all of them when it ends. HTCondor starts the program condor_pid_ns_init for
// that, which starts the job. Here it is a process beside the job. It is no program
// on disk but 70 instructions at most (program_*.s), with a list of the system calls to
// make: it is there in a fifth of a millisecond and keeps one page of memory, where a
// Go program of this size would need 4 ms and 5 MiB for each job.

// call is one system call of an Init. A number below zero is the end of the list: from
// there on it waits for children, with the set of signals at the first argument.
type call struct {
	Number int64
	Args   [5]uint64
}

// Where the parts of the program are in its memory. program_*.s knows the second.
const (
	loadAt  = 0x200000
	listAt  = loadAt + 0x1000
	codeOff = 0x100
)

// image is a program for the machine that executes code with the calls of list. text
// stands behind the list; textAt says where.
func image(machine elf.Machine, code []byte, list []call, text []byte) []byte {
	var b bytes.Buffer
	size := uint64(listAt - loadAt + len(list)*callSize + len(text))
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Entry: loadAt + codeOff,
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2, Shentsize: 64,
	}
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: loadAt, Paddr: loadAt, Filesz: size, Memsz: size, Align: 0x1000},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16}, // nothing on it is executed
	}
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes everything
	put(head)
	put(segments)
	b.Write(make([]byte, codeOff-b.Len()))
	b.Write(code)
	b.Write(make([]byte, listAt-loadAt-b.Len()))
	put(list)
	b.Write(text)
	return b.Bytes()
}

const callSize = 6 * 8

// textAt is the address of what stands at offset of the text behind n calls.
func textAt(n, offset int) uint64 { return uint64(listAt + n*callSize + offset) }

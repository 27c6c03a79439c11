// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	// First is the first number of our projects: "ep" and two zeros.
	First = 0x65700000
	// numbers is how many there are.
	numbers = 1 << 16
	// tries is how many are looked at: each is a call of the kernel, and a machine with
	// so many that are in use is not measured in this way.
	tries = 4096
)

// entry is what a file system has in its books for one project.
type entry struct {
	bytes, files uint64
	limited      bool
}

func (e entry) free() bool { return e.bytes == 0 && e.files == 0 && !e.limited }

// The books of a file system, for one directory.
type books interface {
	read(id uint32) (entry, error)
	// join puts the directory into a project, whose what is made in it will be, too.
	join(id uint32) error
	// leave takes it out again.
	leave() error
}

// choose puts the directory into a project that nobody else has, and returns its
// number. skip is how many numbers to pass over after another had the same idea, a
// different number for each.
func choose(b books, skip func() uint32) (uint32, error) {
	at := uint32(0)
	for range tries {
		id := First + at%numbers
		at++
		was, err := b.read(id)
		if err != nil {
			return 0, err
		}
		if !was.free() {
			continue
		}
		if err := b.join(id); err != nil {
			return 0, err
		}
		is, err := b.read(id)
		if err == nil && is.files == 1 {
			return id, nil
		}
		if lerr := b.leave(); err != nil || lerr != nil {
			return 0, errors.Join(err, lerr)
		}
		at += skip()
	}
	return 0, errs.E("quota.choose", errs.Exhausted, "", fmt.Errorf("%d projects from %d on are in use", tries, First))
}

// The structures of the kernel, in its order of bytes.

const entrySize = 72

// readEntry reads an if_dqblk: limits and use of space, the same of files, times. Space
// is in bytes.
func readEntry(b *[entrySize]byte) entry {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	return entry{bytes: word(2), files: word(5), limited: word(0)|word(1)|word(3)|word(4) != 0}
}

const stateSize = 160

// counting reads an fs_quota_statv: whether projects are counted at all.
func counting(b *[stateSize]byte) bool {
	const projects = 1 << 4
	return binary.NativeEndian.Uint16(b[2:])&projects != 0
}

const attributesSize = 28

// attributes is an fsxattr.
type attributes [attributesSize]byte

// inherit is the flag by which what is made in a directory is of its project.
const inherit = 0x200

func (a *attributes) project() uint32 { return binary.NativeEndian.Uint32(a[12:]) }

func (a *attributes) set(id uint32, inherits bool) {
	flags := binary.NativeEndian.Uint32(a[0:]) &^ inherit
	if inherits {
		flags |= inherit
	}
	binary.NativeEndian.PutUint32(a[0:], flags)
	binary.NativeEndian.PutUint32(a[12:], id)
}

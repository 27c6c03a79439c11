// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

// disk is a file system's books, which directories share.
type disk map[uint32]*entry

type directory struct {
	disk
	in uint32
	// step is called before each call of the kernel.
	step  func()
	fails error
}

func (d *directory) at(id uint32) *entry {
	if d.disk[id] == nil {
		d.disk[id] = &entry{}
	}
	return d.disk[id]
}

func (d *directory) read(id uint32) (entry, error) {
	d.stop()
	return *d.at(id), d.fails
}

func (d *directory) join(id uint32) error {
	d.stop()
	d.at(d.in).files--
	d.in = id
	d.at(id).files++
	return nil
}

func (d *directory) stop() {
	if d.step != nil {
		d.step()
	}
}

func (d *directory) leave() error { return d.join(0) }

func one() uint32 { return 1 }

// A project is taken that has no files, no bytes and no limits of anybody.
func TestChoose(t *testing.T) {
	t.Parallel()
	used := disk{0: {files: 1}, First: {files: 1}, First + 1: {bytes: 4096}, First + 2: {limited: true}}
	d := &directory{disk: used}
	if id, err := choose(d, one); err != nil || id != First+3 || d.in != id {
		t.Errorf("%d, in %d, %v", id, d.in, err)
	}
	for i := range uint32(tries) {
		used[First+i] = &entry{files: 1}
	}
	d = &directory{disk: used}
	if id, err := choose(d, one); !errs.Is(err, errs.Exhausted) || d.in != 0 {
		t.Errorf("all are in use: %d, in %d, %v", id, d.in, err)
	}
	broken := errors.New("broken")
	if _, err := choose(&directory{disk: disk{}, fails: broken}, one); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// In whatever order the steps of several come, no two directories have one project in
// the end.
func TestChooseTogether(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		shared := disk{0: {files: 1000}}
		type starter struct {
			d         *directory
			turn, did chan bool // did is false once it has ended
			id        uint32
			err       error
		}
		var all, running []*starter
		for i := range rapid.IntRange(2, 5).Draw(t, "starters") {
			s := &starter{turn: make(chan bool), did: make(chan bool)}
			s.d = &directory{disk: shared, step: func() { s.did <- true; <-s.turn }}
			go func() {
				<-s.turn
				s.id, s.err = choose(s.d, func() uint32 { return uint32(i) })
				s.did <- false
			}()
			all = append(all, s)
		}
		for running = slices.Clone(all); len(running) > 0; {
			i := rapid.IntRange(0, len(running)-1).Draw(t, "next")
			running[i].turn <- true
			if !<-running[i].did {
				running = slices.Delete(running, i, i+1)
			}
		}
		for _, s := range all {
			if s.err != nil || s.d.in != s.id || shared[s.id].files != 1 {
				t.Errorf("%v: the project %d has %d files", s.err, s.id, shared[s.id].files)
			}
		}
	})
}

// The kernel's structures, as linux/quota.h, linux/dqblk_xfs.h and linux/fs.h have them.
func TestStructures(t *testing.T) {
	t.Parallel()
	var b [entrySize]byte
	for i := range uint64(8) {
		binary.NativeEndian.PutUint64(b[8*i:], i+1)
	}
	if got := readEntry(&b); got != (entry{bytes: 3, files: 6, limited: true}) {
		t.Errorf("%+v", got)
	}
	for i, want := range map[int]bool{0: true, 1: true, 2: false, 3: true, 4: true, 5: false, 6: false, 7: false} {
		b = [entrySize]byte{}
		b[8*i] = 1
		if got := readEntry(&b); got.limited != want {
			t.Errorf("the word %d limits: %v", i, got.limited)
		}
	}
	for flags, want := range map[uint16]bool{0: false, 0xf: false, 1 << 4: true, 3 << 4: true} {
		var b [stateSize]byte
		binary.NativeEndian.PutUint16(b[2:], flags)
		if got := counting(&b); got != want {
			t.Errorf("%#x: %v", flags, got)
		}
	}
	var a attributes
	binary.NativeEndian.PutUint32(a[0:], 0x80000040) // others' flags stay
	a.set(First, true)
	if a.project() != First || binary.NativeEndian.Uint32(a[0:]) != 0x80000240 {
		t.Errorf("%x", a)
	}
	a.set(0, false)
	if a.project() != 0 || binary.NativeEndian.Uint32(a[0:]) != 0x80000040 {
		t.Errorf("%x", a)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"testing"
)

// A reader of such files finds the code where the program begins, the calls where the
// code looks for them, and the text where the calls point. Nothing in it can be written.
func TestImage(t *testing.T) {
	t.Parallel()
	list := []call{{Number: 7, Args: [5]uint64{1, textAt(2, 8)}}, {Number: -1}}
	code, text := []byte{1, 2, 3}, []byte("12345678word\x00")
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		raw := image(machine, code, list, text)
		f, err := elf.NewFile(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Type != elf.ET_EXEC || len(f.Progs) != 2 {
			t.Errorf("%+v", f.FileHeader)
		}
		load, stack := f.Progs[0], f.Progs[1]
		if load.Type != elf.PT_LOAD || load.Flags != elf.PF_R|elf.PF_X || load.Filesz != uint64(len(raw)) || load.Off != 0 || stack.Type != elf.PT_GNU_STACK || stack.Flags&elf.PF_X != 0 {
			t.Errorf("%+v, %+v", load.ProgHeader, stack.ProgHeader)
		}
		memory, err := io.ReadAll(load.Open())
		if err != nil {
			t.Fatal(err)
		}
		at := func(address uint64) []byte { return memory[address-load.Vaddr:] }
		if !bytes.HasPrefix(at(f.Entry), code) {
			t.Error("the code is not where it begins")
		}
		var back [2]call
		if err := binary.Read(bytes.NewReader(at(listAt)), binary.LittleEndian, &back); err != nil || back != [2]call(list) {
			t.Errorf("the calls are %v, %v", back, err)
		}
		if got := at(back[0].Args[1]); !bytes.HasPrefix(got, []byte("word\x00")) {
			t.Errorf("the text is %q", got)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package gpu asks the libraries of GPU drivers for the devices of this
// machine: NVIDIA's management library (NVML), CUDA, HIP and OpenCL. They are
// loaded at run time, so that one program serves machines with and without
// them, and no cgo is needed. It owns the names of libraries and functions and
// the layout of what they fill in; what is shown and how is lib/gpu. It must
// never print, and must never trust what a library says of sizes.
//
//	libs := gpu.Libraries{Warn: warn, Note: note}
//	found, err := libs.NVIDIA(gpu.Wanted{})
package gpu

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// Bounds on what a library may claim.
const (
	maxDevices   = 1024
	maxInstances = 64
)

// Libraries asks the libraries that the dynamic linker finds (LD_LIBRARY_PATH,
// its cache and its standard directories). Warn is told of a library that is
// there but does not work, Note of every step. Both must be set.
type Libraries struct {
	Warn, Note func(message string)
}

// library is a loaded library.
type library struct {
	name   string
	handle uintptr
}

// load loads the first of names that is there. A library that is not there is
// nothing to warn of; one that cannot be loaded is.
//
// The dynamic linker keeps its message per thread, so the thread is held.
func (l *Libraries) load(names ...string) *library {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, name := range names {
		l.Note("loading " + name)
		handle, err := purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
		if err == nil {
			l.Note("asking " + name)
			return &library{name: name, handle: handle}
		}
		// There is no number to tell a missing file by, only the text, which
		// names the file that is missing: this one, or one that it needs.
		if strings.HasPrefix(err.Error(), name+": cannot open shared object file: No such file") {
			l.Note(err.Error())
			continue
		}
		l.Warn(fmt.Sprintf("%s is there but cannot be loaded: %v", name, err))
		return nil
	}
	return nil
}

// bind sets the function variable that fn points to; false where the library
// does not have that function, as old ones do not.
func (lib *library) bind(fn any, name string) bool {
	address, err := purego.Dlsym(lib.handle, name)
	if err != nil || address == 0 {
		return false
	}
	purego.RegisterFunc(fn, address)
	return true
}

// bindAll binds every function of the table, and returns the names of those
// that are missing, sorted.
func (lib *library) bindAll(table map[string]any) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if !lib.bind(table[name], name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// text returns the string in a buffer that a library filled: up to the first
// zero byte, what is not printable ASCII as a question mark.
func text(buf []byte) string {
	s, _, _ := strings.Cut(string(buf), "\x00")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// name returns a UUID that a library gave as a string. Other characters than
// UUIDs have become a question mark, so that none of them can end a list.
func name(buf []byte) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '/' {
			return r
		}
		return '?'
	}, text(buf))
}

// uuid returns sixteen bytes as a UUID is written.
func uuid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

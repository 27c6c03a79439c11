// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package gpu

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHIPUUID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		fix  uint16
		want string
	}{
		{strings.Repeat("\x00", 16), 0x74a0, ""},
		{strings.Repeat("\xff", 16), 0x74a0, ""},
		{"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef", 0, "01234567-89ab-cdef-0123-456789abcdef"},
		{"b0c0cb9338716a18", 0, ""},
		{"b0c0cb9338716a18", 0x74a0, "b0ff74a0-0000-1000-80c0-cb9338716a18"},
		{"b0c0cb9338716a18", 0xa, "b0ff000a-0000-1000-80c0-cb9338716a18"},
	} {
		if got := hipUUID([16]byte([]byte(tt.raw)), tt.fix); got != tt.want {
			t.Errorf("hipUUID(%q, %#x) = %q, want %q", tt.raw, tt.fix, got, tt.want)
		}
	}
}

func TestTextOfLibraries(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Tesla T4\x00rest": "Tesla T4", "no end": "no end", "": "", "\x00": "", "a\nb\xffc": "a?b?c",
	} {
		if got := text([]byte(in)); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := name([]byte("MIG-GPU-1a/2/3\", \x00x")), "MIG-GPU-1a/2/3???"; got != want {
		t.Errorf("name gives %q, want %q", got, want)
	}
}

// FuzzText makes printable lines of whatever a library wrote.
func FuzzText(f *testing.F) {
	f.Add([]byte("Tesla T4\x00rest"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if got := text(in); strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("text(%q) = %q", in, got)
		}
	})
}

// TestLoad loads what is there, and tells a file that is missing from one that
// is no library.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "libbroken.so")
	if err := os.WriteFile(broken, bytes.Repeat([]byte("no library\n"), 100), 0o755); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "libmissing.so")
	for _, tt := range []struct {
		names  []string
		loaded string
		warns  bool
	}{
		{[]string{missing}, "", false},
		{[]string{missing, "libc.so.6"}, "libc.so.6", false},
		{[]string{broken, "libc.so.6"}, "", true},
		{[]string{"libc.so.6", broken}, "libc.so.6", false},
	} {
		var warned, noted []string
		l := Libraries{Warn: func(s string) { warned = append(warned, s) }, Note: func(s string) { noted = append(noted, s) }}
		lib := l.load(tt.names...)
		switch {
		case (lib != nil) != (tt.loaded != "") || lib != nil && lib.name != tt.loaded:
			t.Errorf("%s: loaded %v, noted %q", tt.names, lib, noted)
		case (len(warned) > 0) != tt.warns:
			t.Errorf("%s: warned %q", tt.names, warned)
		}
		if lib == nil {
			continue
		}
		// A function that is there is called, one that is not is not bound.
		var length func(string) uint64
		var none func() int32
		if !lib.bind(&length, "strlen") || length("four") != 4 {
			t.Errorf("strlen of %s does not count", lib.name)
		}
		if lib.bind(&none, "nvmlInit_v2") || none != nil {
			t.Errorf("%s has nvmlInit_v2", lib.name)
		}
	}
}

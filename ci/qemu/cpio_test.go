// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpack reads an archive as the kernel does: a head of hexadecimal numbers, the
// name, the content, each padded to four bytes.
func unpack(t *testing.T, data []byte) []string {
	t.Helper()
	var got []string
	for at := 0; ; {
		if len(data) < at+110 || string(data[at:at+6]) != "070701" {
			t.Fatalf("no entry at %d of %d bytes", at, len(data))
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(string(data[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, names := field(1), field(6), field(11)
		name := string(data[at+110 : at+110+names-1])
		start := (at + 110 + names + 3) &^ 3
		if name == "TRAILER!!!" {
			return got
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d %s", name, mode, field(9), field(10), data[start:start+size]))
		at = (start + size + 3) &^ 3
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"a/program": 0o755, "a/text": 0o644} {
		if err := os.MkdirAll(filepath.Join(from, "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(from, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("text", filepath.Join(from, "a", "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	a := newArchive(&b)
	a.dir("usr/bin", 0o755)
	a.link("bin", "usr/bin")
	a.console()
	a.dir("/tmp", 0o777|fs.ModeSticky)
	a.text("/bin/x", 0o755, "12345")
	a.link("sbin/y", "x")
	a.copy("/src/a", filepath.Join(from, "a"))
	a.dir("/src/a", 0o700) // it is there
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"usr 40755 0:0 ", "usr/bin 40755 0:0 ", "bin 120777 0:0 usr/bin", "dev 40755 0:0 ", "dev/console 20600 5:1 ", "tmp 41777 0:0 ",
		"usr/bin/x 100755 0:0 12345", "usr/sbin 40755 0:0 ", "usr/sbin/y 120777 0:0 x",
		"src 40755 0:0 ", "src/a 40755 0:0 ", "src/a/link 100644 0:0 a/text", "src/a/program 100755 0:0 a/program", "src/a/text 100644 0:0 a/text",
	}
	if diff := cmp.Diff(want, unpack(t, b.Bytes())); diff != "" {
		t.Error(diff)
	}
	if b.Len()%4 != 0 || !a.has("/bin/x") || a.has("/bin/z") {
		t.Errorf("%d bytes; has x: %t, z: %t", b.Len(), a.has("/bin/x"), a.has("/bin/z"))
	}
}

// An archive without a file that it is said to have would be a guest that fails for
// no reason that one sees.
func TestArchiveOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	a := newArchive(&b)
	a.copy("x", filepath.Join(t.TempDir(), "absent"))
	a.text("y", 0o644, "y")
	if err := a.close(); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("%v", err)
	}
}

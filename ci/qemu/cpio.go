// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archive writes what the kernel unpacks as its first file system: the format that
// cpio calls newc. Everything in it belongs to root. The first error stays.
type archive struct {
	w     *bufio.Writer
	ino   int
	names map[string]bool
	err   error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: bufio.NewWriterSize(w, 1<<20), names: map[string]bool{}}
}

// File types of a mode, which the kernel reads.
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
	modeChar = 0o020000
)

// clean is the name under which a path of the guest is stored. In the guest bin,
// sbin and lib are links to those below usr, and an entry "bin" of a later archive
// would take the link away.
func clean(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for _, top := range []string{"bin", "sbin", "lib", "lib64"} {
		if name == top || strings.HasPrefix(name, top+"/") {
			return "usr/" + name
		}
	}
	return name
}

// has says whether there is an entry of that name already.
func (a *archive) has(name string) bool { return a.names[clean(name)] }

func (a *archive) entry(name string, mode uint32, size int64, major, minor int, content io.Reader) {
	if a.err != nil {
		return
	}
	a.ino++
	a.names[name] = true
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.ino, mode, 0, 0, 1, 0, size, 0, 0, major, minor, len(name)+1, 0)
	a.write(head + name + "\x00")
	a.pad(len(head) + len(name) + 1)
	if content != nil && a.err == nil {
		n, err := io.CopyN(a.w, content, size)
		if err != nil {
			a.err = fmt.Errorf("%s: %d of %d bytes: %w", name, n, size, err)
		}
		a.pad(int(size % 4))
	}
}

func (a *archive) write(s string) {
	if a.err == nil {
		_, a.err = a.w.WriteString(s)
	}
}

// pad fills up to a multiple of four after n bytes.
func (a *archive) pad(n int) { a.write("\x00\x00\x00"[:(4-n%4)%4]) }

// parents makes the directories above a clean name.
func (a *archive) parents(name string) {
	if up := path.Dir(name); up != "." && !a.names[up] {
		a.parents(up)
		a.entry(up, modeDir|0o755, 0, 0, 0, nil)
	}
}

func (a *archive) dir(name string, mode fs.FileMode) {
	if name = clean(name); !a.names[name] && name != "" {
		a.parents(name)
		bits := uint32(mode.Perm())
		if mode&fs.ModeSticky != 0 {
			bits |= 0o1000
		}
		a.entry(name, modeDir|bits, 0, 0, 0, nil)
	}
}

// text adds a file that has this content.
func (a *archive) text(name string, mode fs.FileMode, content string) {
	name = clean(name)
	a.parents(name)
	a.entry(name, modeFile|uint32(mode.Perm()), int64(len(content)), 0, 0, strings.NewReader(content))
}

// link adds a symbolic link. One at the top is not cleaned, for those links are
// what cleaning is about.
func (a *archive) link(name, target string) {
	if strings.Contains(name, "/") {
		name = clean(name)
		a.parents(name)
	}
	a.entry(name, modeLink|0o777, int64(len(target)), 0, 0, strings.NewReader(target))
}

func (a *archive) console() {
	a.dir("dev", 0o755)
	a.entry("dev/console", modeChar|0o600, 0, 5, 1, nil)
}

// copy adds a file of this machine, or all of a directory.
func (a *archive) copy(name, from string) {
	if a.err != nil {
		return
	}
	a.err = filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		a.copyOne(path.Join(name, filepath.ToSlash(rel)), file)
		return a.err
	})
}

// copyOne follows links: what a link of this machine says is seldom true in the
// guest.
func (a *archive) copyOne(name, file string) {
	info, err := os.Stat(file)
	if err != nil {
		a.err = err
		return
	}
	if info.IsDir() {
		a.dir(name, info.Mode())
		return
	}
	f, err := os.Open(file)
	if err != nil {
		a.err = err
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	name = clean(name)
	a.parents(name)
	a.entry(name, modeFile|uint32(info.Mode().Perm()), info.Size(), 0, 0, f)
}

// close ends the archive, so that another one may follow it.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, 0, 0, 0, nil)
	if a.err != nil {
		return fmt.Errorf("qemu: an archive: %w", a.err)
	}
	return a.w.Flush()
}

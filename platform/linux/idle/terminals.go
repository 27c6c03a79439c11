// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package idle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/machine/proctext"
	"github.com/execpoint/execpoint/platform/linux"
)

// maxUtmp bounds how much of utmp is read: over two thousand logins.
const maxUtmp = 1 << 20

// terminals keeps the paths of the terminals that count as logins. utmp and
// /dev are read again only when they changed; the list of pseudo-terminals is
// read every time, because its directory does not tell.
type terminals struct {
	root  linux.Root
	every bool

	paths  []string // of the last list
	utmp   version
	logins []string // from utmp
	dev    version
	fixed  []string // from /dev
	record int      // size of a utmp record, 0 before it is known
}

// version tells whether a file is still the one that was read.
type version struct {
	ino       uint64
	size      int64
	sec, nsec int64
	known     bool
}

func versionOf(st *unix.Stat_t) version {
	sec, nsec := st.Mtim.Unix()
	return version{ino: st.Ino, size: st.Size, sec: sec, nsec: nsec, known: true}
}

// list returns the terminals to look at, also when utmp cannot be read. The
// slice is valid until the next call.
func (t *terminals) list() ([]string, error) {
	var errUtmp error
	if !t.every {
		found, err := t.fromUtmp()
		if found {
			return t.logins, err
		}
		errUtmp = err
	}
	t.paths = append(t.paths[:0], t.fromDev()...)
	// Every pseudo-terminal that exists belongs to somebody.
	if dir, err := os.Open(filepath.Join(t.root.Dev, "pts")); err == nil {
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			if isNumber(name) {
				t.paths = append(t.paths, t.root.Dev+"/pts/"+name)
			}
		}
	}
	return t.paths, errUtmp
}

// fromUtmp refreshes the logins; found is false when there is no utmp.
func (t *terminals) fromUtmp() (found bool, err error) {
	path := t.root.Run + "/utmp"
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.utmp = version{}
		if notThere(err) {
			return false, nil
		}
		return false, fileError(path, err)
	}
	now := versionOf(&st)
	if t.utmp == now {
		return true, nil
	}
	text, err := readBounded(path, maxUtmp)
	if err != nil {
		t.utmp = version{}
		return false, fileError(path, err)
	}
	if t.record == 0 {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return false, err
		}
		t.record = proctext.UtmpRecordSize(unix.ByteSliceToString(u.Machine[:]))
	}
	names := proctext.UtmpLines(nil, text, t.record)
	slices.Sort(names)
	t.logins = t.logins[:0]
	for _, name := range slices.Compact(names) {
		t.logins = append(t.logins, filepath.Join(t.root.Dev, name))
	}
	t.utmp = now
	return true, nil
}

// fromDev refreshes the terminals that are nodes of /dev itself. With
// STARTD_HAS_BAD_UTMP these are all tty and pty devices; otherwise only the
// virtual consoles that are in use, which have a vcs device: the times of the
// others tell when the machine was booted.
func (t *terminals) fromDev() []string {
	var st unix.Stat_t
	if unix.Stat(t.root.Dev, &st) != nil {
		t.dev = version{}
		return nil
	}
	now := versionOf(&st)
	if t.dev == now {
		return t.fixed
	}
	t.fixed = t.fixed[:0]
	dir, err := os.Open(t.root.Dev)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if t.every {
			if strings.HasPrefix(name, "tty") || strings.HasPrefix(name, "pty") {
				t.fixed = append(t.fixed, filepath.Join(t.root.Dev, name))
			}
		} else if n, ok := strings.CutPrefix(name, "vcs"); ok && isNumber(n) {
			t.fixed = append(t.fixed, filepath.Join(t.root.Dev, "tty"+n))
		}
	}
	t.dev = now
	return t.fixed
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

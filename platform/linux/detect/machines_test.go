// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

var update = flag.Bool("update", false, "write the results into testdata/machines")

// fixture is a whole machine in one text: a description, then sections that
// begin with a line "-- name --". A name is a file of the machine; "name ->
// target" is a symbolic link; "q name" is a file written as one quoted Go
// string per line. Names with @ are what system calls answer (an error name
// makes the call fail) and @want is what must be found.
type fixture struct {
	name, head string
	sections   []section
}

type section struct{ header, name, text string }

func readFixture(t testing.TB, path string) fixture {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{name: strings.TrimSuffix(filepath.Base(path), ".txt")}
	for line := range strings.Lines(string(data)) {
		if header, ok := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- "); ok && strings.HasSuffix(line, " --\n") {
			f.sections = append(f.sections, section{header: line, name: header})
			continue
		}
		if len(f.sections) == 0 {
			f.head += line
			continue
		}
		s := &f.sections[len(f.sections)-1]
		s.text += line
	}
	return f
}

// system builds the machine below dir.
func (f fixture) system(t testing.TB, dir string) (sys System, want string) {
	t.Helper()
	sys = System{Root: linux.RootAt(dir), CloneUser: func() error { return unix.EPERM }}
	for _, s := range f.sections {
		name, text := s.name, s.text
		if quoted, ok := strings.CutPrefix(name, "q "); ok {
			name, text = quoted, ""
			for line := range strings.Lines(s.text) {
				plain, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
				if err != nil {
					t.Fatalf("%s: %s: %v", f.name, name, err)
				}
				text += plain + "\n"
			}
		}
		switch name {
		case "@uname":
			sys.Uname = fakeUname(text)
		case "@userns":
			sys.CloneUser = func() error { return errno(text) }
		case "@interfaces":
			sys.Interfaces = fakeInterfaces(t, text)
		case "@statfs":
			sys.Statfs, sys.Stat = fakeStatfs(t, text)
		case "@want":
			want = text
		default:
			file, target, link := strings.Cut(name, " -> ")
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if link {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sys, want
}

// errno returns the error a section names instead of an answer.
func errno(text string) error {
	switch strings.TrimSpace(text) {
	case "EPERM":
		return unix.EPERM
	case "ENOSPC":
		return unix.ENOSPC
	case "ENOENT":
		return unix.ENOENT
	case "EFAULT":
		return unix.EFAULT
	case "EACCES":
		return unix.EACCES
	case "EIO":
		return unix.EIO
	}
	return nil
}

func fakeUname(text string) func(*unix.Utsname) error {
	lines := append(strings.Split(text, "\n"), "", "", "", "", "")
	return func(u *unix.Utsname) error {
		if err := errno(text); err != nil {
			return err
		}
		for i, field := range []*[65]byte{&u.Sysname, &u.Nodename, &u.Release, &u.Version, &u.Machine} {
			copy(field[:64], lines[i])
		}
		return nil
	}
}

// fakeInterfaces reads lines of a name, a hardware address or -, what the card
// says about waking in the letters of ethtool (supported,enabled; d is none; !
// if it cannot, ? if we may not ask) and addresses.
func fakeInterfaces(t testing.TB, text string) func() ([]machine.Interface, error) {
	var all []machine.Interface
	if errno(text) == nil {
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			one := machine.Interface{Name: words[0], HardwareAddress: strings.TrimPrefix(words[1], "-")}
			switch words[2] {
			case "!":
				one.Wake.Err = errs.E("detect.wake", errs.Unsupported, one.Name, unix.EOPNOTSUPP)
			case "?":
				one.Wake.Err = errs.E("detect.wake", errs.Denied, one.Name, unix.EPERM)
			default:
				supported, enabled, _ := strings.Cut(words[2], ",")
				one.Wake.Supported, one.Wake.Enabled = wakeModes(supported), wakeModes(enabled)
			}
			for _, word := range words[3:] {
				p, err := netip.ParsePrefix(word)
				if err != nil {
					t.Fatal(err)
				}
				one.Addresses = append(one.Addresses, p)
			}
			all = append(all, one)
		}
	}
	return func() ([]machine.Interface, error) { return slices.Clone(all), errno(text) }
}

func wakeModes(letters string) (m machine.WakeModes) {
	for _, l := range letters {
		m |= map[rune]machine.WakeModes{'p': machine.WakePhysical, 'u': machine.WakeUnicast, 'm': machine.WakeMulticast,
			'b': machine.WakeBroadcast, 'a': machine.WakeARP, 'g': machine.WakeMagic, 's': machine.WakeMagicSecure}[l]
	}
	return m
}

// fakeStatfs reads "blocks available blocksize major:minor".
func fakeStatfs(t testing.TB, text string) (func(string, *unix.Statfs_t) error, func(string, *unix.Stat_t) error) {
	if err := errno(text); err != nil {
		return func(string, *unix.Statfs_t) error { return err }, func(string, *unix.Stat_t) error { return err }
	}
	var blocks, avail, major, minor uint64
	var size int64
	if _, err := fmt.Sscanf(text, "%d %d %d %d:%d", &blocks, &avail, &size, &major, &minor); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return func(_ string, fs *unix.Statfs_t) error {
			fs.Blocks, fs.Bavail, fs.Frsize, fs.Bsize = blocks, avail, size, size
			return nil
		}, func(_ string, st *unix.Stat_t) error {
			st.Dev = unix.Mkdev(uint32(major), uint32(minor))
			return nil
		}
}

// writeBack replaces the @want section of the fixture.
func (f fixture) writeBack(t testing.TB, path, want string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(f.head)
	for _, s := range f.sections {
		if s.name == "@want" {
			s.text = want
		}
		b.WriteString(s.header)
		b.WriteString(s.text)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

var errNoFixture = errors.New("no machine in testdata/machines")

// fixtures returns the paths of all machines.
func fixtures(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/machines/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal(errNoFixture, err)
	}
	return paths
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestField(t *testing.T) {
	t.Parallel()
	const status = "Name:\tCpus_allowed_list:\t9\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n"
	for key, want := range map[string]string{"Cpus_allowed_list": "0-1", "Cpus_allowed": "3", "Mems_allowed_list": "0"} {
		if got, ok := Field([]byte(status), key); !ok || string(got) != want {
			t.Errorf("Field(%s) = %q, %v, want %q", key, got, ok, want)
		}
	}
	for _, key := range []string{"cpus_allowed", "Cpus", ""} {
		if got, ok := Field([]byte(status), key); ok {
			t.Errorf("Field(%q) = %q", key, got)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte("A:\tb\nC: d"), "C")
	f.Add([]byte("::\n:"), "")
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		if v, ok := Field(text, key); len(v) > len(text) || !ok && v != nil {
			t.Errorf("Field(%q, %q) = %q", text, key, v)
		}
	})
}

type hostCase struct{ hosts, host, want string }

func hostCases() []hostCase {
	return []hostCase{
		{"127.0.0.1 localhost\n10.0.0.7 ep.cs.example.edu ep\n", "ep", "ep.cs.example.edu"},
		{"10.0.0.7 ep EP.Example.ORG. # ep.wrong.org\n", "ep", "EP.Example.ORG"},
		{"10.0.0.7\tep.example.org\tEP\n", "ep", "ep.example.org"},
		{"127.0.0.1 localhost.localdomain localhost ep\n127.0.1.1 ep.example.org ep\n", "ep", "ep.example.org"},
		{"127.0.0.1 localhost ep\n", "ep", ""},
		{"# 10.0.0.7 ep.example.org ep\n", "ep", ""},
		{"10.0.0.7 other.example.org other\n", "ep", ""},
		{"10.0.0.7 . ep\n10.0.0.7 .. ep\n", "ep", ""},
		{"ep.example.org\n", "ep", ""},
		{"", "ep", ""},
		{"10.0.0.7 ep.example.org \n", "", ""},
	}
}

func TestCanonicalHost(t *testing.T) {
	t.Parallel()
	for _, tt := range hostCases() {
		if got := CanonicalHost([]byte(tt.hosts), tt.host); got != tt.want {
			t.Errorf("CanonicalHost(%q, %s) = %q, want %q", tt.hosts, tt.host, got, tt.want)
		}
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, tt := range hostCases() {
		f.Add([]byte(tt.hosts), tt.host)
	}
	f.Fuzz(func(t *testing.T, hosts []byte, host string) {
		if got := CanonicalHost(hosts, host); got != "" && (!strings.Contains(got, ".") || strings.ContainsAny(got, " \t\n#")) {
			t.Errorf("CanonicalHost(%q, %q) = %q", hosts, host, got)
		}
	})
}

// login writes one record as a C library does.
func login(size int, kind int16, line string) []byte {
	rec := make([]byte, size)
	binary.NativeEndian.PutUint16(rec, uint16(kind))
	copy(rec[utmpLine:utmpLine+utmpLineLen], line)
	return rec
}

func TestUtmpLines(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"x86_64", "aarch64"} {
		size := UtmpRecordSize(machine)
		text := slices.Concat(
			login(size, 2, "~"), // boot
			login(size, 6, "tty2"),
			login(size, userProcess, "tty1"),
			login(size, userProcess, ":0"),
			login(size, userProcess, "unix:0"),
			login(size, userProcess, "pts/0"),
			login(size, 8, "pts/1"), // logged out
			login(size, userProcess, "/dev/pts/2"),
			login(size, userProcess, "/etc/passwd"),
			login(size, userProcess, "../../etc/passwd"),
			login(size, userProcess, ""),
			login(size, userProcess, strings.Repeat("t", 40)),
			login(size, userProcess, "cut off")[:size-1])
		want := []string{"tty1", "pts/0", "pts/2", strings.Repeat("t", utmpLineLen)}
		if got := UtmpLines(nil, text, size); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", machine, got, want)
		}
	}
	if got := UtmpLines(nil, make([]byte, 100), 0); got != nil {
		t.Errorf("records of no size: %q", got)
	}
	if UtmpRecordSize("x86_64") != 384 || UtmpRecordSize("aarch64") != 400 {
		t.Error("record sizes")
	}
}

func FuzzUtmpLines(f *testing.F) {
	f.Add(login(384, userProcess, "pts/0"), 384)
	f.Add(login(400, userProcess, "../x"), 400)
	f.Add([]byte{7, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		for _, line := range UtmpLines(nil, text, size) {
			if line == "" || line[0] == '/' || strings.Contains(line, "..") || strings.Contains(line, "\x00") || len(line) > utmpLineLen {
				t.Errorf("%q", line)
			}
		}
	})
}

func irqTexts() []string {
	return []string{"12,0,3\n", "7\n", "0,0\n", "", "\n", "1,,2\n", "1,\n", ",1", "x", "1 2", "99999999999999999999,1\n"}
}

func TestIRQCount(t *testing.T) {
	t.Parallel()
	want := []uint64{15, 7, 0}
	for i, text := range irqTexts() {
		got, err := IRQCount([]byte(text))
		if i < len(want) {
			if err != nil || got != want[i] {
				t.Errorf("IRQCount(%q) = %d, %v, want %d", text, got, err, want[i])
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("IRQCount(%q) = %d, %v, want an error", text, got, err)
		}
	}
}

func FuzzIRQCount(f *testing.F) {
	for _, s := range irqTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, err := IRQCount(text); err != nil && n != 0 {
			t.Errorf("IRQCount(%q) = %d, %v", text, n, err)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Field returns the value of a "Key:<blanks>value" line, such as
// Cpus_allowed_list of /proc/self/status, and whether the line is there.
func Field(text []byte, key string) ([]byte, bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if len(line) > len(key) && line[len(key)] == ':' && string(line[:len(key)]) == key {
			return bytes.TrimSpace(line[len(key)+1:]), true
		}
	}
	return nil, false
}

// CanonicalHost returns the qualified name that an /etc/hosts file gives to
// host: the first name with a dot on a line that lists host. "" when there is
// none. Names are compared without case.
func CanonicalHost(hosts []byte, host string) string {
	if host == "" {
		return ""
	}
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		qualified, listed := "", false
		for _, name := range fields[1:] {
			if strings.EqualFold(name, host) {
				listed = true
			}
			if qualified == "" && strings.Contains(strings.Trim(name, "."), ".") && !strings.HasPrefix(strings.ToLower(name), "localhost.") {
				qualified = strings.TrimSuffix(name, ".")
			}
		}
		if listed && qualified != "" {
			return qualified
		}
	}
	return ""
}

// The layout of one record of /run/utmp: type at 0, line at 8 everywhere.
const (
	utmpLine    = 8
	utmpLineLen = 32
	userProcess = 7
)

// UtmpRecordSize returns the size of a record of /run/utmp for the kernel's
// machine word: C libraries keep 32-bit times in it where a 32-bit ancestor
// has to read the same file, and 64-bit times elsewhere.
func UtmpRecordSize(machine string) int {
	switch machine {
	case "aarch64", "riscv64", "loongarch64", "alpha":
		return 400
	}
	return 384
}

// UtmpLines appends to lines the terminals on which somebody is logged in,
// such as tty1 and pts/0, in the order of the file, whose records have size
// bytes. Lines that an X server made up (":0", "unix:0") and names that are no
// path below /dev are left out. A cut-off last record is ignored.
func UtmpLines(lines []string, text []byte, size int) []string {
	if size < utmpLine+utmpLineLen {
		return lines
	}
	for ; len(text) >= size; text = text[size:] {
		if int16(binary.NativeEndian.Uint16(text)) != userProcess {
			continue
		}
		line, _, _ := bytes.Cut(text[utmpLine:utmpLine+utmpLineLen], []byte{0})
		name := strings.TrimPrefix(string(line), "/dev/")
		if name == "" || name[0] == '/' || strings.Contains(name, ":") || strings.Contains(name, "..") {
			continue
		}
		lines = append(lines, name)
	}
	return lines
}

// IRQCount returns the sum of the per-processor counters of one interrupt, as
// in /sys/kernel/irq/1/per_cpu_count: "12,0,3". It does not allocate.
func IRQCount(text []byte) (uint64, error) {
	var sum, n uint64
	digits := 0
	text = bytes.TrimRight(text, "\n")
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9' && digits < 19:
			n, digits = n*10+uint64(c-'0'), digits+1
		case c == ',' && digits > 0:
			sum, n, digits = sum+n, 0, 0
		default:
			return 0, malformed("interrupt counters", text)
		}
	}
	if digits == 0 {
		return 0, malformed("interrupt counters", text)
	}
	return sum + n, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
)

// tick is the unit of times in /proc: the kernel shows 100 to a second on
// every architecture that Go knows.
const tick = 10 * time.Millisecond

// Stat is what we need of /proc/<pid>/stat. Times are in clock ticks.
type Stat struct {
	PID     int
	Comm    string
	State   byte // R S D T t Z X …
	Parent  int
	Session int
	User    uint64 // of the process alone
	Sys     uint64
	KidUser uint64 // of children it has waited for
	KidSys  uint64
	Start   uint64 // since boot
	Size    uint64 // address space, bytes
	RSS     int64  // pages
}

// Dead reports whether only the remains of a process are there.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

// ParseStat reads the text of /proc/<pid>/stat. The name of the program is in
// parentheses and may hold anything, parentheses and line ends included. Errors hold
// copies of what they quote, so that text may stand on the stack.
func ParseStat(text []byte) (Stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return Stat{}, errors.New("no program name in parentheses")
	}
	var s Stat
	var err error
	if s.PID, err = strconv.Atoi(string(bytes.TrimSpace(text[:open]))); err != nil || s.PID <= 0 {
		return Stat{}, fmt.Errorf("%q is no process id", string(text[:open]))
	}
	s.Comm = string(text[open+1 : end])
	const last = 24
	var rest [last - 2][]byte // rest[0] is field 3 of the manual's count
	n := 0
	for tail := bytes.TrimSpace(text[end+1:]); n < len(rest) && len(tail) > 0; n++ {
		word := bytes.IndexFunc(tail, unicode.IsSpace)
		if word < 0 {
			word = len(tail)
		}
		rest[n], tail = tail[:word], bytes.TrimSpace(tail[word:])
	}
	if n < len(rest) {
		return Stat{}, fmt.Errorf("only %d fields behind the name", n)
	}
	if len(rest[0]) != 1 {
		return Stat{}, fmt.Errorf("%q is no state", string(rest[0]))
	}
	s.State = rest[0][0]
	number := func(field int) uint64 {
		n, e := strconv.ParseUint(string(rest[field-3]), 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: %q is no number", field, string(rest[field-3]))
		}
		return n
	}
	signed := func(field int) int64 {
		n, e := strconv.ParseInt(string(rest[field-3]), 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: %q is no number", field, string(rest[field-3]))
		}
		return n
	}
	s.Parent, s.Session = int(signed(4)), int(signed(6))
	s.User, s.Sys = number(14), number(15)
	// children's times can be negative in text on some kernels: signed there
	s.KidUser, s.KidSys = uint64(max(0, signed(16))), uint64(max(0, signed(17)))
	s.Start, s.Size, s.RSS = number(22), number(23), signed(24)
	if err != nil {
		return Stat{}, err
	}
	return s, nil
}

// HasEnv reports whether the text of /proc/<pid>/environ holds entry, a whole
// NAME=value.
func HasEnv(text []byte, entry string) bool {
	if entry == "" {
		return false
	}
	for item := range bytes.SplitSeq(text, []byte{0}) {
		if string(item) == entry {
			return true
		}
	}
	return false
}

// bootOffset reads in the text of /proc/self/timens_offsets what is added to the
// time since boot, in clock ticks; 0 for text that says nothing of it.
func bootOffset(text []byte) int64 {
	const ticks = int64(time.Second / tick)
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) != 3 || string(words[0]) != "boottime" {
			continue
		}
		seconds, err := strconv.ParseInt(string(words[1]), 10, 64)
		nanos, nerr := strconv.ParseInt(string(words[2]), 10, 64)
		if err == nil && nerr == nil {
			return seconds*ticks + nanos/int64(tick)
		}
	}
	return 0
}

// ParseArgs takes the text of /proc/<pid>/cmdline, or its beginning, apart.
func ParseArgs(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	var args []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		args = append(args, string(word))
	}
	return args
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number reads a file that holds one decimal number. The word "max" is -1.
func Number(text []byte) (int64, error) {
	word := strings.TrimSpace(string(text))
	if word == "max" {
		return -1, nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", clip(word))
	}
	return n, nil
}

// Field finds the number behind key in a file of "key number" lines, such as
// memory.stat, memory.oom_control, cpu.stat or memory.events. ok is false when
// the file has no such key.
func Field(text []byte, key string) (n int64, ok bool, err error) {
	for line := range bytes.Lines(text) {
		name, value, found := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !found || string(name) != key {
			continue
		}
		n, err := Number(value)
		if err != nil {
			return 0, true, fmt.Errorf("%s: %w", key, err)
		}
		return n, true, nil
	}
	return 0, false, nil
}

// IO is what a group read from and wrote to block devices.
type IO struct {
	ReadBytes, WriteBytes int64
	Reads, Writes         int64 // operations
}

// IOStat adds up the devices of a file like io.stat, whose lines are a device
// and pairs "key=number".
func IOStat(text []byte) (sum IO, err error) {
	for line := range strings.Lines(string(text)) {
		for i, pair := range strings.Fields(line) {
			key, value, found := strings.Cut(pair, "=")
			if i == 0 || !found {
				continue // the device
			}
			var to *int64
			switch key {
			case "rbytes":
				to = &sum.ReadBytes
			case "wbytes":
				to = &sum.WriteBytes
			case "rios":
				to = &sum.Reads
			case "wios":
				to = &sum.Writes
			default:
				continue
			}
			n, err := Number([]byte(value))
			if err != nil {
				return IO{}, fmt.Errorf("%s: %w", key, err)
			}
			*to += n
		}
	}
	return sum, nil
}

// Stall is what a pressure file such as memory.pressure tells: for how long some
// processes of the group waited, and for how long all of them did. ok is false where
// it tells nothing, as for one that the kernel was told not to keep.
type Stall struct{ Some, Full time.Duration }

// Pressure reads such a file, whose lines are "some avg10=0.00 … total=MICROSECONDS".
func Pressure(text []byte) (s Stall, ok bool, err error) {
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var to *time.Duration
		switch words[0] {
		case "some":
			to = &s.Some
		case "full":
			to = &s.Full
		default:
			continue // of a later kernel
		}
		for _, pair := range words[1:] {
			key, value, _ := strings.Cut(pair, "=")
			if key != "total" {
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/int64(time.Microsecond) {
				return Stall{}, false, fmt.Errorf("%s: %q is no number of microseconds", words[0], clip(value))
			}
			*to, ok = time.Duration(n)*time.Microsecond, true
		}
	}
	return s, ok, nil
}

// Pids reads cgroup.procs or tasks.
func Pids(text []byte) ([]int, error) {
	var pids []int
	for line := range bytes.Lines(text) {
		word := strings.TrimSpace(string(line))
		if word == "" {
			continue
		}
		pid, err := strconv.Atoi(word)
		if err != nil || pid < 0 {
			return pids, fmt.Errorf("%q is no process id", clip(word))
		}
		if pid == 0 {
			return pids, errors.New("the group holds a process of another pid namespace")
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

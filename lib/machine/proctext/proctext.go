// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proctext reads texts that a Linux kernel or distribution writes:
// bytes in, values out, on every operating system. It owns only what
// prometheus/procfs does not parse, parses for one architecture at a time
// (/proc/cpuinfo), parses without a bound (processor lists) or parses at a
// price that a reading every few seconds should not have (load average, free
// swap). It must never open a file, and never panic or grow beyond the size of
// its input, whatever the bytes are.
package proctext

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// ErrMalformed is the cause of every error of this package.
var ErrMalformed = errors.New("malformed")

func malformed(what string, text []byte) error {
	const most = 60
	if len(text) > most {
		text = text[:most]
	}
	return fmt.Errorf("%w %s %q", ErrMalformed, what, text)
}

// LoadAvg returns the one-minute load average of /proc/loadavg. It does not
// allocate.
func LoadAvg(text []byte) (float64, error) {
	word, _, _ := bytes.Cut(bytes.TrimLeft(text, " \t"), []byte(" "))
	// The kernel prints two decimals; a hand-made reading needs no string.
	var whole, frac, scale float64 = 0, 0, 1
	digits, dot := 0, false
	for _, c := range bytes.TrimRight(word, "\n") {
		switch {
		case c >= '0' && c <= '9' && digits < 15:
			digits++
			if dot {
				frac, scale = frac*10+float64(c-'0'), scale*10
			} else {
				whole = whole*10 + float64(c-'0')
			}
		case c == '.' && !dot:
			dot = true
		default:
			return 0, malformed("load average", text)
		}
	}
	if digits == 0 {
		return 0, malformed("load average", text)
	}
	return whole + frac/scale, nil
}

// MemKiB returns the amount of one line of /proc/meminfo, such as SwapFree,
// in KiB, and whether the line is there. It does not allocate.
func MemKiB(text []byte, field string) (int64, bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if len(line) <= len(field) || line[len(field)] != ':' || string(line[:len(field)]) != field {
			continue
		}
		value, ok := bytes.CutSuffix(bytes.TrimSpace(line[len(field)+1:]), []byte(" kB"))
		if !ok {
			return 0, false
		}
		n, err := atoi(value)
		return n, err == nil
	}
	return 0, false
}

// Limit reads a control-group file that holds one amount or the word max.
// Unlimited is told by false; so is an amount above 2^60, which is how
// control groups of version 1 say unlimited, and an amount below zero.
func Limit(text []byte) (int64, bool, error) {
	text = bytes.TrimSpace(text)
	if string(text) == "max" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return 0, false, nil
		}
		return 0, false, malformed("limit", text)
	}
	if n < 0 || n > 1<<60 {
		return 0, false, nil
	}
	return n, true, nil
}

// CPUMax reads cpu.max of a version 2 control group and returns the quota in
// processors, false when it is unlimited.
func CPUMax(text []byte) (float64, bool, error) {
	quota, period, ok := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	if !ok {
		return 0, false, malformed("cpu.max", text)
	}
	if string(quota) == "max" {
		return 0, false, nil
	}
	q, err1 := atoi(quota)
	p, err2 := atoi(bytes.TrimSpace(period))
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false, malformed("cpu.max", text)
	}
	return float64(q) / float64(p), true, nil
}

// atoi reads a whole decimal number that is not negative, without allocating.
func atoi(text []byte) (int64, error) {
	if len(text) == 0 || len(text) > 18 {
		return 0, malformed("number", text)
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, malformed("number", text)
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"time"
)

// Uptime returns the first number of /proc/uptime: the time since boot, sleep
// included.
func Uptime(text []byte) (time.Duration, error) {
	word, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	whole, frac, _ := bytes.Cut(word, []byte("."))
	s, err := atoi(whole)
	if err != nil || s > int64(1<<62/time.Second) {
		return 0, malformed("uptime", text)
	}
	up := time.Duration(s) * time.Second
	unit := time.Second
	for _, c := range frac[:min(len(frac), 9)] {
		if c < '0' || c > '9' {
			return 0, malformed("uptime", text)
		}
		unit /= 10
		up += time.Duration(c-'0') * unit
	}
	return up, nil
}

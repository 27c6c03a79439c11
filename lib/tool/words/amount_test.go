// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0.0 s", 1500 * time.Millisecond: "1.5 s", 10 * time.Second: "10 s", 119 * time.Second: "119 s",
		2 * time.Minute: "2 min 0 s", 119*time.Minute + 59*time.Second: "119 min 59 s", 2 * time.Hour: "2 h 0 min", 50*time.Hour + 61*time.Second: "50 h 1 min",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", 5 << 29: "2.5 GiB", 3 << 40: "3 TiB", 5000 << 40: "5000 TiB", -5: "-5 B",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

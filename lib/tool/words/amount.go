// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"time"
)

// Short is a duration with as many digits as a person wants: 1.5 s, 42 s,
// 4 min 12 s, 3 h 5 min. One below zero is 0 s.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Size is a number of bytes in the largest unit of 1024 that it reaches, with four
// digits: 1.5 GiB.
func Size(b int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.n {
			return fmt.Sprintf("%.4g %s", float64(b)/float64(u.n), u.name)
		}
	}
	return fmt.Sprintf("%d B", b)
}

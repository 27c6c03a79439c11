// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/clock"
)

// Clock returns the clock of this machine. Its boot time is CLOCK_BOOTTIME,
// which counts while the machine sleeps; a lease must run out in a suspend,
// and Go's own monotonic clock would not. The clock is safe for concurrent use.
func Clock() clock.Clock { return bootClock{} }

type bootClock struct{}

func (bootClock) Now() clock.Instant {
	var ts unix.Timespec
	// CLOCK_BOOTTIME exists since Linux 2.6.39, long before any kernel Go
	// runs on, so that only a wrong address could make this fail.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("platform/linux: clock_gettime(CLOCK_BOOTTIME): " + err.Error())
	}
	return clock.Instant{Wall: time.Now(), Boot: time.Duration(ts.Nano())}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
)

// Readings is a set of the readings a sample consists of.
type Readings uint8

// The readings.
const (
	ReadLoad Readings = 1 << iota
	ReadIdle
	ReadSwap
	ReadDisk

	AllReadings = ReadLoad | ReadIdle | ReadSwap | ReadDisk
)

// Sample is how busy the machine is at one moment: everything a policy may
// look at that changes by itself. It is a plain value without references.
type Sample struct {
	At    clock.Instant
	Fresh Readings // what was measured for this sample; the rest is the last known value

	// LoadAvg is the one-minute load average of the whole machine. The part
	// that jobs cause (CondorLoadAvg) is for the engine to tell.
	LoadAvg float64

	// KeyboardIdle is the time since any keyboard, mouse, terminal or remote
	// login was used, and never above ConsoleIdle. Where nothing was ever seen
	// it is the time since 1970, which is what HTCondor publishes then.
	KeyboardIdle time.Duration
	// ConsoleIdle is the time since the console was used; meaningful only with
	// HasConsole, that is when there is a device to watch.
	ConsoleIdle time.Duration
	HasConsole  bool

	FreeSwapKiB  int64 // as Inventory.SwapKiB: free swap space plus RAM
	FreeDiskKiB  int64 // available on the volume of EXECUTE; see Disk.Usable
	TotalDiskKiB int64
}

// Has reports whether all of want were measured for this sample.
func (s Sample) Has(want Readings) bool { return s.Fresh&want == want }

// Idle is how long the people of a machine have left it alone.
type Idle struct {
	Keyboard   time.Duration // see Sample.KeyboardIdle
	Console    time.Duration // see Sample.ConsoleIdle
	HasConsole bool
}

// NeverUsed is the idle time of a machine that nobody was ever seen to use:
// the time since 1970, as HTCondor has it, so that no comparison with a
// reasonable span calls the machine busy.
func NeverUsed(now clock.Instant) time.Duration {
	return time.Duration(max(0, now.Wall.Unix())) * time.Second
}

// Sampler measures. Sample is called every POLLING_INTERVAL for years, so it
// is cheap; it returns what it could measure together with an error that names
// what it could not, and it returns in bounded time even when a file system
// hangs. A Sampler is used by one goroutine; Close gives back what it holds.
type Sampler interface {
	Sample(ctx context.Context) (Sample, error)
	Close() error
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

// Limits are what a family may take of the machine. A field that is nil or zero
// leaves what the parent has.
type Limits struct {
	Core         *int64 // largest core file in bytes, soft and hard
	Stack        *int64 // largest stack in bytes, soft; cut at the hard limit
	AddressSpace *int64 // largest address space of each process in bytes, soft and hard
	// OOMScore is the preference of the kernel's memory killer (Linux:
	// oom_score_adj); ignored where not permitted.
	OOMScore *int
	// NoNewPrivileges keeps the processes from gaining rights by what they execute.
	NoNewPrivileges bool
	// Group needs a control group. A spawner that has none for the family leaves it
	// out, see Measured.Grouped.
	Group GroupLimits
}

// GroupLimits are those that a family has as a whole.
type GroupLimits struct {
	// CPUWeight is the family's share of the processors while they are short,
	// 100 for each core.
	CPUWeight int
	// CPUs are the only processors that it may use, of those that this process may;
	// empty is all of these. Without a control group each process has them and can
	// free itself.
	CPUs   []int
	Memory MemoryLimits
	// Processes is how many processes and threads it may have.
	Processes int64
	// Closed are the device files that it may not open.
	Closed []Device
}

// MemoryLimits are in bytes. A pointer that is nil leaves the system's.
type MemoryLimits struct {
	Hard *int64 // beyond it a process of the family is killed
	Soft *int64 // beyond it the family is slowed down and its memory taken back first
	// First is where its memory is taken back first while the machine has little of
	// it. The family is not slowed down. Not every system has that.
	First *int64
	Low   *int64 // below it nothing is taken back while others have some
	Swap  *int64 // what it may have in swap besides Hard, 0 for none
}

// Device is a special file by its numbers.
type Device struct {
	Block        bool
	Major, Minor uint32
}

// GPU is a graphics processor by its long name ("GPU-6a96bd13-…") and its file.
type GPU struct {
	UUID string
	Device
}

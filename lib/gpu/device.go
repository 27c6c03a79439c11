// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gpu turns what the libraries of GPU drivers say about the devices of
// a machine into the text that a startd reads: which devices there are, under
// which names, and their properties as ClassAds. It owns the names of devices
// and attributes, the choice of which devices are shown, and a table of devices
// that can be simulated. It must never load a library, read the environment or
// print; platform/linux/gpu asks the libraries, bin/condor_gpu_discovery prints.
//
//	found := gpu.Found{Devices: []gpu.Device{{From: gpu.CUDA, UUID: "6a96bd13-70bc-6494-6d62-1b77a9a7f29f"}}}
//	gpu.Text(found, gpu.Options{Tag: "GPUs", Nested: true}) // DetectedGPUs="GPU-6a96bd13"
package gpu

// Fact is something a library may or may not tell: zero is a value, unknown is
// none. The zero Fact is unknown.
type Fact[T any] struct {
	Value T
	Known bool
}

// Is returns the known fact v.
func Is[T any](v T) Fact[T] { return Fact[T]{Value: v, Known: true} }

// or returns f, or other where f is unknown.
func (f Fact[T]) or(other Fact[T]) Fact[T] {
	if f.Known {
		return f
	}
	return other
}

// Source is the library that told of a device. It decides which attributes the
// device has and how they are written.
type Source uint8

// The sources.
const (
	CUDA   Source = iota // the CUDA driver or run-time library, or NVML in its place
	NVML                 // the management library: MIG instances, and devices that CUDA does not show
	HIP                  // the run-time library of ROCm
	OpenCL               // an OpenCL loader
)

// Capability is a compute capability.
type Capability struct{ Major, Minor int }

// Device is one GPU or MIG instance, as its library tells of it. Empty strings
// and unknown facts have no attribute.
type Device struct {
	From   Source
	UUID   string // bare hexadecimal from CUDA and HIP, beginning with GPU- or MIG- from NVML
	Name   string
	PCI    string // domain:bus:device.function
	Driver string // version of NVIDIA's driver

	Memory     Fact[uint64] // bytes
	Capability Fact[Capability]
	ECC        Fact[bool]
	ClockKHz   Fact[int]
	Units      Fact[int] // multiprocessors
	Version    Fact[int] // newest CUDA that the driver supports, 1000*major+10*minor; of HIP 10000000*major+100000*minor+patch
	XNACK      Fact[int]
	Warp       Fact[int] // threads

	ROCm   int    // major version of the HIP library, for From HIP
	OpenCL string // version of OpenCL, for From OpenCL
}

// Live is what changes while a device works.
type Live struct {
	FanPercent Fact[uint32]
	Milliwatts Fact[uint32]
	Celsius    Fact[uint32]
	SingleBit  Fact[uint64] // memory errors since the driver was loaded that were corrected
	DoubleBit  Fact[uint64] // and that were not
}

// Found is all that the libraries of one machine told.
type Found struct {
	// Devices are those that have a number, in the order of their numbers: of
	// CUDA, of HIP behind them, or of OpenCL.
	Devices []Device
	// Prefix stands before the number in a device's name: CUDA, GPU or OCL.
	Prefix string
	// Managed are those that NVML told of: MIG instances, then whole devices.
	// One that is also in Devices is shown once.
	Managed []Device
	// Parents maps the UUID of a device that is split, as NVML writes it, to
	// those of its instances. A split device is not shown itself.
	Parents map[string][]string
	// Live has what changes, by Device.UUID.
	Live map[string]Live
}

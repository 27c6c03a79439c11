// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package gpu

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/gpu"
)

// status is what a function of NVML returns.
type status int32

// ok is success, of every library.
const ok = 0

// nvml is NVIDIA's management library. Functions that are nil are not in this
// version of it.
type nvml struct {
	*library
	note func(string)

	errorString func(status) string

	initialize, shutdown func() status
	count                func(*uint32) status
	byIndex              func(uint32, *uintptr) status
	byUUID               func(string, *uintptr) status
	migMax               func(uintptr, *uint32) status
	migByIndex           func(uintptr, uint32, *uintptr) status

	name, uuid    func(uintptr, *byte, uint32) status
	pci           func(uintptr, *[256]byte) status
	memory        func(uintptr, *[3]uint64) status
	capability    func(uintptr, *int32, *int32) status
	maxClock      func(uintptr, int32, *uint32) status
	attributes    func(uintptr, *[256]byte) status
	ecc           func(uintptr, *int32, *int32) status
	cores         func(uintptr, *uint32) status
	driver        func(*byte, uint32) status
	cuda          func(*int32) status
	fan, power    func(uintptr, *uint32) status
	temperature   func(uintptr, int32, *uint32) status
	eccErrorTotal func(uintptr, int32, int32, *uint64) status
}

// openNVML loads and starts the library; nil where there is none that works.
func (l *Libraries) openNVML() *nvml {
	lib := l.load("libnvidia-ml.so.1", "libnvidia-ml.so")
	if lib == nil {
		return nil
	}
	n := &nvml{library: lib, note: l.Note}
	if missing := lib.bindAll(map[string]any{
		"nvmlInit_v2": &n.initialize, "nvmlShutdown": &n.shutdown, "nvmlDeviceGetCount_v2": &n.count,
		"nvmlDeviceGetHandleByIndex_v2": &n.byIndex, "nvmlDeviceGetUUID": &n.uuid,
	}); len(missing) > 0 {
		l.Warn(fmt.Sprintf("%s has no %s, so it is not used", lib.name, strings.Join(missing, ", ")))
		return nil
	}
	missing := lib.bindAll(map[string]any{
		"nvmlErrorString": &n.errorString, "nvmlDeviceGetHandleByUUID": &n.byUUID,
		"nvmlDeviceGetMaxMigDeviceCount": &n.migMax, "nvmlDeviceGetMigDeviceHandleByIndex": &n.migByIndex,
		"nvmlDeviceGetName": &n.name, "nvmlDeviceGetPciInfo_v3": &n.pci, "nvmlDeviceGetMemoryInfo": &n.memory,
		"nvmlDeviceGetCudaComputeCapability": &n.capability, "nvmlDeviceGetMaxClockInfo": &n.maxClock,
		"nvmlDeviceGetEccMode": &n.ecc, "nvmlDeviceGetNumGpuCores": &n.cores,
		"nvmlSystemGetDriverVersion": &n.driver, "nvmlSystemGetCudaDriverVersion": &n.cuda,
		"nvmlDeviceGetFanSpeed": &n.fan, "nvmlDeviceGetPowerUsage": &n.power,
		"nvmlDeviceGetTemperature": &n.temperature, "nvmlDeviceGetTotalEccErrors": &n.eccErrorTotal,
	})
	if !lib.bind(&n.attributes, "nvmlDeviceGetAttributes_v2") && !lib.bind(&n.attributes, "nvmlDeviceGetAttributes") {
		missing = append(missing, "nvmlDeviceGetAttributes")
	}
	for _, name := range missing {
		l.Note(lib.name + " has no " + name)
	}
	if s := n.initialize(); s != ok {
		l.Warn(fmt.Sprintf("%s does not start: %s; MIG instances and dynamic properties are not found", lib.name, n.explain(s)))
		return nil
	}
	return n
}

// explain names a status that is not success.
func (n *nvml) explain(s status) string {
	if n.errorString != nil {
		if words := n.errorString(s); words != "" {
			return fmt.Sprintf("error %d (%s)", s, text([]byte(words)))
		}
	}
	return fmt.Sprintf("error %d", s)
}

// failed notes that function gave no answer, and reports it.
func (n *nvml) failed(function string, s status) bool {
	if s != ok {
		n.note(fmt.Sprintf("%s: %s", function, n.explain(s)))
	}
	return s != ok
}

// fact asks a function that fills in one number.
func fact[T any](n *nvml, function string, ask func(*T) status) gpu.Fact[T] {
	var v T
	if n.failed(function, ask(&v)) {
		return gpu.Fact[T]{}
	}
	return gpu.Is(v)
}

// uuidOf returns the UUID of a device.
func (n *nvml) uuidOf(device uintptr) (string, error) {
	var buf [96]byte
	if s := n.uuid(device, &buf[0], uint32(len(buf)-1)); s != ok {
		return "", fmt.Errorf("nvmlDeviceGetUUID: %s", n.explain(s))
	}
	return name(buf[:]), nil
}

// driverVersion returns the version of the driver, "" where it is not known.
func (n *nvml) driverVersion() string {
	var buf [96]byte
	if n.driver == nil || n.failed("nvmlSystemGetDriverVersion", n.driver(&buf[0], uint32(len(buf)-1))) {
		return ""
	}
	return text(buf[:])
}

// describe asks for the properties of a device or MIG instance.
func (n *nvml) describe(device uintptr, id string) gpu.Device {
	d := gpu.Device{From: gpu.NVML, UUID: id}
	var words [96]byte
	if n.name != nil && !n.failed("nvmlDeviceGetName", n.name(device, &words[0], uint32(len(words)-1))) {
		d.Name = text(words[:])
	}
	// The first field of what is filled in is the address as people know it.
	const legacy = 16
	var pci [256]byte
	if n.pci != nil && !n.failed("nvmlDeviceGetPciInfo_v3", n.pci(device, &pci)) {
		d.PCI = text(pci[:legacy])
	}
	var memory [3]uint64 // free, total, used
	if n.memory != nil && !n.failed("nvmlDeviceGetMemoryInfo", n.memory(device, &memory)) {
		d.Memory = gpu.Is(memory[1])
	}
	var major, minor int32
	if n.capability != nil && !n.failed("nvmlDeviceGetCudaComputeCapability", n.capability(device, &major, &minor)) {
		d.Capability = gpu.Is(gpu.Capability{Major: int(major), Minor: int(minor)})
	}
	const graphics = 0
	var mhz uint32
	if n.maxClock != nil && !n.failed("nvmlDeviceGetMaxClockInfo", n.maxClock(device, graphics, &mhz)) {
		d.ClockKHz = gpu.Is(int(mhz) * 1000)
	}
	// Only MIG instances have these; the first field is the multiprocessors.
	var attributes [256]byte
	if n.attributes != nil && !n.failed("nvmlDeviceGetAttributes", n.attributes(device, &attributes)) {
		d.Units = gpu.Is(int(int32At(attributes[:], 0)))
	}
	var current, pending int32
	if n.ecc != nil && !n.failed("nvmlDeviceGetEccMode", n.ecc(device, &current, &pending)) {
		d.ECC = gpu.Is(current == 1)
	}
	return d
}

// whole describes a whole device as CUDA would, for a machine with NVML alone.
func (n *nvml) whole(device uintptr, id string) gpu.Device {
	d := n.describe(device, id)
	d.From, d.UUID, d.Driver = gpu.CUDA, strings.TrimPrefix(id, "GPU-"), n.driverVersion()
	if n.cuda != nil {
		if v := fact(n, "nvmlSystemGetCudaDriverVersion", n.cuda); v.Known {
			d.Version = gpu.Is(int(v.Value))
		}
	}
	if n.cores != nil && !d.Units.Known && d.Capability.Known {
		cores := fact(n, "nvmlDeviceGetNumGpuCores", func(v *uint32) status { return n.cores(device, v) })
		if per := gpu.CoresPerUnit(d.Capability.Value); cores.Known {
			d.Units = gpu.Is(int(cores.Value) / per)
		}
	}
	return d
}

// live asks for what changes.
func (n *nvml) live(device uintptr) gpu.Live {
	var l gpu.Live
	if n.fan != nil {
		l.FanPercent = fact(n, "nvmlDeviceGetFanSpeed", func(v *uint32) status { return n.fan(device, v) })
	}
	if n.power != nil {
		l.Milliwatts = fact(n, "nvmlDeviceGetPowerUsage", func(v *uint32) status { return n.power(device, v) })
	}
	if n.temperature != nil {
		const die = 0
		l.Celsius = fact(n, "nvmlDeviceGetTemperature", func(v *uint32) status { return n.temperature(device, die, v) })
	}
	if n.eccErrorTotal != nil {
		const corrected, uncorrected, sinceLoad = 0, 1, 0
		l.SingleBit = fact(n, "nvmlDeviceGetTotalEccErrors", func(v *uint64) status { return n.eccErrorTotal(device, corrected, sinceLoad, v) })
		l.DoubleBit = fact(n, "nvmlDeviceGetTotalEccErrors", func(v *uint64) status { return n.eccErrorTotal(device, uncorrected, sinceLoad, v) })
	}
	return l
}

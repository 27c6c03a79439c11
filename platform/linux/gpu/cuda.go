// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package gpu

import (
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/gpu"
)

// Wanted says what to ask NVIDIA's libraries.
type Wanted struct {
	Driver  bool // CUDA's driver library and no other
	Runtime bool // CUDA's run-time library and no other
	Dynamic bool // what changes, too
}

// Numbers of CUDA's device attributes, in the driver and the run-time library
// alike.
const (
	attrClockRate  = 13
	attrUnits      = 16
	attrECC        = 32
	attrPCIBus     = 33
	attrPCIDevice  = 34
	attrPCIDomain  = 50
	attrMajor      = 75
	attrMinor      = 76
	cudaNoDevice   = 100 // cuInit where the driver is there and no device is
	cudaUnloadable = "no CUDA library can be loaded; the management library alone tells of devices"
)

// errNone is that a library is not there.
var errNone = errors.New("no such library")

// NVIDIA returns the devices that NVIDIA's libraries tell of: those with
// numbers from CUDA, instances from NVML. Where there is no CUDA library NVML
// stands for it, and devices have the numbers of NVML. Without either, and
// without a device, nothing is found, and that is no error; an error is a
// library that works but cannot say which devices there are.
func (l *Libraries) NVIDIA(w Wanted) (gpu.Found, error) {
	found := gpu.Found{Prefix: "CUDA"}
	cudaErr := errNone
	if !w.Runtime {
		found.Devices, cudaErr = l.driver()
	}
	fromDriver := cudaErr == nil
	if errors.Is(cudaErr, errNone) && !w.Driver {
		found.Devices, cudaErr = l.runtime()
	}
	n := l.openNVML()
	if n == nil {
		if w.Dynamic {
			l.Warn("the management library libnvidia-ml.so.1 cannot be used: there are no dynamic properties")
		}
		return found, nil
	}
	defer n.shutdown()
	if !errors.Is(cudaErr, errNone) && len(found.Devices) == 0 {
		return found, nil
	}
	tree, err := n.tree()
	if err != nil {
		return gpu.Found{}, err
	}
	if errors.Is(cudaErr, errNone) {
		l.Note(cudaUnloadable)
		for _, p := range tree {
			found.Devices = append(found.Devices, n.whole(p.handle, p.uuid))
		}
	}
	if fromDriver {
		version := n.driverVersion()
		for i := range found.Devices {
			found.Devices[i].Driver = version
		}
	}
	n.manage(&found, tree, w.Dynamic)
	return found, nil
}

// driver asks CUDA's driver library. The error is errNone where there is none.
func (l *Libraries) driver() ([]gpu.Device, error) {
	lib := l.load("libcuda.so.1", "libcuda.so")
	if lib == nil {
		return nil, errNone
	}
	var (
		initialize func(uint32) int32
		count      func(*int32) int32
		get        func(*int32, int32) int32
		name       func(*byte, int32, int32) int32
		id         func(*[16]byte, int32) int32
		pci        func(*byte, int32, int32) int32
		capability func(*int32, *int32, int32) int32
		memory     func(*uint64, int32) int32
		attribute  func(*int32, int32, int32) int32
		version    func(*int32) int32
	)
	if missing := lib.bindAll(map[string]any{"cuInit": &initialize, "cuDeviceGetCount": &count, "cuDeviceGet": &get}); len(missing) > 0 {
		l.Warn(fmt.Sprintf("%s has no %s, so it is not used", lib.name, missing[0]))
		return nil, errNone
	}
	for _, missing := range lib.bindAll(map[string]any{
		"cuDeviceGetName": &name, "cuDeviceGetUuid": &id, "cuDeviceGetPCIBusId": &pci, "cuDeviceComputeCapability": &capability,
		"cuDeviceTotalMem_v2": &memory, "cuDeviceGetAttribute": &attribute, "cuDriverGetVersion": &version,
	}) {
		l.Note(lib.name + " has no " + missing)
	}
	switch s := initialize(0); s {
	case ok:
	case cudaNoDevice:
		l.Note(lib.name + " finds no device")
		return nil, nil
	default:
		l.Warn(fmt.Sprintf("%s does not start: cuInit returned %d", lib.name, s))
		return nil, nil
	}
	var n int32
	if s := count(&n); s != ok || n < 0 {
		l.Warn(fmt.Sprintf("%s: cuDeviceGetCount returned %d", lib.name, s))
		return nil, nil
	}
	devices := make([]gpu.Device, min(n, maxDevices))
	for i := range devices {
		d := &devices[i]
		d.From = gpu.CUDA
		var handle int32
		if s := get(&handle, int32(i)); s != ok {
			l.Note(fmt.Sprintf("cuDeviceGet(%d) returned %d", i, s))
			continue
		}
		var words [1024]byte
		if name != nil && name(&words[0], int32(len(words)-1), handle) == ok {
			d.Name = text(words[:])
		}
		var b [16]byte
		if id != nil && id(&b, handle) == ok {
			d.UUID = uuid(b)
		}
		var address [64]byte
		if pci != nil && pci(&address[0], int32(len(address)-1), handle) == ok {
			d.PCI = text(address[:])
		}
		var bytes uint64
		if memory != nil && memory(&bytes, handle) == ok {
			d.Memory = gpu.Is(bytes)
		}
		ask := func(which int32) gpu.Fact[int] {
			var v int32
			if attribute == nil || attribute(&v, which, handle) != ok {
				return gpu.Fact[int]{}
			}
			return gpu.Is(int(v))
		}
		describeCUDA(d, ask)
		var major, minor int32
		if !d.Capability.Known && capability != nil && capability(&major, &minor, handle) == ok {
			d.Capability = gpu.Is(gpu.Capability{Major: int(major), Minor: int(minor)})
		}
		var v int32
		if version != nil && version(&v) == ok {
			d.Version = gpu.Is(int(v))
		}
	}
	return devices, nil
}

// describeCUDA fills in what CUDA's attributes tell.
func describeCUDA(d *gpu.Device, ask func(attribute int32) gpu.Fact[int]) {
	d.ClockKHz, d.Units = ask(attrClockRate), ask(attrUnits)
	if ecc := ask(attrECC); ecc.Known {
		d.ECC = gpu.Is(ecc.Value != 0)
	}
	if major, minor := ask(attrMajor), ask(attrMinor); major.Known && minor.Known {
		d.Capability = gpu.Is(gpu.Capability{Major: major.Value, Minor: minor.Value})
	}
	domain, bus, device := ask(attrPCIDomain), ask(attrPCIBus), ask(attrPCIDevice)
	if d.PCI == "" && domain.Known && bus.Known && device.Known {
		d.PCI = fmt.Sprintf("%04X:%02X:%02X.0", domain.Value, bus.Value, device.Value)
	}
}

// runtime asks CUDA's run-time library. The error is errNone where there is
// none.
func (l *Libraries) runtime() ([]gpu.Device, error) {
	lib := l.load("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
	if lib == nil {
		return nil, errNone
	}
	var (
		count          func(*int32) int32
		properties     func(*[8192]byte, int32) int32
		attribute      func(*int32, int32, int32) int32
		driver, itself func(*int32) int32
	)
	if missing := lib.bindAll(map[string]any{
		"cudaGetDeviceCount": &count, "cudaGetDeviceProperties": &properties, "cudaDeviceGetAttribute": &attribute,
		"cudaDriverGetVersion": &driver, "cudaRuntimeGetVersion": &itself,
	}); len(missing) > 0 {
		l.Warn(fmt.Sprintf("%s has no %s, so it is not used", lib.name, missing[0]))
		return nil, errNone
	}
	var n, version, supported int32
	if s := count(&n); s != ok || n <= 0 {
		l.Note(fmt.Sprintf("%s: cudaGetDeviceCount returned %d with %d devices", lib.name, s, n))
		return nil, nil
	}
	if s := itself(&version); s != ok {
		return nil, errs.E("gpu.NVIDIA", errs.Broken, lib.name, fmt.Errorf("cudaRuntimeGetVersion returned %d", s))
	}
	devices := make([]gpu.Device, min(n, maxDevices))
	for i := range devices {
		d := &devices[i]
		d.From = gpu.CUDA
		// The structure grew over time: the name is always first. Since
		// version 10 a UUID and twelve bytes more stand before the memory.
		var p [8192]byte
		if s := properties(&p, int32(i)); s != ok {
			l.Note(fmt.Sprintf("cudaGetDeviceProperties(%d) returned %d", i, s))
			continue
		}
		const nameLen, uuidLen, memoryAt = 256, 16, 288
		d.Name = text(p[:nameLen])
		at := nameLen
		if version >= 10000 {
			d.UUID = uuid([16]byte(p[nameLen : nameLen+uuidLen]))
			at = memoryAt
		}
		d.Memory = gpu.Is(uint64At(p[:], at))
		describeCUDA(d, func(which int32) gpu.Fact[int] {
			var v int32
			if attribute(&v, which, int32(i)) != ok {
				return gpu.Fact[int]{}
			}
			return gpu.Is(int(v))
		})
		if driver(&supported) == ok {
			d.Version = gpu.Is(int(supported))
		}
	}
	return devices, nil
}

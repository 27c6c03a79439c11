// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/gpu"
)

func int32At(b []byte, at int) int32   { return int32(binary.NativeEndian.Uint32(b[at:])) }
func uint64At(b []byte, at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }

// HIP returns the devices of AMD's run-time library (version 6 or 7 of ROCm),
// and whether there is one. Where the library gives sixteen hexadecimal digits
// for a UUID, a device has none, or with fix other than 0 the one that AMD's
// own tools make of them and of fix, the number of the model.
func (l *Libraries) HIP(fix uint16) (devices []gpu.Device, loaded bool) {
	lib := l.load("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")
	if lib == nil {
		return nil, false
	}
	var (
		count      func(*int32) int32
		properties func(*[16384]byte, int32) int32
		version    func(*int32) int32
		id         func(*[16]byte, int32) int32
	)
	if missing := lib.bindAll(map[string]any{"hipGetDeviceCount": &count, "hipGetDevicePropertiesR0600": &properties}); len(missing) > 0 {
		l.Warn(fmt.Sprintf("%s has no %s, so it is not used", lib.name, missing[0]))
		return nil, false
	}
	lib.bind(&version, "hipDriverGetVersion")
	lib.bind(&id, "hipDeviceGetUuid")
	var n int32
	if s := count(&n); s != ok || n <= 0 {
		l.Note(fmt.Sprintf("%s: hipGetDeviceCount returned %d with %d devices", lib.name, s, n))
		return nil, true
	}
	_, suffix, _ := strings.Cut(lib.name, ".so.")
	major, _ := strconv.Atoi(suffix)
	var v int32
	known := version != nil && version(&v) == ok && v > 0
	if known {
		major = int(v) / 10000000
	}
	for i := range min(n, maxDevices) {
		// Where the fields are in the structure of ROCm 6 and 7.
		const (
			uuidAt, memoryAt, warpAt, clockAt, majorAt, minorAt     = 256, 288, 308, 348, 360, 364
			unitsAt, eccAt, busAt, deviceAt, domainAt, unifiedAddrs = 388, 580, 584, 588, 592, 604
		)
		var p [16384]byte
		if s := properties(&p, i); s != ok {
			l.Note(fmt.Sprintf("hipGetDevicePropertiesR0600(%d) returned %d", i, s))
			devices = append(devices, gpu.Device{From: gpu.HIP, ROCm: major})
			continue
		}
		number := func(at int) int { return int(int32At(p[:], at)) }
		raw := [16]byte(p[uuidAt : uuidAt+16])
		if id != nil {
			var b [16]byte
			if id(&b, i) == ok {
				raw = b
			}
		}
		d := gpu.Device{
			From: gpu.HIP, ROCm: major, Name: text(p[:uuidAt]), UUID: hipUUID(raw, fix),
			Memory: gpu.Is(uint64At(p[:], memoryAt)), Warp: gpu.Is(number(warpAt)), ClockKHz: gpu.Is(number(clockAt)),
			Capability: gpu.Is(gpu.Capability{Major: number(majorAt), Minor: number(minorAt)}),
			Units:      gpu.Is(number(unitsAt)), ECC: gpu.Is(number(eccAt) != 0), XNACK: gpu.Is(number(unifiedAddrs)),
		}
		if number(busAt) != 0 || number(deviceAt) != 0 {
			d.PCI = fmt.Sprintf("%04X:%02X:%02X.0", number(domainAt), number(busAt), number(deviceAt))
		}
		if known {
			d.Version = gpu.Is(int(v))
		}
		devices = append(devices, d)
	}
	return devices, true
}

// hipUUID returns the UUID in what HIP gave: "" where that is nothing, all ones,
// or digits that fix, being 0, makes no UUID of.
func hipUUID(raw [16]byte, fix uint16) string {
	digits := true
	for _, b := range raw {
		digits = digits && (b >= '0' && b <= '9' || b >= 'a' && b <= 'f')
	}
	switch {
	case raw == [16]byte{} || raw == [16]byte(bytes.Repeat([]byte{0xff}, 16)):
		return ""
	case !digits:
		return uuid(raw)
	case fix == 0:
		return ""
	}
	s := string(raw[:])
	return fmt.Sprintf("%sff%04x-0000-1000-80%s-%s", s[:2], fix, s[2:4], s[4:])
}

// OpenCL returns the GPUs of all platforms that the OpenCL loader knows.
func (l *Libraries) OpenCL() []gpu.Device {
	lib := l.load("libOpenCL.so", "libOpenCL.so.1")
	if lib == nil {
		return nil
	}
	var (
		platforms func(uint32, *uintptr, *uint32) int32
		devices   func(uintptr, uint64, uint32, *uintptr, *uint32) int32
		info      func(uintptr, uint32, uintptr, *byte, *uintptr) int32
	)
	if missing := lib.bindAll(map[string]any{"clGetPlatformIDs": &platforms, "clGetDeviceIDs": &devices, "clGetDeviceInfo": &info}); len(missing) > 0 {
		l.Warn(fmt.Sprintf("%s has no %s, so it is not used", lib.name, missing[0]))
		return nil
	}
	const noDevice, noPlatform = -1, -1001
	var n uint32
	ids := make([]uintptr, maxInstances)
	switch s := platforms(uint32(len(ids)), &ids[0], &n); s {
	case ok:
	case noDevice, noPlatform:
		l.Note(lib.name + " has no platform")
		return nil
	default:
		l.Warn(fmt.Sprintf("%s: clGetPlatformIDs returned %d", lib.name, s))
		return nil
	}
	var out []gpu.Device
	for _, platform := range ids[:min(n, uint32(len(ids)))] {
		const gpuType = 1 << 2
		var count uint32
		all := make([]uintptr, maxDevices)
		if s := devices(platform, gpuType, uint32(len(all)), &all[0], &count); s != ok {
			l.Note(fmt.Sprintf("clGetDeviceIDs returned %d", s))
			continue
		}
		for _, device := range all[:min(count, uint32(len(all)))] {
			out = append(out, describeCL(device, info))
		}
	}
	return out
}

// describeCL asks for the properties of one device of OpenCL.
func describeCL(device uintptr, info func(uintptr, uint32, uintptr, *byte, *uintptr) int32) gpu.Device {
	const (
		maxUnits, maxClock, memorySize, eccSupport = 0x1002, 0x100c, 0x101f, 0x1024
		deviceName, deviceVersion                  = 0x102b, 0x102f
	)
	d := gpu.Device{From: gpu.OpenCL}
	words := func(which uint32) string {
		var buf [1024]byte
		if info(device, which, uintptr(len(buf)-1), &buf[0], nil) != ok {
			return ""
		}
		return text(buf[:])
	}
	number := func(which uint32, size uintptr) gpu.Fact[uint64] {
		var buf [8]byte
		if info(device, which, size, &buf[0], nil) != ok {
			return gpu.Fact[uint64]{}
		}
		if size == 4 {
			return gpu.Is(uint64(binary.NativeEndian.Uint32(buf[:])))
		}
		return gpu.Is(uint64At(buf[:], 0))
	}
	d.Name, d.Memory = words(deviceName), number(memorySize, 8)
	if ecc := number(eccSupport, 4); ecc.Known {
		d.ECC = gpu.Is(ecc.Value != 0)
	}
	// OpenCL, a space, the version, and after another space what the vendor likes.
	if _, rest, found := strings.Cut(words(deviceVersion), " "); found {
		d.OpenCL, _, _ = strings.Cut(rest, " ")
	}
	if units := number(maxUnits, 4); units.Known {
		d.Units = gpu.Is(int(units.Value))
	}
	if mhz := number(maxClock, 4); mhz.Known {
		d.ClockKHz = gpu.Is(int(mhz.Value) * 1000)
	}
	return d
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// model is one kind of device that can be simulated.
type model struct {
	name       string
	capability Capability
	mhz, units int
	ecc        bool
	memoryMiB  uint64
	// instances is the memory of each MIG instance in MiB. A model with
	// instances is not shown itself.
	instances []uint64
	// oldNames is how instances were named before version 470 of the driver:
	// by the device and their numbers.
	oldNames bool
}

// models are the simulated kinds, by number, with the very values that
// HTCondor's tool prints: those of its manual, but for the memory of number 4,
// which its manual gives as 40536.
var models = [...]model{
	{name: "GeForce GT 330", capability: Capability{1, 2}, mhz: 1340, units: 12, memoryMiB: 1024},
	{name: "GeForce GTX 480", capability: Capability{2, 0}, mhz: 1400, units: 15, memoryMiB: 1536},
	{name: "Tesla V100-PCIE-16GB", capability: Capability{7, 0}, mhz: 1380, units: 80, ecc: true, memoryMiB: 24220},
	{name: "TITAN RTX", capability: Capability{7, 5}, mhz: 1770, units: 72, memoryMiB: 24220},
	{name: "A100-SXM4-40GB", capability: Capability{8, 0}, mhz: 1410, units: 42, ecc: true, memoryMiB: 47661},
	{name: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", capability: Capability{8, 0}, mhz: 1410, units: 42, ecc: true, memoryMiB: 20096, instances: []uint64{20086, 20082}, oldNames: true},
	{name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb", capability: Capability{8, 0}, mhz: 1410, units: 42, ecc: true, memoryMiB: 4864, instances: slices.Repeat([]uint64{4861}, 7)},
	{name: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", capability: Capability{8, 0}, mhz: 1410, units: 42, ecc: true, memoryMiB: 20096, instances: []uint64{20086, 20082}},
}

// Models is how many kinds of device can be simulated: numbers below it. The
// number itself stands for one of each.
const Models = len(models)

// simulatedMax bounds how many devices are simulated: as many as have
// different UUIDs.
const simulatedMax = 256

var errTooMany = fmt.Errorf("more than %d devices", simulatedMax)

// Simulate returns the devices of lists D,N,D2,N2,...: N devices of kind D
// each, one where the last N is missing. The list "" is one of kind 0. jitter
// is added to what changes while a device works.
func Simulate(specs []string, jitter uint32) (Found, error) {
	var kinds []int
	for _, spec := range specs {
		more, err := simulated(spec)
		if err != nil {
			return Found{}, err
		}
		if kinds = append(kinds, more...); len(kinds) > simulatedMax {
			return Found{}, errs.E("gpu.Simulate", errs.Invalid, strconv.Quote(spec), errTooMany)
		}
	}
	found := Found{Prefix: "CUDA", Parents: map[string][]string{}, Live: map[string]Live{}}
	for n, kind := range kinds {
		m := &models[kind]
		uuid := simulatedUUID(n, 0x34)
		found.Devices = append(found.Devices, Device{
			From: CUDA, UUID: uuid, Name: m.name, PCI: fmt.Sprintf("0000:%02x:00.0", n+0x40),
			Memory: Is(m.memoryMiB * mib), Capability: Is(m.capability), ECC: Is(m.ecc), ClockKHz: Is(m.mhz * 1000), Units: Is(m.units),
		})
		base := jitter + uint32(0x100|n&0xf)
		found.Live[uuid] = Live{FanPercent: Is(base + 9), Milliwatts: Is(base + 29), Celsius: Is(base + 89), SingleBit: Is(uint64(0)), DoubleBit: Is(uint64(0))}
		for i, size := range m.instances {
			name := migMark + simulatedUUID(n, byte(i))
			if m.oldNames {
				name = fmt.Sprintf("%s%s%s/%d/0", migMark, gpuMark, uuid, i)
			}
			found.Parents[gpuMark+uuid] = append(found.Parents[gpuMark+uuid], name)
			found.Managed = append(found.Managed, Device{From: NVML, UUID: name, Memory: Is(size * mib), ECC: Is(m.ecc), ClockKHz: Is(m.mhz * 1000)})
		}
	}
	slices.SortFunc(found.Managed, func(a, b Device) int { return strings.Compare(a.UUID, b.UUID) })
	return found, nil
}

// simulated returns the kinds that a list names.
func simulated(spec string) ([]int, error) {
	wrong := func(format string, args ...any) error {
		return errs.E("gpu.Simulate", errs.Invalid, strconv.Quote(spec), fmt.Errorf(format, args...))
	}
	if spec == "" {
		return []int{0}, nil
	}
	var kinds []int
	parts := strings.Split(strings.TrimSuffix(spec, ","), ",")
	for i := 0; i < len(parts); i += 2 {
		kind, err := strconv.ParseUint(strings.TrimSpace(parts[i]), 10, bits.UintSize-1)
		if err != nil || kind > uint64(Models) || kind == uint64(Models) && i > 0 {
			return nil, wrong("%q is no kind of device: 0 to %d, or %d for one of each", parts[i], Models-1, Models)
		}
		if kind == uint64(Models) {
			for k := range Models {
				kinds = append(kinds, k)
			}
			return kinds, nil
		}
		count := uint64(1)
		if i+1 < len(parts) {
			if count, err = strconv.ParseUint(strings.TrimSpace(parts[i+1]), 10, bits.UintSize-1); err != nil {
				return nil, wrong("%q is no number of devices", parts[i+1])
			}
		}
		if count > uint64(simulatedMax-len(kinds)) {
			return nil, wrong("%w", errTooMany)
		}
		kinds = append(kinds, slices.Repeat([]int{int(kind)}, int(count))...)
	}
	return kinds, nil
}

// simulatedUUID returns the UUID of the device or instance of these numbers.
func simulatedUUID(device int, instance byte) string {
	return fmt.Sprintf("%02x2233%02x-4445-5667-899a-abbccddeeff0", byte(device*0x11+0xa0), instance)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ad is the attributes of one device: name to value as text.
type ad map[string]string

// names returns the attributes in the order in which they are printed.
func (a ad) names() []string { return slices.Sorted(maps.Keys(a)) }

// mib is a MiB in bytes.
const mib = 1 << 20

// properties returns what is true of a device as long as it stays as it is;
// with extra also what is rarely asked for.
func properties(d Device, extra bool) ad {
	a := make(ad, 16)
	set := func(name, value string) {
		if value != "" {
			a[name] = quote(value)
		}
	}
	set("DeviceUuid", d.UUID)
	set("DeviceName", d.Name)
	set("DevicePciBusId", d.PCI)
	set("NvidiaDriver", d.Driver)
	if c := d.Capability; c.Known {
		a["Capability"] = fmt.Sprintf("%d.%d", c.Value.Major, c.Value.Minor)
	}
	if d.ECC.Known {
		a["ECCEnabled"] = strconv.FormatBool(d.ECC.Value)
	}
	if d.Memory.Known {
		a["GlobalMemoryMb"] = strconv.FormatFloat(math.RoundToEven(float64(d.Memory.Value)/mib), 'f', 0, 64)
	}
	number(a, "xNACK", d.XNACK)
	number(a, "WarpSize", d.Warp)
	v := d.Version
	switch {
	case d.From == OpenCL:
		if d.OpenCL != "" {
			a["OpenCLVersion"] = d.OpenCL
		}
	case d.From == HIP:
		a["Rocm"] = strconv.Itoa(d.ROCm)
		if v.Known && v.Value > 0 {
			a["AmdDriverVersion"] = fmt.Sprintf("\"%d.%d.%d\"", v.Value/10000000, v.Value%10000000/100000, v.Value%100000)
		}
	case v.Known:
		a["DriverVersion"] = fmt.Sprintf("%d.%d", v.Value/1000, v.Value%100)
		a["MaxSupportedVersion"] = strconv.Itoa(v.Value)
	}
	if !extra {
		return a
	}
	if d.Units.Known && d.Units.Value > 0 {
		a["ComputeUnits"] = strconv.Itoa(d.Units.Value)
	}
	if d.ClockKHz.Known {
		a["ClockMhz"] = fmt.Sprintf("%.2f", float64(d.ClockKHz.Value)/1000)
		if d.From == OpenCL {
			a["ClockMhz"] = strconv.Itoa(d.ClockKHz.Value / 1000)
		}
	}
	if c := d.Capability; c.Known && d.From != HIP {
		a["CoresPerCU"] = strconv.Itoa(CoresPerUnit(c.Value))
	}
	return a
}

// dynamic adds what changes while the device works.
func (a ad) dynamic(l Live) {
	number(a, "FanSpeedPct", l.FanPercent)
	number(a, "PowerUsage_mw", l.Milliwatts)
	number(a, "DieTempC", l.Celsius)
	number(a, "EccErrorsSingleBit", l.SingleBit)
	number(a, "EccErrorsDoubleBit", l.DoubleBit)
}

func number[T int | uint32 | uint64](a ad, name string, f Fact[T]) {
	if f.Known {
		a[name] = fmt.Sprint(f.Value)
	}
}

// common returns the attributes that every one of ads has with the same value.
func common(ads []ad) ad {
	out := ad{}
	if len(ads) == 0 {
		return out
	}
	for name, value := range ads[0] {
		if !slices.ContainsFunc(ads[1:], func(a ad) bool { v, ok := a[name]; return !ok || v != value }) {
			out[name] = value
		}
	}
	return out
}

// quote writes a string that a library gave as a ClassAd literal on one line.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == '\uFFFD':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// generations is how many cores a multiprocessor has from this compute
// capability on, as NVIDIA publishes it. Newest last.
var generations = [...]struct {
	from  Capability
	cores int
}{
	{Capability{1, 0}, 8},   // Tesla
	{Capability{2, 0}, 32},  // Fermi
	{Capability{2, 1}, 48},  // Fermi, small
	{Capability{3, 0}, 192}, // Kepler
	{Capability{5, 0}, 128}, // Maxwell
	{Capability{6, 0}, 64},  // Pascal, GP100
	{Capability{6, 1}, 128}, // Pascal
	{Capability{7, 0}, 64},  // Volta and Turing
	{Capability{8, 0}, 64},  // Ampere, GA100
	{Capability{8, 6}, 128}, // Ampere, Ada, Hopper, Blackwell
}

// CoresPerUnit returns the number of cores in one multiprocessor. A capability
// that is newer than the table counts as the newest.
func CoresPerUnit(c Capability) int {
	cores := generations[0].cores
	for _, g := range generations {
		if c.Major > g.from.Major || c.Major == g.from.Major && c.Minor >= g.from.Minor {
			cores = g.cores
		}
	}
	return cores
}

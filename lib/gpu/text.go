// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"slices"
	"strconv"
	"strings"
)

// Options is what is to be printed, and how.
type Options struct {
	Tag    string // of the resource, GPUs
	Prefix string // instead of Found.Prefix, "" for none
	IDs    IDs
	Allow  Allow

	Properties bool // one ad per device; Extra and Dynamic need it
	Extra      bool
	Dynamic    bool
	Mixed      bool // no attribute is common
	Nested     bool // ads in brackets, else names with prefixes
	Config     bool // the syntax of configuration files, and the number of devices
	Cron       bool // without the list of devices

	Repeat int  // how often each device is listed, 0 for once
	Divide bool // a device listed so often has only its part of the memory
	Packed bool // repeat each device, not the list
}

// Text returns all that is printed of what was found. Where no device was
// found the list is 0; where none of them may be shown it is empty.
func Text(found Found, o Options) string {
	var b strings.Builder
	if len(found.Devices) == 0 {
		o.heading(&b, "0", false, 0)
		return b.String()
	}
	if o.IDs != ByIndex && lacksUUID(found.Devices) {
		b.WriteString("condor_gpu_discovery_error = " + quote(noUUID) + "\n")
	}
	devices := list(found, o)
	ids := make([]string, len(devices))
	for i, d := range devices {
		ids[i] = d.id
	}
	o.heading(&b, strings.Join(o.repeated(ids), ", "), !o.Config, len(ids))
	if o.Properties {
		prefix := found.Prefix
		if o.Prefix != "" {
			prefix = o.Prefix
		}
		o.ads(&b, prefix, devices)
	}
	return b.String()
}

// noUUID is what is said of a library that gives no UUIDs.
const noUUID = "a CUDA device has no UUID, so MIG instances are not looked for; newer CUDA libraries have UUIDs"

// heading writes the list and the number of devices.
func (o *Options) heading(b *strings.Builder, list string, quoted bool, n int) {
	if !o.Cron {
		if quoted {
			list = "\"" + list + "\""
		}
		b.WriteString("Detected" + o.Tag + "=" + list + "\n")
	}
	if o.Config {
		b.WriteString("NUM_DETECTED_" + o.Tag + "=" + strconv.Itoa(n) + "\n")
	}
}

// repeated returns the list with every device as often as asked for.
func (o *Options) repeated(ids []string) []string {
	if o.Repeat < 2 || len(ids) == 0 {
		return ids
	}
	if !o.Packed {
		return slices.Repeat(ids, o.Repeat)
	}
	out := make([]string, 0, len(ids)*o.Repeat)
	for _, id := range ids {
		out = append(out, slices.Repeat([]string{id}, o.Repeat)...)
	}
	return out
}

// ads writes the properties. What is common is what is common before anything
// that changes is added.
func (o *Options) ads(b *strings.Builder, prefix string, devices []shown) {
	// In the order of names; a name that two devices share is one ad, of the
	// last of them.
	devices = slices.Clone(devices)
	slices.Reverse(devices)
	slices.SortStableFunc(devices, func(x, y shown) int { return strings.Compare(x.id, y.id) })
	devices = slices.CompactFunc(devices, func(x, y shown) bool { return x.id == y.id })
	every := make([]ad, len(devices))
	for i, d := range devices {
		every[i] = properties(d.device, o.Extra)
	}
	same := ad{}
	if !o.Mixed {
		same = common(every)
	}
	if o.Divide {
		delete(same, memory)
	}
	if o.Dynamic {
		for i, d := range devices {
			every[i].dynamic(d.live)
		}
	}
	if o.Divide && o.Repeat > 0 {
		for _, a := range every {
			a.divide(o.Repeat)
		}
	}
	o.write(b, "Common", prefix, "", same, nil)
	for i, d := range devices {
		name := attribute(d.id)
		o.write(b, name, name, d.id, every[i], same)
	}
}

// memory is the attribute that is divided.
const memory = "GlobalMemoryMb"

// divide gives the device an nth of its memory, and says how much it has in all.
func (a ad) divide(n int) {
	if all, err := strconv.Atoi(a[memory]); err == nil && all != 0 {
		a[memory] = strconv.Itoa(all / n)
		a["DeviceMemoryMb"] = strconv.Itoa(all)
	}
}

// write writes the attributes of one ad but for those of without, as an ad
// called name or each with the prefix.
func (o *Options) write(b *strings.Builder, name, prefix, id string, a, without ad) {
	if len(a) == 0 {
		return
	}
	start, end := prefix, "\n"
	if o.Nested {
		start, end = "", "; "
		b.WriteString(name + "=[ ")
		if id != "" {
			b.WriteString("id=" + quote(id) + "; ")
		}
	}
	for _, attr := range a.names() {
		if _, there := without[attr]; !there {
			b.WriteString(start + attr + "=" + a[attr] + end)
		}
	}
	if o.Nested {
		b.WriteString("]\n")
	}
}

// numbered returns the name of the device of this number.
func numbered(prefix string, n int) string { return prefix + strconv.Itoa(n) }

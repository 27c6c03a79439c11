// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

// shown is one device that is shown, with its name.
type shown struct {
	id     string
	device Device
	live   Live
}

// list chooses the devices to show and names them, those with numbers first.
func list(found Found, o Options) []shown {
	ids := o.IDs
	numbers := make(map[string]int, len(found.Devices)) // by bare UUID
	for i, d := range found.Devices {
		switch {
		case d.UUID != "":
			numbers[d.UUID] = i
		case ids == ByDefault && d.From != HIP:
			ids = ByIndex
		}
	}
	prefix := found.Prefix
	if o.Prefix != "" {
		prefix = o.Prefix
	}
	var out []shown
	for i, d := range found.Devices {
		full := ""
		if d.UUID != "" {
			full = ID(d.UUID, false)
		}
		if !o.Allow.device(i, full) {
			continue
		}
		if _, split := found.Parents[full]; split && full != "" {
			continue
		}
		id := numbered(prefix, i)
		if full != "" && ids != ByIndex {
			id = ID(d.UUID, ids != FullUUID)
		}
		out = append(out, shown{id: id, device: d, live: found.Live[d.UUID]})
	}
	if lacksUUID(found.Devices) {
		return out // nothing says which of Managed are the same devices
	}
	parents := make(map[string]string)
	for parent, instances := range found.Parents {
		for _, instance := range instances {
			parents[instance] = parent
		}
	}
	for _, d := range found.Managed {
		if _, twice := numbers[bare(d.UUID)]; twice {
			continue
		}
		if _, split := found.Parents[d.UUID]; split {
			continue
		}
		parent := parents[d.UUID]
		n, numbered := numbers[bare(parent)]
		// An instance is shown with the device it is a part of: CUDA has no
		// number for it.
		if !o.Allow.managed(d.UUID) && !(numbered && o.Allow.device(n, parent)) {
			continue
		}
		if numbered {
			d = inherit(d, found.Devices[n])
		}
		out = append(out, shown{id: ID(d.UUID, ids == ByDefault || ids == ShortUUID), device: d, live: found.Live[d.UUID]})
	}
	return out
}

// lacksUUID reports whether a device of CUDA has no UUID, as with libraries
// before CUDA 10.
func lacksUUID(devices []Device) bool {
	for _, d := range devices {
		if d.From == CUDA && d.UUID == "" {
			return true
		}
	}
	return false
}

// inherit fills in what NVML does not tell of an instance but which is true of
// the whole device: not its name, memory and multiprocessors.
func inherit(d, parent Device) Device {
	d.Capability = d.Capability.or(parent.Capability)
	d.ClockKHz = d.ClockKHz.or(parent.ClockKHz)
	d.ECC = d.ECC.or(parent.ECC)
	d.Version = d.Version.or(parent.Version)
	d.XNACK = d.XNACK.or(parent.XNACK)
	d.Warp = d.Warp.or(parent.Warp)
	if d.Driver == "" {
		d.Driver = parent.Driver
	}
	if d.PCI == "" {
		d.PCI = parent.PCI
	}
	return d
}

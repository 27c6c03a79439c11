// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/gpu"
)

// part is a device or MIG instance of NVML.
type part struct {
	handle    uintptr
	uuid      string
	instances []part // of a device that is split
	split     bool   // also where it has no instance, which makes it useless
	plain     bool   // known not to be split
}

// tree asks NVML for all devices and their instances. An error is that of a
// function without which it cannot be said which devices there are: then none
// is shown, because a device that is split cannot be used itself.
func (n *nvml) tree() ([]part, error) {
	wrong := func(function string, s status) error {
		return errs.E("gpu.NVIDIA", errs.Broken, n.library.name, fmt.Errorf("%s: %s", function, n.explain(s)))
	}
	var count uint32
	if s := n.count(&count); s != ok {
		return nil, wrong("nvmlDeviceGetCount_v2", s)
	}
	var devices []part
	for i := range min(count, maxDevices) {
		var p part
		if s := n.byIndex(i, &p.handle); s != ok {
			return nil, wrong(fmt.Sprintf("nvmlDeviceGetHandleByIndex_v2(%d)", i), s)
		}
		var err error
		if p.uuid, err = n.uuidOf(p.handle); err != nil {
			return nil, errs.E("gpu.NVIDIA", errs.Broken, n.library.name, err)
		}
		var places uint32
		known := status(ok)
		if n.migMax != nil && n.migByIndex != nil {
			known = n.migMax(p.handle, &places)
			n.failed("nvmlDeviceGetMaxMigDeviceCount", known)
		}
		p.plain, p.split = known == ok && places == 0, known == ok && places > 0
		for place := range min(places, maxInstances) {
			var instance part
			// A place without an instance is an error of NVML, and none of ours.
			if !p.split || n.failed("nvmlDeviceGetMigDeviceHandleByIndex", n.migByIndex(p.handle, place, &instance.handle)) {
				continue
			}
			if instance.uuid, err = n.uuidOf(instance.handle); err != nil {
				return nil, errs.E("gpu.NVIDIA", errs.Broken, n.library.name, err)
			}
			p.instances = append(p.instances, instance)
		}
		devices = append(devices, p)
	}
	return devices, nil
}

// manage adds to found what NVML tells: instances in the order of their UUIDs,
// whole devices in its own, and what changes if it is wanted.
func (n *nvml) manage(found *gpu.Found, tree []part, dynamic bool) {
	found.Parents = make(map[string][]string)
	found.Live = make(map[string]gpu.Live)
	handles := make(map[string]uintptr)
	var instances []part
	for _, p := range tree {
		handles[p.uuid] = p.handle
		if p.split {
			found.Parents[p.uuid] = nil
		}
		for _, instance := range p.instances {
			found.Parents[p.uuid] = append(found.Parents[p.uuid], instance.uuid)
			handles[instance.uuid] = instance.handle
			instances = append(instances, instance)
		}
	}
	slices.SortFunc(instances, func(a, b part) int { return strings.Compare(a.uuid, b.uuid) })
	for _, p := range instances {
		found.Managed = append(found.Managed, n.describe(p.handle, p.uuid))
	}
	for _, p := range tree {
		if p.plain {
			found.Managed = append(found.Managed, n.describe(p.handle, p.uuid))
		}
	}
	if !dynamic {
		return
	}
	for id, handle := range handles {
		found.Live[id] = n.live(handle)
	}
	for _, d := range found.Devices {
		if handle, there := handles["GPU-"+d.UUID]; there {
			found.Live[d.UUID] = n.live(handle)
		}
	}
}

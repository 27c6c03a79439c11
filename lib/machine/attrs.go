// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// publish writes the static attributes of the machine into Attrs, under
// HTCondor's names and by its rules for leaving one out: unknown is absent,
// and version numbers of zero are absent (ResAttributes.cpp, publish_static).
func (inv *Inventory) publish() {
	ad := inv.Attrs
	text := func(name, value string) {
		if value != "" {
			ad.SetString(name, value)
		}
	}
	number := func(name string, value int) {
		if value > 0 {
			ad.SetInt(name, int64(value))
		}
	}
	text("Machine", inv.FullHostname)
	text("Arch", inv.Arch)
	text("OpSys", inv.OpSys)
	text("OpSysAndVer", inv.OpSysAndVer)
	text("OpSysLegacy", inv.OpSysLegacy)
	text("OpSysName", inv.OpSysName)
	text("OpSysLongName", inv.OpSysLongName)
	text("OpSysShortName", inv.OpSysShort)
	number("OpSysVer", inv.OpSysVer)
	number("OpSysMajorVer", inv.OpSysMajorVer)
	text("UtsnameSysname", inv.Uname.Sysname)
	text("UtsnameNodename", inv.Uname.Nodename)
	text("UtsnameRelease", inv.Uname.Release)
	text("UtsnameVersion", inv.Uname.Version)
	text("UtsnameMachine", inv.Uname.Machine)
	number("CpuFamily", inv.CPU.Family)
	number("CpuModelNumber", inv.CPU.Model)
	number("CpuCacheSize", inv.CPU.CacheKiB)
	text("Microarch", inv.CPU.Microarch)
	for _, f := range inv.CPU.Features {
		ad.SetBool("has_"+f, true)
	}
	if inv.Execute.Rotational != Unknown {
		ad.SetBool("HasRotationalScratch", inv.Execute.Rotational == Yes)
	}
	if inv.UserNamespaces == Yes {
		ad.SetBool("HasUserNamespaces", true)
	}
	number("DetectedCpus", inv.DetectedCores)
	if inv.Known("DetectedMemoryMiB") {
		ad.SetInt("DetectedMemory", inv.DetectedMemoryMiB)
	}
	if inv.Known("Execute") {
		ad.SetInt("DetectedDisk", inv.Execute.TotalKiB)
	}
	text("ExecuteVolume", inv.Execute.ID)
	if l := inv.Execute.Logical; l != nil {
		ad.SetBool("IsEnforcingDiskUsage", true)
		text("LvmBackingStore", l.Backing)
		if l.Loopback {
			ad.SetBool("LvmUsingLoopback", true)
		}
		if l.Thin {
			ad.SetBool("LvmIsThinProvisioning", true)
		}
		if l.QuantumKiB > 0 {
			ad.SetInt("DiskQuantum", l.QuantumKiB)
		}
	}
	inv.publishNetwork(ad)
}

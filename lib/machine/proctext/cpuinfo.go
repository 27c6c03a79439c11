// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"slices"
	"strings"
)

// CPUInfo is what /proc/cpuinfo says that a slot ad needs. Family, Model and
// CacheKiB are those of the last processor that told them, as HTCondor has it
// (processor_flags.cpp); all processors are taken to be alike.
type CPUInfo struct {
	Threads    int      // processors listed
	Cores      int      // distinct physical cores among them; equal to Threads where the text does not tell
	IDs        bool     // processors have a physical id or a core id
	Topology   bool     // the ids tell which threads share a core
	Processors []Thread // per processor, in the order of the text
	Family     int
	Model      int
	CacheKiB   int
	Flags      []string // of the first processor, sorted
	Different  bool     // processors do not all have the same flags
}

// Thread is one processor entry: its number and the place of its core.
type Thread struct {
	Processor, Package, Core int // -1 where the text has none
}

// ParseCPUInfo reads /proc/cpuinfo of any architecture. Two threads are one
// core when they agree on physical id and core id and the processors have the
// flag ht; without that flag HTCondor (ncpus.cpp) counts every thread as a
// core, and so do we, because virtual machines leave ids that mean nothing.
func ParseCPUInfo(text []byte) (CPUInfo, error) {
	var info CPUInfo
	var flags []byte
	haveFlags, open := false, false
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			if len(bytes.TrimSpace(line)) == 0 {
				open = false
			}
			continue
		}
		value = bytes.TrimSpace(value)
		switch string(bytes.TrimRight(key, " \t")) {
		case "processor":
			// On s390 and old ARM kernels the word also stands for a
			// description; only a number opens an entry.
			n, err := atoi(value)
			if err != nil || n >= maxCPU || open {
				continue
			}
			open = true
			info.Processors = append(info.Processors, Thread{Processor: int(n), Package: -1, Core: -1})
		case "physical id":
			if t := info.last(open); t != nil {
				t.Package, info.IDs = number(value), true
			}
		case "core id":
			if t := info.last(open); t != nil {
				t.Core, info.IDs = number(value), true
			}
		case "cpu family":
			info.Family = max(0, number(value))
		case "model":
			info.Model = max(0, number(value))
		case "cache size":
			info.CacheKiB = max(0, number(bytes.TrimSuffix(value, []byte(" KB"))))
		case "flags":
			if !haveFlags {
				flags, haveFlags = value, true
			} else if !bytes.Equal(flags, value) {
				info.Different = true
			}
		}
	}
	info.Threads = len(info.Processors)
	if info.Threads == 0 {
		return CPUInfo{}, malformed("cpuinfo, no processor entry in", nil)
	}
	for f := range bytes.FieldsSeq(flags) {
		info.Flags = append(info.Flags, string(f))
	}
	slices.Sort(info.Flags)
	info.Topology = info.IDs && info.HasFlag("ht")
	info.Cores = info.CoresOf(nil)
	return info, nil
}

func (c *CPUInfo) last(open bool) *Thread {
	if !open {
		return nil
	}
	return &c.Processors[len(c.Processors)-1]
}

// number reads a decimal, -1 when it is none.
func number(text []byte) int {
	n, err := atoi(text)
	if err != nil || n > 1<<30 {
		return -1
	}
	return int(n)
}

// HasFlag reports whether the first processor has the flag.
func (c *CPUInfo) HasFlag(flag string) bool {
	_, ok := slices.BinarySearch(c.Flags, flag)
	return ok
}

// CoresOf returns how many physical cores the processors of among belong to;
// nil stands for all. Without topology each processor is a core.
func (c *CPUInfo) CoresOf(among *CPUSet) int {
	type core struct{ pkg, core int }
	seen := make(map[core]struct{}, len(c.Processors))
	n := 0
	for _, t := range c.Processors {
		if among != nil && !among.Has(t.Processor) {
			continue
		}
		if c.Topology && (t.Package >= 0 || t.Core >= 0) {
			k := core{t.Package, t.Core}
			if _, dup := seen[k]; dup {
				continue
			}
			seen[k] = struct{}{}
		}
		n++
	}
	return n
}

// published are the flags HTCondor advertises as has_<flag>, sorted.
const published = "avx avx2 avx512_vnni avx512dq avx512f sse4_1 sse4_2 ssse3"

// PublishedFlags returns those of the processor's flags that are published as
// has_<flag>, sorted.
func (c *CPUInfo) PublishedFlags() []string {
	var have []string
	for f := range strings.FieldsSeq(published) {
		if c.HasFlag(f) {
			have = append(have, f)
		}
	}
	return have
}

// The flags that make up the x86-64 levels, each level on top of the former.
const (
	level2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
	level3 = "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
	level4 = "avx512bw avx512cd avx512dq avx512f avx512vl"
)

// Microarch returns the x86-64 level as HTCondor publishes it, x86_64-v1 to
// x86_64-v4. Like HTCondor it asks only for the flags of the level itself.
func (c *CPUInfo) Microarch() string {
	all := func(flags string) bool {
		for f := range strings.FieldsSeq(flags) {
			if !c.HasFlag(f) {
				return false
			}
		}
		return true
	}
	switch {
	case all(level4):
		return "x86_64-v4"
	case all(level3):
		return "x86_64-v3"
	case all(level2):
		return "x86_64-v2"
	}
	return "x86_64-v1"
}

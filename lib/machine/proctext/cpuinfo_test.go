// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const x86Flags = "fpu ht syscall ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt xsave avx f16c lahf_lm abm bmi1 avx2 bmi2"

// x86 writes the entry of one x86 processor; pkg or core below zero leave the
// line out, as virtual machines do.
func x86(n, pkg, core int, flags string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some CPU: fast\ncache size\t: 36608 KB\n", n)
	if pkg >= 0 {
		fmt.Fprintf(&b, "physical id\t: %d\nsiblings\t: 4\n", pkg)
	}
	if core >= 0 {
		fmt.Fprintf(&b, "core id\t\t: %d\ncpu cores\t: 2\n", core)
	}
	fmt.Fprintf(&b, "flags\t\t: %s\npower management:\n\n", flags)
	return b.String()
}

const arm64 = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n" +
	"processor\t: 1\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n\n"

const oldARM = "Processor\t: ARMv7 Processor rev 4 (v7l)\nprocessor\t: 0\nBogoMIPS\t: 38.40\n\nprocessor\t: 1\nBogoMIPS\t: 38.40\n\nHardware\t: BCM2709\n"

const power = "processor\t: 0\ncpu\t\t: POWER8 (raw)\nclock\t\t: 3425.0MHz\n\nprocessor\t: 1\ncpu\t\t: POWER8 (raw)\n\nplatform\t: pSeries\nmodel\t\t: IBM,8286\n"

type cpuCase struct {
	name string
	text string
	want string // threads cores topology ids family model cache flags-differ; "" is an error
}

func cpuCases() []cpuCase {
	ht := x86Flags
	plain := strings.Replace(x86Flags, " ht", "", 1)
	return []cpuCase{
		{"two cores of two threads", x86(0, 0, 0, ht) + x86(1, 0, 1, ht) + x86(2, 0, 0, ht) + x86(3, 0, 1, ht), "4 2 true true 6 85 36608 false"},
		{"two packages", x86(0, 0, 0, ht) + x86(1, 1, 0, ht), "2 2 true true 6 85 36608 false"},
		{"ids that mean nothing without ht", x86(0, 0, 0, plain) + x86(1, 0, 0, plain), "2 2 false true 6 85 36608 false"},
		{"no ids", x86(0, -1, -1, ht) + x86(1, -1, -1, ht), "2 2 false false 6 85 36608 false"},
		{"only packages", x86(0, 0, -1, ht) + x86(1, 0, -1, ht) + x86(2, 1, -1, ht), "3 2 true true 6 85 36608 false"},
		{"gaps in the numbers", x86(0, 0, 0, ht) + x86(7, 0, 3, ht), "2 2 true true 6 85 36608 false"},
		{"unlike processors", x86(0, 0, 0, ht) + x86(1, 0, 1, ht+" amx"), "2 2 true true 6 85 36608 true"},
		{"last entry without end", strings.TrimRight(x86(0, 0, 0, ht), "\n"), "1 1 true true 6 85 36608 false"},
		{"arm64", arm64, "2 2 false false 0 0 0 false"},
		{"old arm", oldARM, "2 2 false false 0 0 0 false"},
		{"power", power, "2 2 false false 0 0 0 false"},
		{"negative and silly values", "processor\t: 0\nphysical id\t: -1\ncore id\t: x\ncpu family\t: -6\nmodel\t: 99999999999999999999\ncache size\t: big\nflags\t: ht\n", "1 1 true true 0 0 0 false"},
		{"no colon, no value", "processor\nprocessor\t:\nflags\nflags\t:\nprocessor\t: 0\n", "1 1 false false 0 0 0 false"},
		{"a number no machine has", "processor\t: 4294967296\n", ""},
		{"nothing", "", ""},
		{"no text", "\x00\xff\x00:\x00\n:\n::::\n", ""},
		{"a name that looks like an entry", "model name\t: x\nprocessor\t: 0\nmodel name\t: processor\t: 1\n", "1 1 false false 0 0 0 false"},
	}
}

func TestParseCPUInfo(t *testing.T) {
	t.Parallel()
	for _, tt := range cpuCases() {
		info, err := ParseCPUInfo([]byte(tt.text))
		got := ""
		if err == nil {
			got = fmt.Sprint(info.Threads, info.Cores, info.Topology, info.IDs, info.Family, info.Model, info.CacheKiB, info.Different)
		}
		if got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestCoresOf(t *testing.T) {
	t.Parallel()
	info, err := ParseCPUInfo([]byte(cpuCases()[0].text))
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]int{"0-3": 2, "0,2": 1, "0,1": 2, "1": 1, "9": 0, "": 0} {
		set, err := ParseCPUSet([]byte(list))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.CoresOf(&set); got != want {
			t.Errorf("CoresOf(%s) = %d, want %d", list, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	const v4 = " avx512bw avx512cd avx512dq avx512f avx512vl"
	for _, tt := range []struct {
		flags, level string
		published    []string
	}{
		{"fpu", "x86_64-v1", nil},
		{"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3", "x86_64-v2", []string{"sse4_1", "sse4_2", "ssse3"}},
		{x86Flags, "x86_64-v3", []string{"avx", "avx2", "sse4_1", "sse4_2", "ssse3"}},
		{x86Flags + v4 + " avx512_vnni", "x86_64-v4", []string{"avx", "avx2", "avx512_vnni", "avx512dq", "avx512f", "sse4_1", "sse4_2", "ssse3"}},
		// HTCondor looks at each level by itself.
		{"fpu" + v4, "x86_64-v4", []string{"avx512dq", "avx512f"}},
		{"xavx avx2x AVX", "x86_64-v1", nil},
	} {
		info, err := ParseCPUInfo([]byte("processor\t: 0\nflags\t\t: " + tt.flags + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Microarch(); got != tt.level {
			t.Errorf("%q: %s, want %s", tt.flags, got, tt.level)
		}
		if diff := cmp.Diff(tt.published, info.PublishedFlags()); diff != "" {
			t.Errorf("%q: %s", tt.flags, diff)
		}
	}
}

func FuzzParseCPUInfo(f *testing.F) {
	for _, tt := range cpuCases() {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		info, err := ParseCPUInfo(text)
		if err != nil {
			return
		}
		if info.Threads < 1 || info.Cores < 1 || info.Cores > info.Threads || info.Threads > len(text) ||
			info.Family < 0 || info.Model < 0 || info.CacheKiB < 0 {
			t.Errorf("%+v", info)
		}
	})
}

func BenchmarkParseCPUInfo128(b *testing.B) {
	var text strings.Builder
	for n := range 128 {
		text.WriteString(x86(n, n/64, n%32, x86Flags))
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if info, err := ParseCPUInfo(data); err != nil || info.Cores != 64 {
			b.Fatal(info.Cores, err)
		}
	}
}

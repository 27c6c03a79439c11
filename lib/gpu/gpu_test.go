// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestID(t *testing.T) {
	t.Parallel()
	const plain = "6a96bd13-70bc-6494-6d62-1b77a9a7f29f"
	for _, tt := range []struct {
		uuid  string
		short bool
		want  string
	}{
		{plain, true, "GPU-6a96bd13"},
		{plain, false, "GPU-" + plain},
		{"GPU-" + plain, true, "GPU-6a96bd13"},
		{"GPU-" + plain, false, "GPU-" + plain},
		{"MIG-" + plain, true, "MIG-" + plain},
		{"MIG-GPU-" + plain + "/1/0", true, "MIG-GPU-" + plain + "/1/0"},
		{"6a", true, "GPU-6a"},
	} {
		if got := ID(tt.uuid, tt.short); got != tt.want {
			t.Errorf("ID(%q, %t) = %q, want %q", tt.uuid, tt.short, got, tt.want)
		}
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	const id = "GPU-6a96bd13-70bc"
	for _, tt := range []struct {
		list            string
		renumbered      bool
		device, managed bool // of the device 1 with that name
	}{
		{"", false, true, true},
		{" , ", false, true, true},
		{"1", false, true, false},
		{"0,2", false, false, false},
		{"0,2", true, true, false},
		{"CUDA1", false, true, false},
		{"OCL1 ,x", false, true, false},
		{"1x", false, false, false},
		{"GPU-6a9", false, true, true},
		{"0, GPU-6a9", false, true, true},
		{"GPU-7", false, false, false},
		{"-1", false, false, false},
		{"99999999999999999999", false, false, false},
	} {
		a := Allow{Renumbered: tt.renumbered}
		a.Add(tt.list)
		if got := a.device(1, id); got != tt.device {
			t.Errorf("%q: device shown %t", tt.list, got)
		}
		if got := a.managed(id); got != tt.managed {
			t.Errorf("%q: managed device shown %t", tt.list, got)
		}
	}
}

func TestCoresPerUnit(t *testing.T) {
	t.Parallel()
	for c, want := range map[Capability]int{
		{1, 0}: 8, {1, 3}: 8, {2, 0}: 32, {2, 1}: 48, {3, 0}: 192, {3, 7}: 192, {5, 0}: 128, {5, 3}: 128, {6, 0}: 64, {6, 1}: 128, {6, 2}: 128,
		{7, 0}: 64, {7, 2}: 64, {7, 5}: 64, {8, 0}: 64, {8, 6}: 128, {8, 9}: 128, {9, 0}: 128, {10, 0}: 128, {12, 1}: 128, {20, 0}: 128,
	} {
		if got := CoresPerUnit(c); got != want {
			t.Errorf("%d.%d: %d, want %d", c.Major, c.Minor, got, want)
		}
	}
}

// hostile has a name that would end its line and its string.
const hostile = "a \"b\" \\ c\nDetectedGPUs=\"x\"\t\x00\u00e9"

func TestText(t *testing.T) {
	t.Parallel()
	one := Device{UUID: "11111111-2222", Name: "One"}
	two := Device{UUID: "33333333-4444", Name: "Two"}
	nested := Options{Tag: "GPUs", Nested: true, Properties: true}
	flat := Options{Tag: "GPUs", Properties: true}
	for _, tt := range []struct {
		name  string
		found Found
		o     Options
		want  string
	}{
		{"nothing known", Found{Devices: []Device{{From: OpenCL}, {From: OpenCL}}, Prefix: "OCL"}, nested,
			"DetectedGPUs=\"OCL0, OCL1\"\n"},
		{"zero is known", Found{Devices: []Device{{UUID: "1", Memory: Is(uint64(0)), Units: Is(0), ClockKHz: Is(0), ECC: Is(false), Warp: Is(0)}}}, Options{Tag: "GPUs", Properties: true, Extra: true},
			"DetectedGPUs=\"GPU-1\"\nClockMhz=0.00\nDeviceUuid=\"1\"\nECCEnabled=false\nGlobalMemoryMb=0\nWarpSize=0\n"},
		{"a hostile name", Found{Devices: []Device{{UUID: "1", Name: hostile}}}, flat,
			"DetectedGPUs=\"GPU-1\"\nDeviceName=\"a \\\"b\\\" \\\\ c?DetectedGPUs=\\\"x\\\"??\u00e9\"\nDeviceUuid=\"1\"\n"},
		{"memory is rounded", Found{Devices: []Device{{UUID: "1", Memory: Is(uint64(1536*mib - 1))}, {UUID: "2", Memory: Is(uint64(mib / 2))}}}, flat,
			"DetectedGPUs=\"GPU-1, GPU-2\"\nGPU_1DeviceUuid=\"1\"\nGPU_1GlobalMemoryMb=1536\nGPU_2DeviceUuid=\"2\"\nGPU_2GlobalMemoryMb=0\n"},
		{"the same short name", Found{Devices: []Device{{UUID: "11111111-2", Name: "A"}, {UUID: "11111111-3", Name: "B"}}}, nested,
			"DetectedGPUs=\"GPU-11111111, GPU-11111111\"\nCommon=[ DeviceName=\"B\"; DeviceUuid=\"11111111-3\"; ]\nGPU_11111111=[ id=\"GPU-11111111\"; ]\n"},
		{"ads are in the order of names", Found{Devices: []Device{two, one}}, nested,
			"DetectedGPUs=\"GPU-33333333, GPU-11111111\"\nGPU_11111111=[ id=\"GPU-11111111\"; DeviceName=\"One\"; DeviceUuid=\"11111111-2222\"; ]\nGPU_33333333=[ id=\"GPU-33333333\"; DeviceName=\"Two\"; DeviceUuid=\"33333333-4444\"; ]\n"},
		{"a device of both libraries", Found{Devices: []Device{one}, Managed: []Device{{From: NVML, UUID: "GPU-11111111-2222"}, {From: NVML, UUID: "GPU-5"}}}, Options{Tag: "GPUs"},
			"DetectedGPUs=\"GPU-11111111, GPU-5\"\n"},
		{"no UUIDs, so nothing else is shown", Found{Devices: []Device{{}}, Prefix: "CUDA", Managed: []Device{{From: NVML, UUID: "GPU-5"}}}, Options{Tag: "GPUs", IDs: ByIndex},
			"DetectedGPUs=\"CUDA0\"\n"},
		{"devices of HIP with and without UUIDs", Found{Devices: []Device{{From: HIP, UUID: "1"}, {From: HIP}}, Prefix: "GPU"}, Options{Tag: "GPUs"},
			"DetectedGPUs=\"GPU-1, GPU1\"\n"},
		{"the instance knows better than its device", Found{
			Devices: []Device{{UUID: "1", Name: "Whole", ECC: Is(true), Units: Is(108), Memory: Is(uint64(40 * mib)), Capability: Is(Capability{8, 0})}},
			Managed: []Device{{From: NVML, UUID: "MIG-2", Name: "Part", ECC: Is(false), Units: Is(14)}},
			Parents: map[string][]string{"GPU-1": {"MIG-2"}}}, Options{Tag: "GPUs", Properties: true, Extra: true},
			"DetectedGPUs=\"MIG-2\"\nCapability=8.0\nComputeUnits=14\nCoresPerCU=64\nDeviceName=\"Part\"\nDeviceUuid=\"MIG-2\"\nECCEnabled=false\n"},
		{"what changes is never common", Found{Devices: []Device{{UUID: "1"}, {UUID: "2"}}, Live: map[string]Live{"1": {Celsius: Is(uint32(30))}, "2": {Celsius: Is(uint32(30)), FanPercent: Is(uint32(0))}}},
			Options{Tag: "GPUs", Properties: true, Dynamic: true, Nested: true, Cron: true},
			"GPU_1=[ id=\"GPU-1\"; DeviceUuid=\"1\"; DieTempC=30; ]\nGPU_2=[ id=\"GPU-2\"; DeviceUuid=\"2\"; DieTempC=30; FanSpeedPct=0; ]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Text(tt.found, tt.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSimulate reads any list: it is devices with different names, or an error.
func FuzzSimulate(f *testing.F) {
	for _, s := range []string{"", "8", "0,1,1,3,3,1", "5", "2,0", "1,", "9", "-1", "2x", ",", "3,99999999999999999999", " 3 , 2 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		found, err := Simulate([]string{spec}, 0)
		if err != nil {
			return
		}
		if len(found.Devices) > simulatedMax {
			t.Fatalf("%d devices", len(found.Devices))
		}
		names := make(map[string]bool)
		for _, d := range append(found.Devices, found.Managed...) {
			if names[d.UUID] {
				t.Errorf("%q twice", d.UUID)
			}
			names[d.UUID] = true
		}
	})
}

// FuzzText prints devices with any name: the lines are as many as without it,
// and every one has a name of an attribute.
func FuzzText(f *testing.F) {
	f.Add("One", "11111111-2222")
	f.Add(hostile, "MIG-GPU-1/2/3")
	f.Fuzz(func(t *testing.T, name, uuid string) {
		if strings.ContainsAny(uuid, "\"\n") {
			return // the edges let no such UUID pass
		}
		got := Text(Found{Devices: []Device{{UUID: uuid, Name: name}, {UUID: "2"}}, Prefix: "CUDA"}, Options{Tag: "GPUs", Properties: true, Nested: true, IDs: FullUUID})
		lines := 0
		for line := range strings.Lines(got) {
			lines++
			if attr, _, ok := strings.Cut(line, "="); !ok || attr != attribute(attr) && !strings.HasPrefix(line, "condor_gpu_discovery_error") {
				t.Errorf("line %q", line)
			}
		}
		if lines > 5 {
			t.Errorf("%d lines:\n%s", lines, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	found, err := Simulate([]string{"8"}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Text(found, Options{Tag: "GPUs", Properties: true, Extra: true, Nested: true})
	}
}

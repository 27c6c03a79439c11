// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
)

// nothing is a machine without libraries.
type nothing struct{}

func (nothing) NVIDIA(gpus.Wanted) (gpu.Found, error) { return gpu.Found{}, nil }
func (nothing) HIP(uint16) ([]gpu.Device, bool)       { return nil, false }
func (nothing) OpenCL() []gpu.Device                  { return nil }

// TestAnswers is about what the recordings do not say: words on stderr, what
// changes while a device works, and lists in the environment.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args string
		env        map[string]string
		want       answer
	}{
		{name: "no device", want: answer{out: "DetectedGPUs=0\n"}},
		{name: "no device, configuration", args: "-config -tag Foo", want: answer{out: "DetectedFoo=0\nNUM_DETECTED_Foo=0\n"}},
		{name: "no device, cron", args: "-cron -dynamic"},
		{name: "no step to tell of", args: "-simulate -diagnostic -verbose", want: answer{out: "DetectedGPUs=\"GPU-a0223334\"\n"}},
		{name: "what changes", args: "-simulate:3 -dynamic -cron", want: answer{out: "Common=[ Capability=7.5; DeviceName=\"TITAN RTX\"; DevicePciBusId=\"0000:40:00.0\"; DeviceUuid=\"a0223334-4445-5667-899a-abbccddeeff0\"; ECCEnabled=false; GlobalMemoryMb=24220; ]\n" +
			"GPU_a0223334=[ id=\"GPU-a0223334\"; DieTempC=348; EccErrorsDoubleBit=0; EccErrorsSingleBit=0; FanSpeedPct=268; PowerUsage_mw=288; ]\n"}},
		{name: "what changes, flat", args: "-simulate:3,2 -dynamic -cron -not-nested -device 1", want: answer{out: "CUDACapability=7.5\nCUDADeviceName=\"TITAN RTX\"\nCUDADevicePciBusId=\"0000:41:00.0\"\nCUDADeviceUuid=\"b1223334-4445-5667-899a-abbccddeeff0\"\nCUDAECCEnabled=false\nCUDAGlobalMemoryMb=24220\n" +
			"GPU_b1223334DieTempC=349\nGPU_b1223334EccErrorsDoubleBit=0\nGPU_b1223334EccErrorsSingleBit=0\nGPU_b1223334FanSpeedPct=269\nGPU_b1223334PowerUsage_mw=289\n"}},
		{name: "CUDA's list", args: "-simulate:3,3", env: map[string]string{"CUDA_VISIBLE_DEVICES": "2, GPU-a0"}, want: answer{out: "DetectedGPUs=\"GPU-a0223334, GPU-c2223334\"\n"}},
		{name: "the other list", args: "-simulate:3,3", env: map[string]string{"GPU_DEVICE_ORDINAL": "1"}, want: answer{out: "DetectedGPUs=\"GPU-b1223334\"\n"}},
		{name: "lists add up", args: "-simulate:3,4 -device CUDA3", env: map[string]string{"CUDA_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "1"}, want: answer{out: "DetectedGPUs=\"GPU-a0223334, GPU-b1223334, GPU-d3223334\"\n"}},
		{name: "HIP's list is not for CUDA", args: "-simulate:3,2", env: map[string]string{"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "1"}, want: answer{out: "DetectedGPUs=\"GPU-a0223334, GPU-b1223334\"\n"}},
		{name: "an empty list is none", args: "-simulate:3,2", env: map[string]string{"CUDA_VISIBLE_DEVICES": " , "}, want: answer{out: "DetectedGPUs=\"GPU-a0223334, GPU-b1223334\"\n"}},
		{name: "no device is in the list", args: "-simulate:3,2 -properties", env: map[string]string{"CUDA_VISIBLE_DEVICES": "-1"}, want: answer{out: "DetectedGPUs=\"\"\n"}},
		{name: "long prefix", args: "-prefix " + strings.Repeat("x", 81), want: answer{err: "-prefix: 81 characters are too many: 80 at most\n", exit: 1}},
		{name: "half a model number", args: "-fix-hip-guid xyz", want: answer{err: "-fix-hip-guid needs up to four hexadecimal digits, not \"xyz\"\n", exit: 1}},
		{name: "help", args: "-cron -help -nonsense", want: answer{out: usage()}},
		{name: "shortest help", args: "-h", want: answer{out: usage()}},
		{name: "no option", args: "-nonsense", want: answer{err: "\"-nonsense\" is no option\n" + usage(), exit: 1}},
		{name: "no dash", args: "properties", want: answer{err: "\"properties\" is no option\n" + usage(), exit: 1}},
		{name: "two dashes ask for the whole word", args: "--prop", want: answer{err: "\"--prop\" is no option\n" + usage(), exit: 1}},
		{name: "too short", args: "-ex", want: answer{err: "\"-ex\" is no option\n" + usage(), exit: 1}},
		{name: "colon without need", args: "-properties:3", want: answer{err: "\"-properties:3\" is no option\n" + usage(), exit: 1}},
		{name: "device without one", args: "-device -properties", want: answer{err: "-device needs the number or name of a device\n" + usage(), exit: 1}},
		{name: "not a number of times", args: "-repeat 2x", want: answer{err: "-repeat needs a number up to 10000, not \"2x\"\n" + usage(), exit: 1}},
		{name: "too many times", args: "-divide 10001", want: answer{err: "-divide needs a number up to 10000, not \"10001\"\n" + usage(), exit: 1}},
		{name: "no such kind", args: "-simulate:9", want: answer{err: "-simulate: gpu.Simulate \"9\": invalid: \"9\" is no kind of device: 0 to 7, or 8 for one of each\n" + usage(), exit: 1}},
		{name: "no kind", args: "-simulate:A100", want: answer{err: "-simulate: gpu.Simulate \"A100\": invalid: \"A100\" is no kind of device: 0 to 7, or 8 for one of each\n" + usage(), exit: 1}},
		{name: "each, but not first", args: "-simulate:3,1,8", want: answer{err: "-simulate: gpu.Simulate \"3,1,8\": invalid: \"8\" is no kind of device: 0 to 7, or 8 for one of each\n" + usage(), exit: 1}},
		{name: "no number of devices", args: "-simulate:3,many", want: answer{err: "-simulate: gpu.Simulate \"3,many\": invalid: \"many\" is no number of devices\n" + usage(), exit: 1}},
		{name: "too many devices", args: "-simulate:3,200,2,57", want: answer{err: "-simulate: gpu.Simulate \"3,200,2,57\": invalid: more than 256 devices\n" + usage(), exit: 1}},
		{name: "too many devices in two options", args: "-simulate:3,200 -simulate:3,57", want: answer{err: "-simulate: gpu.Simulate \"3,57\": invalid: more than 256 devices\n" + usage(), exit: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := maps.Clone(tt.env)
			got := asked(env, strings.Fields(tt.args)...)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// asks notes which libraries were asked, and has these devices.
type asks struct {
	nvidia, hip, opencl []gpu.Device
	err                 error
	noHIP               bool
	trail               *[]string
}

func (a asks) NVIDIA(w gpus.Wanted) (gpu.Found, error) {
	*a.trail = append(*a.trail, "nvidia")
	return gpu.Found{Devices: a.nvidia, Prefix: "CUDA"}, a.err
}

func (a asks) HIP(uint16) ([]gpu.Device, bool) {
	*a.trail = append(*a.trail, "hip")
	return a.hip, !a.noHIP
}

func (a asks) OpenCL() []gpu.Device {
	*a.trail = append(*a.trail, "opencl")
	return a.opencl
}

// TestOrder is about which libraries are asked, by what is found and asked for.
func TestOrder(t *testing.T) {
	t.Parallel()
	one := []gpu.Device{{From: gpu.HIP}}
	for _, tt := range []struct {
		args string
		has  asks
		want string
	}{
		{"", asks{nvidia: one}, "nvidia"},
		{"", asks{hip: one}, "nvidia hip"},
		{"", asks{}, "nvidia hip opencl"},
		{"-cuda", asks{}, "nvidia"},
		{"-hip", asks{}, "hip"},
		{"-opencl", asks{}, "opencl"},
		{"-cuda -hip", asks{nvidia: one}, "nvidia hip"},
		{"-hip -opencl", asks{}, "hip opencl"},
		{"-hip -opencl", asks{hip: one}, "hip"},
		{"-cuda -opencl", asks{nvidia: one}, "nvidia"},
		{"-cuda -opencl", asks{}, "nvidia opencl"},
		{"-opencl -dynamic", asks{nvidia: one}, "nvidia"},
		{"-dynamic -opencl", asks{}, "opencl"},
		{"", asks{err: errors.New("lost")}, "nvidia"},
	} {
		var trail []string
		tt.has.trail = &trail
		o, err := parse(strings.Fields(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := gpus.Ask(tt.has, o.choice()); !errors.Is(err, tt.has.err) {
			t.Errorf("%q: %v", tt.args, err)
		}
		if got := strings.Join(trail, " "); got != tt.want {
			t.Errorf("%q asks %s, want %s", tt.args, got, tt.want)
		}
	}
}

// TestEnvironment is about what the libraries see of the lists.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	all := map[string]string{"CUDA_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "0", "HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "0", "PATH": "/bin"}
	env := maps.Clone(all)
	asked(env)
	if diff := cmp.Diff(map[string]string{"PATH": "/bin"}, env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	env = maps.Clone(all)
	asked(env, "-dirty-environment")
	if diff := cmp.Diff(all, env); diff != "" {
		t.Errorf("-dirty-environment (-want +got):\n%s", diff)
	}
}

// FuzzOptions reads any command line: it is an answer or a usage error.
func FuzzOptions(f *testing.F) {
	for _, s := range []string{"-simulate:8 -extra", "-sim:0,1,1 -repeat 3 -packed -config", "-device 0,GPU-a -mixed -not-nested", "-prefix", "-tag X -uuid -divide", "-fix-hip-guid 74a0", "-simulate:,,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := asked(map[string]string{}, strings.Fields(line)...)
		if got.exit == 0 && got.err != "" || got.exit != 0 && got.err == "" {
			t.Errorf("%q: exit %d, stderr %q", line, got.exit, got.err)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is the program as it is shipped, without cgo, and the folder with
// the stand-ins for libraries, each in a folder of its name.
type program struct{ path, libs string }

// standIns is how each is made: its library, its source, and the C compiler's
// arguments.
var standIns = map[string][]string{
	"nvml": {"libnvidia-ml.so.1", "nvml.c"}, "nvmlold": {"libnvidia-ml.so.1", "nvml.c", "-DOLD"}, "nvmlhostile": {"libnvidia-ml.so.1", "nvml.c", "-DHOSTILE"},
	"cuda": {"libcuda.so.1", "cuda.c"}, "cudaold": {"libcuda.so.1", "cuda.c", "-DOLD"}, "cudart": {"libcudart.so", "cudart.c"},
	"hip": {"libamdhip64.so.6", "hip.c"}, "ocl": {"libOpenCL.so", "opencl.c"},
	"emptynvml": {"libnvidia-ml.so.1", "-xc", "/dev/null"}, "emptycuda": {"libcuda.so.1", "-xc", "/dev/null"}, "emptyhip": {"libamdhip64.so.7", "-xc", "/dev/null"},
	"needy": {"libnvidia-ml.so.1", "nvml.c", "-Wl,--no-as-needed", "-L.", "-l:libneeded.so"},
}

// built builds the program and the stand-ins, once for all tests.
var built = sync.OnceValues(func() (program, error) {
	dir := scratch
	p := program{path: filepath.Join(dir, "condor_gpu_discovery"), libs: dir}
	build := exec.Command("go", "build", "-o", p.path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return p, errors.New(string(out))
	}
	needed := exec.Command("gcc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libneeded.so"), "-xc", "/dev/null")
	if errors.Is(needed.Run(), exec.ErrNotFound) {
		return p, nil
	}
	for name, how := range standIns {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			return p, err
		}
		args := append([]string{"-shared", "-fPIC", "-o", filepath.Join(sub, how[0])}, how[1:]...)
		compile := exec.Command("gcc", args...)
		compile.Dir = "testdata"
		for i, arg := range compile.Args {
			if arg == "-L." {
				compile.Args[i] = "-L" + dir
			}
		}
		if out, err := compile.CombinedOutput(); err != nil {
			return p, errors.New(string(out))
		}
	}
	return p, os.Remove(filepath.Join(dir, "libneeded.so"))
})

// scratch is the folder of what the tests build.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "gpu-discovery-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// theProgram returns the program; with stand-ins it skips where they cannot be
// made.
func theProgram(t *testing.T, withStandIns bool) program {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	if _, err := exec.LookPath("gcc"); withStandIns && err != nil {
		t.Skip("install gcc: the stand-ins for the libraries of drivers are written in C")
	}
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the program with folders on the search path of libraries.
func (p program) run(t *testing.T, libs, env, args []string) answer {
	t.Helper()
	var path []string
	for _, lib := range libs {
		if !filepath.IsAbs(lib) {
			lib = filepath.Join(p.libs, lib)
		}
		path = append(path, lib)
	}
	cmd := exec.Command(p.path, args...)
	cmd.Env = append([]string{"LD_LIBRARY_PATH=" + strings.Join(path, ":")}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return answer{stdout.String(), strings.ReplaceAll(stderr.String(), p.libs, "${LIBS}"), cmd.ProcessState.ExitCode()}
}

// TestLibraries runs the program with stand-ins for the libraries of drivers,
// and compares with what HTCondor's tool prints with the same ones.
func TestLibraries(t *testing.T) {
	t.Parallel()
	p := theProgram(t, true)
	for _, r := range readRecorded(t, "testdata/libraries.jsonl") {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			got := p.run(t, r.Libs, r.Env, r.Args)
			r.check(t, got.out, got.exit)
		})
	}
}

// TestDamagedLibraries is about libraries that are there but do not work: what
// is printed says so, and the rest goes on.
func TestDamagedLibraries(t *testing.T) {
	t.Parallel()
	p := theProgram(t, true)
	damaged := func(name string, change func([]byte) []byte) string {
		dir := t.TempDir()
		whole, err := os.ReadFile(filepath.Join(p.libs, "nvml", "libnvidia-ml.so.1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), change(whole), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	text := damaged("libnvidia-ml.so.1", func([]byte) []byte { return []byte("not a library\n") })
	long := damaged("libnvidia-ml.so.1", func([]byte) []byte { return bytes.Repeat([]byte("not a library\n"), 1000) })
	empty := damaged("libcuda.so.1", func([]byte) []byte { return nil })
	head := damaged("libnvidia-ml.so.1", func(b []byte) []byte { return b[:40] })
	half := damaged("libnvidia-ml.so.1", func(b []byte) []byte { return b[:len(b)/2] })
	const none = "DetectedGPUs=0\n"
	const crashed = "condor_gpu_discovery_error = \"a library of a GPU driver crashed\"\n"
	const two = "DetectedGPUs=\"GPU-8aa54555, GPU-5d2744da\"\n"
	for _, tt := range []struct {
		name      string
		libs, env []string
		args      string
		out       string
		err       string // must be in stderr
		exit      int
	}{
		{name: "a text", libs: []string{text}, out: none, err: "libnvidia-ml.so.1 is there but cannot be loaded: "},
		{name: "a longer text", libs: []string{long}, out: none, err: "invalid ELF header"},
		{name: "a text in a configuration", libs: []string{text}, args: "-config", out: "# libnvidia-ml.so.1 is there but cannot be loaded: " + text + "/libnvidia-ml.so.1: file too short\nDetectedGPUs=0\nNUM_DETECTED_GPUs=0\n"},
		{name: "an empty file", libs: []string{empty}, out: none, err: "libcuda.so.1 is there but cannot be loaded: "},
		{name: "the beginning", libs: []string{head}, out: none, err: "file too short"},
		{name: "half", libs: []string{half}, exit: 1, out: crashed, err: "a library of a GPU driver crashed: SIGBUS: bus error, at the step: loading libnvidia-ml.so.1\n"},
		{name: "half, with CUDA", libs: []string{"cuda", half}, exit: 1, out: crashed, err: "at the step: loading libnvidia-ml.so.1\n"},
		{name: "it aborts", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=abort"}, exit: 1, out: crashed, err: "crashed: SIGABRT: abort, at the step: asking libnvidia-ml.so.1\n"},
		{name: "it is killed", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=killed"}, exit: 1, out: crashed, err: "crashed: signal: killed, at the step: asking libnvidia-ml.so.1\n"},
		{name: "what it needs is missing", libs: []string{"needy"}, out: none, err: "libneeded.so: cannot open shared object file"},
		{name: "no functions", libs: []string{"emptynvml"}, out: none, err: "libnvidia-ml.so.1 has no nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetUUID, nvmlInit_v2, nvmlShutdown, so it is not used\n"},
		{name: "no functions of CUDA", libs: []string{"emptycuda", "nvml"}, out: "DetectedGPUs=\"GPU-8aa54555, GPU-5d2744da, GPU-c4a646d7\"\n", err: "libcuda.so.1 has no cuDeviceGet, so it is not used\n"},
		{name: "no functions of HIP", libs: []string{"emptyhip"}, out: none, err: "libamdhip64.so.7 has no hipGetDeviceCount, so it is not used\n"},
		{name: "the driver is not loaded", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=init"}, out: two, err: "libnvidia-ml.so.1 does not start: error 9 (Driver Not Loaded)"},
		{name: "a device is lost", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=handle"}, exit: 1,
			out: "condor_gpu_discovery_error = \"the libraries of the driver cannot say which devices there are\"\n", err: "nvmlDeviceGetHandleByIndex_v2(1): error 15 (GPU is lost)"},
		{name: "CUDA does not start", libs: []string{"cuda", "nvml"}, env: []string{"CUDA_INIT=804"}, out: none, err: "libcuda.so.1 does not start: cuInit returned 804"},
		{name: "it prints without end", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=flood"}, exit: 1, out: crashed, err: "crashed: signal: broken pipe"},
		{name: "it leaves a helper running", libs: []string{"cuda", "nvml"}, env: []string{"NVML_FAIL=helper", "PATH=/usr/bin:/bin"}, out: two},
		{name: "split without instances", libs: []string{"nvml"}, env: []string{"NVML_MIG=1", "NVML_FAIL=instance"}, out: "DetectedGPUs=\"GPU-5d2744da, GPU-c4a646d7\"\n"},
		{name: "nothing changes without NVML", libs: []string{"cuda"}, args: "-dynamic -cron -mixed -device 1 -not-nested", err: "libnvidia-ml.so.1 cannot be used: there are no dynamic properties",
			out: "GPU_5d2744daCapability=8.9\nGPU_5d2744daDeviceName=\"NVIDIA L4\"\nGPU_5d2744daDevicePciBusId=\"0000:A0:1D.0\"\nGPU_5d2744daDeviceUuid=\"5d2744da-c329-024c-6477-17d879625691\"\nGPU_5d2744daDriverVersion=12.40\n" +
				"GPU_5d2744daECCEnabled=true\nGPU_5d2744daGlobalMemoryMb=22488\nGPU_5d2744daMaxSupportedVersion=12040\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := p.run(t, tt.libs, tt.env, strings.Fields(tt.args))
			if diff := cmp.Diff(tt.out, got.out); diff != "" || got.exit != tt.exit {
				t.Errorf("exit %d, want %d; stdout (-want +got):\n%s", got.exit, tt.exit, diff)
			}
			if !strings.Contains(got.err, tt.err) || tt.err == "" && got.err != "" {
				t.Errorf("stderr %q, want %q in it", got.err, tt.err)
			}
		})
	}
}

// TestHostileLibrary is about a library that claims billions of devices with
// names without end: what is printed has one line a device and bounded length.
func TestHostileLibrary(t *testing.T) {
	t.Parallel()
	p := theProgram(t, true)
	got := p.run(t, []string{"nvmlhostile"}, nil, []string{"-extra", "-dynamic"})
	if got.exit != 0 || len(got.out) > 1<<20 {
		t.Fatalf("exit %d, %d bytes, stderr %q", got.exit, len(got.out), got.err)
	}
	for line := range strings.Lines(got.out) {
		if name, _, ok := strings.Cut(line, "="); !ok || strings.ContainsAny(name, " \"\t") || !strings.HasSuffix(line, "]\n") && !strings.HasPrefix(line, "Detected") {
			t.Errorf("line %.200q", line)
		}
	}
}

// TestNoLibraries is a machine without a driver.
func TestNoLibraries(t *testing.T) {
	t.Parallel()
	p := theProgram(t, false)
	for args, want := range map[string]string{"": "DetectedGPUs=0\n", "-properties -extra -dynamic": "DetectedGPUs=0\n", "-config": "DetectedGPUs=0\nNUM_DETECTED_GPUs=0\n", "-cron": ""} {
		got := p.run(t, []string{t.TempDir()}, nil, strings.Fields(args))
		got.err = ""
		if diff := cmp.Diff(answer{out: want}, got, cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
	got := p.run(t, []string{t.TempDir()}, nil, []string{"-diagnostic"})
	for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1", "libamdhip64.so.7", "libOpenCL.so"} {
		if !strings.Contains(got.out, "diag: "+name+": cannot open shared object file") {
			t.Errorf("-diagnostic does not tell of %s:\n%s", name, got.out)
		}
	}
}

// BenchmarkNoGPU is from the start of the program to its end on a machine
// without a driver.
func BenchmarkNoGPU(b *testing.B) {
	p, err := built()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := exec.Command(p.path, "-properties", "-extra").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

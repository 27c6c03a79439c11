// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/submit"
)

// endpoint builds condor_ep beside the program, which then is the whole of
// LIBEXEC, once for all tests.
var endpoint = sync.OnceValues(func() (string, error) {
	p, err := built()
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.libs, "condor_ep")
	build := exec.Command("go", "build", "-o", path, "../condor_ep")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// slots returns the slots that this machine would have with a configuration.
func slots(t *testing.T, config string) []*classad.Ad {
	t.Helper()
	p := theProgram(t, false)
	ep, err := endpoint()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "condor_config")
	text := "LIBEXEC = " + p.libs + "\nNUM_CPUS = 8\nMEMORY = 16384\n" + config
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ep, "slots", "--config", file, "--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var ads []*classad.Ad
	if err := json.Unmarshal(stdout.Bytes(), &ads); err != nil {
		t.Fatal(err)
	}
	return ads
}

// about returns the text of every attribute of the ad in names, in that order;
// !name where there is none.
func about(ad *classad.Ad, names []string) []string {
	var out []string
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			out = append(out, name+" "+e.String())
		} else {
			out = append(out, "!"+name)
		}
	}
	return out
}

// TestSlots has the startd's side run the program that it finds in LIBEXEC, and
// looks at what the slots then advertise.
func TestSlots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		want         [][]string // of each slot: attributes and their text, !attribute for none
	}{
		// row: S0-285, S0-286, S4-102
		{"the feature", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -extra -simulate:3,2\n", [][]string{{
			`GPUs 2`, `TotalGPUs 2`, `DetectedGPUs "GPU-a0223334, GPU-b1223334"`, `AssignedGPUs "GPU-a0223334,GPU-b1223334"`,
			`GPUs_Capability 7.5`, `GPUs_ClockMhz 1770.0`, `GPUs_ComputeUnits 72`, `GPUs_CoresPerCU 64`}}},
		// row: S0-286, S4-102
		{"without a word of GPUs", "GPU_DISCOVERY_EXTRA = -extra -simulate:3,2\n", [][]string{{
			`GPUs 2`, `GPUs_Capability 7.5`, `GPUs_ClockMhz 1770.0`, `GPUs_ComputeUnits 72`, `GPUs_CoresPerCU 64`}}},
		// row: S0-286
		{"nothing extra", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -simulate:3,2\n", [][]string{{
			`GPUs 2`, `GPUs_Capability 7.5`, `!GPUs_ClockMhz`, `!GPUs_ComputeUnits`, `!GPUs_CoresPerCU`}}},
		// row: S0-287
		{"one ad per device", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -simulate:2,1,3,1\n", [][]string{{
			`GPUs_GPU_a0223334 [ Id = "GPU-a0223334"; Capability = 7.0; DeviceName = "Tesla V100-PCIE-16GB"; DeviceUuid = "a0223334-4445-5667-899a-abbccddeeff0"; ECCEnabled = true; DevicePciBusId = "0000:40:00.0"; GlobalMemoryMb = 24220 ]`,
			`GPUs_GPU_b1223334 [ Id = "GPU-b1223334"; Capability = 7.5; DeviceName = "TITAN RTX"; DeviceUuid = "b1223334-4445-5667-899a-abbccddeeff0"; ECCEnabled = false; DevicePciBusId = "0000:41:00.0"; GlobalMemoryMb = 24220 ]`,
			`!GPU_a0223334Capability`, `!GPU_b1223334Capability`, `!CUDAGlobalMemoryMb`}}},
		// row: S0-287
		{"prefixes", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -not-nested -simulate:2,1,3,1\n", [][]string{{
			`GPUs 2`, `!GPUs_GPU_a0223334`, `!GPUs_GPU_b1223334`, `GPU_a0223334Capability 7.0`, `GPU_b1223334Capability 7.5`, `CUDAGlobalMemoryMb 24220`}}},
		// row: S0-288, S0-289
		{"by id and by property", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -simulate:2,1,3,2\nSLOT_TYPE_1 @=end\n  GPUs = 1 : \"GPU-b1223334\"\n  25%\n@end\nNUM_SLOTS_TYPE_1 = 1\n" +
			"SLOT_TYPE_2 @=end\n  GPUs = 1 : Capability < 7.5\n  25%\n@end\nNUM_SLOTS_TYPE_2 = 1\n", [][]string{
			{`AssignedGPUs "GPU-b1223334"`, `GPUs_DeviceName "TITAN RTX"`}, {`AssignedGPUs "GPU-a0223334"`, `GPUs_DeviceName "Tesla V100-PCIE-16GB"`}}},
		{"instances", "use feature : GPUs\nGPU_DISCOVERY_EXTRA = -simulate:7,1,3,1\n", [][]string{{
			`GPUs 3`, `AssignedGPUs "GPU-b1223334,MIG-a0223300-4445-5667-899a-abbccddeeff0,MIG-a0223301-4445-5667-899a-abbccddeeff0"`}}},
		{"none", "use feature : GPUs\n", [][]string{{`GPUs 0`, `DetectedGPUs 0`, `!AssignedGPUs`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got [][]string
			for i, ad := range slots(t, tt.config) {
				var names []string
				for _, want := range tt.want[min(i, len(tt.want)-1)] {
					name, _, _ := strings.Cut(strings.TrimPrefix(want, "!"), " ")
					names = append(names, name)
				}
				got = append(got, about(ad, names))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRequireGPUs matches jobs that ask for a kind of GPU with slots whose
// properties are nested and are not.
//
// row: S2-038
func TestRequireGPUs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		extra, require string
		want           bool
	}{
		{"-extra", "", true},
		{"-extra", "require_gpus = Capability >= 7.5", true},
		{"-extra", "require_gpus = Capability >= 8.0", false},
		{"-extra -not-nested", "", true},
		{"-extra -not-nested", "require_gpus = Capability >= 7.5", false},
		{"-extra -not-nested", "require_gpus = Capability >= 0", false},
		{"-extra -not-nested", "require_gpus = true", false},
	} {
		t.Run(tt.extra+" "+tt.require, func(t *testing.T) {
			t.Parallel()
			found := slots(t, "use feature : GPUs\nGPU_DISCOVERY_EXTRA = "+tt.extra+" -simulate:3,2\nSTART = true\n")
			if len(found) != 1 {
				t.Fatalf("%d slots", len(found))
			}
			arch, _ := found[0].EvalString("Arch", nil)
			d, err := submit.Parse("gpu.sub", "executable = /bin/true\nrequest_cpus = 1\nrequest_memory = 1\nrequest_disk = 1\nrequest_gpus = 1\n"+tt.require+"\nqueue\n",
				submit.Options{Cluster: 1, Now: time.Unix(1790000000, 0), Owner: "ann", Cwd: "/", Arch: arch})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := d.Jobs()
			if err != nil {
				t.Fatal(err)
			}
			// The version is that of the daemon and file transfer is the
			// starter's, neither of which runs here.
			found[0].SetBool("HasFileTransfer", true)
			found[0].SetString("CondorVersion", "$CondorVersion: 25.12.0 2026-06-01 $")
			requirements, _ := jobs[0].Lookup("Requirements")
			if got := classad.Match(jobs[0], found[0], nil); got.LeftOK != tt.want || !got.RightOK {
				t.Errorf("the slot matches the job %t, want %t; the job matches the slot %t; %s is %v", got.LeftOK, tt.want, got.RightOK, requirements, got.LeftReq)
			}
		})
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"github.com/execpoint/execpoint/lib/tool/record"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sensor is a periodic program that prints what the file sensor says, leaves a
// daemon of its own behind and does not heed the soft kill.
const sensor = `#!/bin/sh
trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
cat "$1"
echo -
`

// TestSensorDrivesPolicy lets a real script decide whether jobs start, are
// suspended and go on, in a run of the embedded access point.
//
// row: S0-225, S0-238
func TestSensorDrivesPolicy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "sensor.sh", sensor)
	values := p.write(t, "values", "Ready = False\n")
	p.write(t, "ep.conf", fmt.Sprintf(`NUM_CPUS = 1
POLLING_INTERVAL = 1
UPDATE_INTERVAL = 1
START = Ready =?= True
WANT_SUSPEND = True
SUSPEND = Busy =?= True
CONTINUE = Busy =!= True
STARTD_CRON_JOBLIST = sensor
STARTD_CRON_sensor_EXECUTABLE = %s/sensor.sh
STARTD_CRON_sensor_ARGS = %s
STARTD_CRON_sensor_PERIOD = 1s
`, p.dir, values))
	p.write(t, "job.sh", "#!/bin/sh\nwhile [ ! -e "+p.dir+"/finish ]; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
	c, out, errOut := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	set := func(text string) {
		p.write(t, "next", text)
		if err := os.Rename(filepath.Join(p.dir, "next"), values); err != nil {
			t.Fatal(err)
		}
	}
	events := func(want string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(filepath.Join(p.dir, "job.log"))
			return strings.Contains(string(b), want)
		}
	}
	waitFor(t, "the sensor was heard", func() bool { return strings.Contains(p.log(), "hook left processes behind") })
	if events("001 (")() {
		t.Error("the job started though the sensor says that nothing is ready")
	}
	set("Ready = True\n")
	waitFor(t, "the job runs", events("001 ("))
	set("Ready = True\nBusy = True\n")
	waitFor(t, "the job is suspended", events("010 ("))
	set("Ready = True\n")
	waitFor(t, "the job goes on", events("011 ("))
	p.write(t, "finish", "")
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	p.nothingLeft(t)
}

// TestReloadOfARun changes the configuration of a run: a bad one is refused, a
// good one makes the log say more and starts the job that waits.
//
// row: S4-042
func TestReloadOfARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSTART = KeyboardIdle > 100000000000\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	c, out, errOut := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	hangup := func() {
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the run has begun", func() bool { return strings.Contains(p.log(), "slot1: ") })
	p.write(t, "ep.conf", "NUM_CPUS = many\nSTART = True\n")
	hangup()
	waitFor(t, "a bad configuration is refused", func() bool { return strings.Contains(p.log(), "the old one stays") })
	if strings.Contains(p.log(), "(D_FULLDEBUG)") {
		t.Error("the log has details that nobody asked for")
	}
	p.write(t, "ep.conf", "NUM_CPUS = 2\nSTARTD_DEBUG = D_FULLDEBUG\nPOLLING_INTERVAL = 1\nSTART = KeyboardIdle > 100000000000\n")
	hangup()
	waitFor(t, "the log has details", func() bool {
		return strings.Contains(p.log(), "(D_FULLDEBUG) slot1: state State=Unclaimed Activity=Idle")
	})
	p.write(t, "ep.conf", "NUM_CPUS = 2\nSTART = True\n")
	hangup()
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	for _, want := range []string{"ep.conf:1", "NUM_CPUS", "only when the Execution Point is started again: NUM_CPUS"} {
		if !strings.Contains(out.String()+errOut.String(), want) {
			t.Errorf("no %q in\n%s%s", want, out, errOut)
		}
	}
	p.nothingLeft(t)
}

// gpus is the discovery program of a machine with two GPUs: it prints nested
// properties unless it is told not to, and says with what it was called.
const gpus = `#!/bin/sh
echo "DetectedGPUs=\"GPU-6a96bd13-77c5, GPU-1b\""
echo "CalledWith=\"$*\""
case "$*" in
*-not-nested*)
	echo 'CUDACapability=8.0' ;;
*)
	echo 'GPU_6a96bd13_77c5=[ id="GPU-6a96bd13-77c5"; Capability=7.5; ]'
	echo 'GPU_1b=[ id="GPU-1b"; Capability=8.0; ]' ;;
esac
`

// TestSlotsInventories runs real inventory scripts, good ones and bad ones.
//
// row: S0-285, S0-286, S0-287, S0-288, S0-289, S2-037, S4-100, S4-101, S4-102, S4-103
func TestSlotsInventories(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "condor_gpu_discovery", gpus)
	for name, text := range map[string]string{
		"cogs": "#!/bin/sh\necho 'DetectedCogs=\"c1, c2, c3\"'\nexit 3\n", "empty": "#!/bin/sh\n",
		"twice": "#!/bin/sh\necho 'DetectedCogs=\"c1 c2 c1\"'\n", "offline": "#!/bin/sh\necho 'DetectedCogs=\"c1 c2\"'\necho 'OfflineCogs=\"c2 c9\"'\n",
		"garbage": "#!/bin/sh\necho 'DetectedCogs=4'\necho 'this is no ad'\n", "binary": "#!/bin/sh\nhead -c 4000 /dev/zero\n",
		"huge":  "#!/bin/sh\nwhile :; do echo 'Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 12345678901234567890'; done\n",
		"forks": "#!/bin/sh\nsetsid sh -c 'while :; do sleep 1; done' &\necho DetectedCogs=2\n",
	} {
		p.write(t, name, text)
	}
	inventory := func(name string) string {
		return "MACHINE_RESOURCE_INVENTORY_Cogs = " + filepath.Join(p.dir, name) + "\n"
	}
	for _, tt := range []struct {
		config string
		status int
		out    []string // in the ads
		err    []string // said of it
	}{
		{"", 0, []string{`CalledWith = "-properties -extra"`, "GPUs = 2", "TotalGPUs = 2", `DetectedGPUs = "GPU-6a96bd13-77c5, GPU-1b"`, `AssignedGPUs = "GPU-6a96bd13-77c5,GPU-1b"`, "GPUs_GPU_1b = [ Id = "}, nil},
		{"STARTD_DETECT_GPUS = false\nuse FEATURE : GPUs\nGPU_DISCOVERY_EXTRA = -extra -not-nested\n", 0, []string{`CalledWith = " -properties -extra -not-nested"|CalledWith = "-properties -extra -not-nested"`, "CUDACapability = 8.0", "!GPUs_GPU_1b"}, nil},
		{"STARTD_DETECT_GPUS = 0\n", 0, []string{"!GPUs"}, nil},
		{"SLOT_TYPE_1 @=s\n  GPUs = 1 : Capability >= 8.0\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{`AssignedGPUs = "GPU-1b"`}, nil},
		// The discovery's name of a device is longer than what the documents
		// write; a whole name counts before those that begin so.
		{"SLOT_TYPE_1 @=s\n  GPUs = 1 : \"GPU-6a96bd13\"\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{`AssignedGPUs = "GPU-6a96bd13-77c5"`}, nil},
		{"SLOT_TYPE_1 @=s\n  GPUs = 1 : \"gpu-1B\"\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{`AssignedGPUs = "GPU-1b"`}, nil},
		{"MACHINE_RESOURCE_Cogs = c10 c1 C1x\nSLOT_TYPE_1 @=s\n  Cogs = 1 : \"c1\"\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{`AssignedCogs = "c1"`, "Cogs = 1"}, nil},
		{"MACHINE_RESOURCE_Cogs = c10 c11 C1x\nSLOT_TYPE_1 @=s\n  Cogs = 2 : \"c1\"\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{`AssignedCogs = "c10,c11"`}, nil},
		{"MACHINE_RESOURCE_Cogs = c10 c1\nSLOT_TYPE_1 @=s\n  Cogs = 2 : \"c1\"\n  auto\n@s\nNUM_SLOTS_TYPE_1 = 1\n", 1, []string{`SlotBrokenReason = `}, []string{"only 1 left"}},
		// As HTCondor shows them: lists, ads of what differs, and one alone.
		{"USE_NESTED_CUSTOM_RESOURCE_PROPS = False\n", 0, []string{"GPUs_CapabilityList = { 7.5,8.0 }", "!GPUs_GPU_1b", "!GPUs_Capability"}, nil},
		{"VERBOSE_NESTED_CUSTOM_RESOURCE_PROPS = False\n", 0, []string{"GPUs_GPU_1b = [ Capability = 8.0 ]", "!GPUs_CapabilityList"}, nil},
		{"USE_NESTED_CUSTOM_RESOURCE_PROPS = False\nVERBOSE_NESTED_CUSTOM_RESOURCE_PROPS = True\n", 0, []string{"GPUs_GPU_1b = [ Id = ", "!GPUs_CapabilityList"}, nil},
		{"USE_NESTED_CUSTOM_RESOURCE_PROPS = False\nSLOT_TYPE_1 = GPUs=1,auto\nNUM_SLOTS_TYPE_1 = 1\n", 0, []string{"GPUs_Capability = 7.5", "!GPUs_CapabilityList", "!GPUs_GPU_6a96bd13_77c5"}, nil},
		// Left out, an inventory gives nothing, but what it said is still told.
		{"MACHINE_RESOURCE_NAMES = Cogs\nMACHINE_RESOURCE_Cogs = 3\n", 0, []string{"Cogs = 3", `DetectedGPUs = "GPU-6a96bd13-77c5, GPU-1b"`, "!GPUs", "!TotalGPUs", "!AssignedGPUs", "!GPUs_GPU_1b"}, nil},
		{"MACHINE_RESOURCE_GPUs = 16\n", 0, []string{"GPUs = 16", "!AssignedGPUs", "!CalledWith"}, nil},
		{"MACHINE_RESOURCE_GPUs = a, b\n", 0, []string{"GPUs = 2", `AssignedGPUs = "a,b"`}, nil},
		{inventory("cogs"), 0, []string{"Cogs = 3", `AssignedCogs = "c1,c2,c3"`}, nil},
		{inventory("empty"), 0, []string{"Cogs = 0"}, []string{"DetectedCogs is neither a number nor a list of names"}},
		{inventory("twice"), 0, []string{"Cogs = 3", `AssignedCogs = "c1,c2,c1"`}, nil},
		{inventory("offline"), 0, []string{"Cogs = 1", `OfflineCogs = "c2"`}, []string{`the offline instance "c9" does not exist`}},
		{inventory("garbage"), 0, []string{"Cogs = 0"}, []string{"ep.conf:4:", "line 2", "this is no ad"}},
		{inventory("garbage") + "SLOT_CONFIG_FAILURE_MODE = ABORT\n", 2, nil, []string{"the machine's inventory is not known", "line 2"}},
		{inventory("garbage") + "SLOT_CONFIG_FAILURE_MODE = CLEAR\n", 0, []string{"Cogs = 0"}, []string{"line 2"}},
		{inventory("binary"), 0, []string{"Cogs = 0"}, []string{"not text"}},
		{inventory("huge"), 0, []string{"Cogs = 0"}, []string{"more than"}},
		{inventory("forks"), 0, []string{"Cogs = 2"}, nil},
		{inventory("nowhere"), 2, nil, []string{"ep.conf:4:", "nowhere cannot be started"}},
	} {
		conf := p.write(t, "ep.conf", "NUM_CPUS = 4\nMEMORY = 4000\nLIBEXEC = "+p.dir+"\n"+tt.config)
		var stdout, stderr bytes.Buffer
		if got := tool([]string{"slots", "-config", conf, "-long"}, &stdout, &stderr); got != tt.status {
			t.Errorf("%s: exit status %d, want %d\n%s", tt.config, got, tt.status, &stderr)
		}
		for _, want := range tt.out {
			name, absent := strings.CutPrefix(want, "!")
			found := false
			for w := range strings.SplitSeq(name, "|") {
				if absent {
					w += " = "
				}
				found = found || strings.Contains("\n"+stdout.String(), "\n"+w)
			}
			if found == absent {
				t.Errorf("%s: %q in\n%s", tt.config, want, &stdout)
			}
		}
		for _, want := range tt.err {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: no %q in %s", tt.config, want, &stderr)
			}
		}
		if tt.err == nil && stderr.Len() > 0 {
			t.Errorf("%s: said %s", tt.config, &stderr)
		}
	}
	if left := p.processes(t); len(left) > 0 {
		t.Errorf("processes left behind: %v", left)
	}
}

// TestSlotsBadPrograms lets periodic programs do what they should not; each is
// bounded, told, and gone afterwards.
func TestSlotsBadPrograms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script  string
		warning string
		value   string // of the attribute Value
	}{
		"good":    {"echo Value = 1", "", "1"},
		"hangs":   {"echo Value = 1; trap '' TERM; while :; do sleep 1; done", "", ""},
		"goes on": {"echo Value = 1; echo -; trap '' TERM; while :; do sleep 1; done", "", "1"},
		"garbage": {"echo Value = 1; echo this is no attribute; echo 'Value = ('", "line 2: not of the form Name = expression", "1"},
		"binary":  {"echo Value = 1; echo -; head -c 100000 /dev/zero", "not text", "1"},
		"huge":    {"echo Value = 1; echo -; yes 'Name = \"0123456789\"' | head -n 40000", "larger than", "1"},
		"a line":  {"head -c 1000000 /dev/zero | tr '\\0' a; echo; echo Value = 1", "longer than", "1"},
		"flood":   {"while :; do echo Value = 1; echo -; done", "", "1"},
		"forks":   {"setsid sh -c 'while :; do sleep 1; done' & echo Value = 1", "", "1"},
		"tags":    {"i=0; while [ $i -lt 300 ]; do echo Value = 1; echo - t$i; i=$((i+1)); done", "more than 250 different tags", "1"},
		"nowhere": {"", "cannot be started", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record.Question{ID: name, Delay: 0.5, Scripts: map[string]string{"other.sh": "#!/bin/sh\n"}}
			if tt.script != "" {
				r.Scripts["c.sh"] = "#!/bin/sh\n" + tt.script + "\n"
			}
			r.Config = "NUM_CPUS = 2\nSTARTD_CRON_JOBLIST = c\nSTARTD_CRON_c_EXECUTABLE = ${DIR}/scripts/c.sh\nSTARTD_CRON_c_PERIOD = 60s\n"
			r.Detected.Cpus, r.Detected.MemoryMiB = 2, 2000
			got := answersTo(t, r)[0]
			// Where others keep the machine busy a program may need more time.
			for _, r.Delay = range []float64{5, 20} {
				if len(got.Slots) == 1 && got.Slots[0]["Value"] == "" && tt.value != "" {
					got = answersTo(t, r)[0]
				}
			}
			if got.Error != "" || len(got.Slots) != 1 || got.Slots[0]["Value"] != tt.value {
				t.Fatalf("%d slots, Value %s, %s %q", len(got.Slots), got.Slots[0]["Value"], got.Error, got.Warnings)
			}
			if said := strings.Join(got.Warnings, "\n"); !strings.Contains(said, tt.warning) || tt.warning == "" && said != "" {
				t.Errorf("warnings %q, want %q", said, tt.warning)
			}
		})
	}
}

// TestInventoryOfARun gives jobs what an inventory script found; a run without
// its script does not begin.
//
// row: S4-106
func TestInventoryOfARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	script := p.write(t, "cogs", "#!/bin/sh\necho 'DetectedCogs=\"c1, c2\"'\necho 'OfflineCogs=\"c1\"'\n")
	p.write(t, "job.sh", "#!/bin/sh\necho \"$_CONDOR_AssignedCogs\"\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out\nrequest_cogs = 1\nqueue\n")
	for _, tt := range []struct {
		config string
		status int
		said   string
	}{
		{"MACHINE_RESOURCE_INVENTORY_Cogs = " + script + "\nOFFLINE_MACHINE_RESOURCE_Cogs = c2\n", exitOK, ""}, // the script knows better
		{"MACHINE_RESOURCE_INVENTORY_Cogs = " + script + ".not\n", exitUsage, "cogs.not cannot be started"},
		{"MACHINE_RESOURCE_INVENTORY_Cogs = /bin/echo rubbish\n", exitNever, "nothing of the output counts"},
		{"MACHINE_RESOURCE_INVENTORY_Cogs = /bin/echo rubbish\nSLOT_CONFIG_FAILURE_MODE = ABORT\n", exitUsage, "the machine's inventory is not known"},
	} {
		p.write(t, "ep.conf", "NUM_CPUS = 1\n"+tt.config)
		status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
		if status != tt.status || !strings.Contains(stdout+stderr, tt.said) {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", tt.config, status, tt.status, tt.said, stdout, stderr)
		}
		if status == exitOK && p.read(t, "out") != "c2\n" {
			t.Errorf("the job got %q", p.read(t, "out"))
		}
	}
	p.nothingLeft(t)
}

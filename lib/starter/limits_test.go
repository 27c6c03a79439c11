// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// limitedJob is an activation that has read its job, and its log.
func limitedJob(t *testing.T, config string, slot protocol.SlotLimits, machine, ad string) (*activation, *bytes.Buffer) {
	t.Helper()
	parsed, err := classad.ParseAd(ad, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	a := newActivation(Host{}, nil, func(protocol.Report) {})
	a.plan = &protocol.Plan{Settings: configured(t, config+"\n"), Limits: slot, Cpus: slot.Cpus, MachineAd: machine}
	a.job = &job.Job{Ad: parsed}
	a.log = slog.New(slog.NewTextHandler(&said, nil))
	return a, &said
}

// words are limits of memory in MiB, as people write them.
func words(m host.MemoryLimits) string {
	var all []string
	for _, f := range []struct {
		name  string
		value *int64
	}{{"hard", m.Hard}, {"soft", m.Soft}, {"first", m.First}, {"low", m.Low}, {"swap", m.Swap}} {
		if f.value != nil {
			all = append(all, fmt.Sprintf("%s %.6g", f.name, float64(*f.value)/mib))
		}
	}
	return strings.Join(all, ", ")
}

// The policies, as the documents have them.
//
// row: S0-074, S0-075, S0-076, S0-078, S0-079, S0-080, S0-081, S3-037
func TestMemoryPolicies(t *testing.T) {
	t.Parallel()
	slot := protocol.SlotLimits{Cpus: 2, MemoryMiB: 1000, SwapKiB: 1500 << 10, WholeMiB: 8000}
	for _, tt := range []struct{ config, want, says string }{
		{"", "hard 1000, first 900, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = hard\nDISABLE_SWAP_FOR_JOB = false", "hard 1000, first 900, swap 500", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = HARD", "hard 1000, first 900, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = hart", "hard 1000, first 900, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY =", "hard 1000, first 900, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = Soft", "hard 8000, soft 1000, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = soft\nDISABLE_SWAP_FOR_JOB = false", "hard 8000, soft 1000, swap 500", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = none", "", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = none\nCGROUP_LOW_MEMORY_LIMIT = 7", "low 7", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = custom", "", "CGROUP_HARD_MEMORY_LIMIT_EXPR did not evalute to numeric, ignoring"},
		{"CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = MY.Memory + TARGET.RequestMemory + 0.5", "hard 1100.5, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = 2 * RequestMemory", "hard 200, swap 0", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = 0", "", ""},
		{"CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = 1E300", fmt.Sprintf("hard %.6g, swap 0", float64(math.MaxInt64)/mib), ""},
		{"CGROUP_HARD_MEMORY_LIMIT_EXPR = 7", "hard 1000, first 900, swap 0", ""},
		{"CGROUP_LOW_MEMORY_LIMIT = Memory * 0.5", "hard 1000, first 900, low 500, swap 0", ""},
		{"CGROUP_LOW_MEMORY_LIMIT = NoSuch", "hard 1000, first 900, swap 0", "CGROUP_LOW_MEMORY_LIMIT did not evalute"},
	} {
		a, said := limitedJob(t, tt.config, slot, "Memory = 1000\n", "RequestMemory = 100\n")
		l, err := a.limits()
		if err != nil || words(l.Group.Memory) != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.config, words(l.Group.Memory), err, tt.want)
		}
		if l.Group.CPUWeight != 200 || len(l.Group.Closed)+len(l.Group.CPUs) > 0 || l.NoNewPrivileges {
			t.Errorf("%q: %+v", tt.config, l)
		}
		if (tt.says == "") != (said.Len() == 0) || !strings.Contains(said.String(), tt.says) {
			t.Errorf("%q: the log says %q", tt.config, said)
		}
	}
	// Of a slot that does not say what it has nothing is limited, and one without
	// VirtualMemory may have any swap.
	a, _ := limitedJob(t, "DISABLE_SWAP_FOR_JOB = false", protocol.SlotLimits{Cpus: 1}, "", "")
	if l, err := a.limits(); err != nil || words(l.Group.Memory) != "" {
		t.Errorf("%+v, %v", l, err)
	}
	a, _ = limitedJob(t, "DISABLE_SWAP_FOR_JOB = false", protocol.SlotLimits{Cpus: 1, MemoryMiB: 10}, "", "")
	if l, err := a.limits(); err != nil || words(l.Group.Memory) != "hard 10, first 9" {
		t.Errorf("%s, %v", words(l.Group.Memory), err)
	}
}

// A limit of the owner's that is none starts no job.
func TestMemoryExpressionThatIsNone(t *testing.T) {
	for _, text := range []string{"NoSuchAttr", `"much"`, "true", "-1", "1 +", "error", `real("NaN")`, "TARGET.Cmd"} {
		a, _ := limitedJob(t, "CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = "+text, protocol.SlotLimits{Cpus: 1, MemoryMiB: 10}, "", "Cmd = \"x\"\n")
		if l, err := a.limits(); !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
	}
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, sleeper(time.Minute, 0))
		k.plan(func(p *protocol.Plan) {
			p.Settings = configured(k, "CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = NoSuchAttr\n")
		})
		k.hears("sandbox", "transfer-in-start", "transfer-in-done")
		rec := k.end()
		if !rec.Evicted || rec.Held != nil || rec.Fault == nil || !rec.Fault.Doubtful || !strings.Contains(rec.Fault.Reason, "NoSuchAttr") || len(k.machine.Families()) != 0 {
			t.Errorf("%+v", rec)
		}
	})
}

// Notes 32 and 33 of the recorded starter: address spaces, core files and stacks.
func TestProcessLimits(t *testing.T) {
	t.Parallel()
	show := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, tt := range []struct{ config, job, want, says string }{
		{"", "", "0 -1 -", ""},
		{"", "CoreSize = 12345\nStackSize = 262144\n", "12345 262144 -", ""},
		{"", "CoreSize = -5\nStackSize = -7\n", "-1 -1 -", ""},
		{"STARTER_RLIMIT_AS = 200", "", "0 -1 209715200", "rlimit to 200 megabytes"},
		{"STARTER_RLIMIT_AS = TARGET.RequestMemory * 2 + MY.Memory", "RequestMemory = 3\n", "0 -1 7340032", "rlimit to 7 megabytes"},
		{"STARTER_RLIMIT_AS = -1", "", "0 -1 -", ""},
		{"STARTER_RLIMIT_AS = lots", "", "0 -1 -", "Can't evaluate STARTER_RLIMIT_AS expression lots"},
	} {
		a, said := limitedJob(t, tt.config, protocol.SlotLimits{Cpus: 1}, "Memory = 1\n", tt.job)
		l, err := a.limits()
		if got := show(l.Core) + " " + show(l.Stack) + " " + show(l.AddressSpace); err != nil || got != tt.want {
			t.Errorf("%q, %q: %s, %v; want %s", tt.config, tt.job, got, err, tt.want)
		}
		if (tt.says == "") != (said.Len() == 0) || !strings.Contains(said.String(), tt.says) {
			t.Errorf("%q: the log says %q", tt.config, said)
		}
	}
	a, _ := limitedJob(t, "DISABLE_SETUID = true", protocol.SlotLimits{}, "", "")
	if l, err := a.limits(); err != nil || !l.NoNewPrivileges {
		t.Errorf("%+v, %v", l, err)
	}
}

// recordedLimits is what a job of HTCondor 25.14 had.
type recordedLimits struct {
	ID, Config string
	Slot       struct {
		Cpus   int
		Memory int64
	}
	Job  map[string]int64
	Seen struct {
		Limit   *int64 `json:"memory.limit_in_bytes"`
		Memsw   *int64 `json:"memory.memsw.limit_in_bytes"`
		Soft    *int64 `json:"memory.soft_limit_in_bytes"`
		Shares  *int   `json:"cpu.shares"`
		Rlimits map[string][2]int64
		Nice    *int
	}
	Log []string
}

// The limits of the recorded jobs, but for what HTCondor does not keep.
func TestRecordedLimits(t *testing.T) {
	t.Parallel()
	broken := map[string]string{
		"cg-case":       "the word is taken in any case",
		"cg-custom-bad": "the job is not started, and not in an endless loop",
	}
	f, err := os.Open("testdata/limits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const unlimited = math.MaxInt64 / 4096 * 4096
	cases := 0
	for lines := bufio.NewScanner(f); lines.Scan(); cases++ {
		var r recordedLimits
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		var ad strings.Builder
		for name, n := range r.Job {
			fmt.Fprintf(&ad, "%s = %d\n", name, n)
		}
		slot := protocol.SlotLimits{Cpus: r.Slot.Cpus, MemoryMiB: r.Slot.Memory}
		a, said := limitedJob(t, r.Config, slot, fmt.Sprintf("Memory = %d\n", r.Slot.Memory), ad.String())
		l, err := a.limits()
		if (r.ID == "cg-custom-bad") != (err != nil) {
			t.Errorf("%s: %v", r.ID, err)
		}
		if err != nil {
			continue
		}
		m := l.Group.Memory
		limit, memsw := int64(unlimited), int64(unlimited)
		if m.Hard != nil {
			limit = *m.Hard
		}
		if m.Hard != nil && m.Swap != nil {
			memsw = *m.Hard + *m.Swap
		}
		if r.Seen.Limit != nil && (limit != *r.Seen.Limit || memsw != *r.Seen.Memsw) && broken[r.ID] == "" {
			t.Errorf("%s: memory %d, with swap %d; recorded %d and %d", r.ID, limit, memsw, *r.Seen.Limit, *r.Seen.Memsw)
		}
		// HTCondor breaks its documents here: the soft limit stays untouched.
		if r.Seen.Soft != nil && *r.Seen.Soft != unlimited {
			t.Errorf("%s: a soft limit was recorded", r.ID)
		}
		if r.Seen.Shares != nil && *r.Seen.Shares != l.Group.CPUWeight {
			t.Errorf("%s: %d shares, recorded %d", r.ID, l.Group.CPUWeight, *r.Seen.Shares)
		}
		if rl := r.Seen.Rlimits; rl != nil && (*l.Core != rl["RLIMIT_CORE"][0] || *l.Core != rl["RLIMIT_CORE"][1] || *l.Stack != rl["RLIMIT_STACK"][0] || l.AddressSpace != nil) {
			t.Errorf("%s: %+v, recorded %v", r.ID, l, rl)
		}
		if n := a.plan.Settings.Niceness(a.job.Ad, time.Time{}); r.Seen.Nice != nil && n != *r.Seen.Nice {
			t.Errorf("%s: niceness %d, recorded %d", r.ID, n, *r.Seen.Nice)
		}
		for _, line := range r.Log {
			line = strings.Replace(line, "209715200 megabytes", "200 megabytes", 1) // bytes, in fact
			if !strings.Contains(said.String(), line) {
				t.Errorf("%s: the log says %q, recorded %q", r.ID, said, line)
			}
		}
	}
	if cases < 15 {
		t.Errorf("%d cases", cases)
	}
}

// The devices of GPUs that are not the slot's are closed.
func TestClosedGPUs(t *testing.T) {
	t.Parallel()
	all := []host.GPU{{UUID: "GPU-aa-1", Device: host.Device{Major: 195, Minor: 0}}, {UUID: "GPU-bb-2", Device: host.Device{Major: 195, Minor: 1}}}
	const one = "AvailableGPUs = { GPUs_b }\nGPUs_b = [ Id = \"GPU-bb\"; DeviceUuid = \"bb-2\" ]\n"
	for _, tt := range []struct {
		name, config, machine string
		want                  []uint32
		says                  bool
	}{
		{"none of its own", "", "Cpus = 1\n", []uint32{0, 1}, false},
		{"one", "", one, []uint32{0}, false},
		{"not asked for", "STARTER_HIDE_GPU_DEVICES = false", one, nil, false},
		{"one that the machine does not name", "", strings.ReplaceAll(one, "bb-2", "cc-3"), nil, true},
		{"an instance", "", "AvailableGPUs = { GPUs_b }\nGPUs_b = [ Id = \"MIG-bb\"; DeviceUuid = \"MIG-bb-2\" ]\n", nil, true},
	} {
		a, said := limitedJob(t, tt.config, protocol.SlotLimits{Cpus: 1}, tt.machine, "")
		a.host.GPUs = func() []host.GPU { return all }
		l, err := a.limits()
		var got []uint32
		for _, d := range l.Group.Closed {
			got = append(got, d.Minor)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || tt.says != (said.Len() > 0) {
			t.Errorf("%s: %v, %v, the log says %q", tt.name, got, err, said)
		}
	}
}

// The limits of a job that runs follow its slot, and nothing else of the slot's ad.
//
// row: S0-078
func TestLimitsFollowTheSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, sleeper(time.Minute, 0), func(h *Host) { h.Groups = func(host.GroupPlace) error { return nil } })
		k.plan(func(p *protocol.Plan) {
			p.Settings = configured(k, "BASE_CGROUP = x\n")
			p.Limits = protocol.SlotLimits{Cpus: 1, MemoryMiB: 100, SwapKiB: 5}
		})
		k.running()
		family := k.machine.Families()[0]
		now := func() string {
			l := family.Limits()
			return fmt.Sprintf("%d: %s", l.CPUWeight, words(l.Memory))
		}
		tell := func(l *protocol.SlotLimits) string {
			k.send(protocol.SlotAd{Slot: "Memory = 7\n", Limits: l}, protocol.Suspend{}, protocol.Continue{})
			k.hears("suspended", "continued")
			return now()
		}
		for _, tt := range []struct {
			slot *protocol.SlotLimits
			want string
		}{
			{nil, "100: hard 100, first 90, swap 0"},
			{&protocol.SlotLimits{Cpus: 2, MemoryMiB: 200}, "200: hard 200, first 180, swap 0"},
			{&protocol.SlotLimits{Cpus: 1, MemoryMiB: 50, SwapKiB: 3}, "100: hard 50, first 45, swap 0"},
		} {
			if got := tell(tt.slot); got != tt.want {
				t.Errorf("%+v: %s, want %s", tt.slot, got, tt.want)
			}
		}
		k.send(protocol.HardKill{})
		k.last()
	})
}

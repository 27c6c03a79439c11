// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// bounds is the beginning of a job that prints its limits, with the files of
// whichever version of control groups the machine has.
const bounds = `#!/bin/sh
own() { sed -n "s/^[0-9]*:\([a-z_]*,\)*$1\(,[a-z_]*\)*://p" /proc/self/cgroup | head -1; }
dir() { for d in $1 cpu,cpuacct; do [ -d /sys/fs/cgroup/$d ] && echo /sys/fs/cgroup/$d$(own $1) && return; done; }
show() { for f in $2 $3; do [ -r "$f" ] && echo "$1 $(cat $f)" && return; done; echo "$1 -"; }
two=/sys/fs/cgroup$(dirname $(sed -n 's/^0:://p' /proc/self/cgroup))
[ -f /sys/fs/cgroup/cgroup.controllers ] || two=/nowhere
show memory "$(dir memory)/memory.limit_in_bytes" $two/memory.max
show first "$(dir memory)/memory.soft_limit_in_bytes" $two/memory.high
show swapped "$(dir memory)/memory.memsw.limit_in_bytes" $two/memory.swap.max
show weight "$(dir cpu)/cpu.shares" $two/cpu.weight
grep -e NoNewPrivs -e Cpus_allowed_list /proc/self/status
echo space $(ulimit -Sv) $(ulimit -Hv)
`

// inGroups is a place whose jobs have control groups; the version is that.
func inGroups(t *testing.T, base string) (place, int) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs a Linux procfs: %v", err)
	}
	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: base, Self: own})
	if err != nil {
		t.Skipf("needs control groups that can be written: %v", err)
	}
	t.Cleanup(tree.RemoveBase)
	return newPlace(t), tree.Version()
}

// What the configuration says of limits is what a job then has.
//
// row: S0-074, S0-075, S0-076, S0-078, S0-080, S0-081, S3-037
func TestLimitsOfAJob(t *testing.T) {
	t.Parallel()
	const base = "execpoint-test-bounds"
	p, version := inGroups(t, base)
	for _, tt := range []struct {
		name, config string
		want         []string // lines of the output on version 1
		v2           []string // instead, on version 2
	}{
		{"hard", "", []string{"memory 67108864", "first 60395520", "swapped 67108864", "weight 200", "NoNewPrivs:\t0", "space unlimited unlimited"},
			[]string{"memory 67108864", "first max", "swapped 0", "weight 200", "NoNewPrivs:\t0", "space unlimited unlimited"}},
		{"swap", "DISABLE_SWAP_FOR_JOB = False\nCGROUP_MEMORY_LIMIT_POLICY = Hard\n", []string{"memory 67108864"}, []string{"memory 67108864"}},
		{"soft", "CGROUP_MEMORY_LIMIT_POLICY = soft\nMEMORY = 1000\n", []string{"memory 1048576000", "first 67108864", "swapped 1048576000"},
			[]string{"memory 1048576000", "first 67108864", "swapped 0"}},
		{"none", "CGROUP_MEMORY_LIMIT_POLICY = none\n", []string{"memory 9223372036854771712", "first 9223372036854771712", "swapped 9223372036854771712", "weight 200"},
			[]string{"memory max", "first max", "swapped max", "weight 200"}},
		{"custom", "CGROUP_MEMORY_LIMIT_POLICY = custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = 2 * MY.Memory + TARGET.RequestCpus\n", []string{"memory 136314880", "swapped 136314880"},
			[]string{"memory 136314880", "swapped 0"}},
		{"process", "STARTER_RLIMIT_AS = 5 * MY.Memory\nDISABLE_SETUID = true\n", []string{"NoNewPrivs:\t1", "space 327680 327680"}, []string{"NoNewPrivs:\t1", "space 327680 327680"}},
	} {
		p.write(t, "ep.conf", "NUM_CPUS = 2\nSTARTD_NAME = one\nBASE_CGROUP = "+base+"\nMODIFY_REQUEST_EXPR_REQUESTMEMORY = RequestMemory\n"+tt.config)
		p.write(t, "job.sh", bounds)
		p.write(t, "job.sub", "executable = job.sh\noutput = out\nrequest_memory = 64\nrequest_cpus = 2\nrequest_disk = 10\nqueue\n")
		if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
			t.Fatalf("%s: status %d\n%s%s", tt.name, status, stdout, stderr)
		}
		want := tt.want
		if version == 2 {
			want = tt.v2
		}
		out := strings.Split(p.read(t, "out"), "\n")
		for _, line := range want {
			name, _, _ := strings.Cut(line, " ")
			if slices.Contains(out, name+" -") {
				continue // this machine has no such controller
			}
			if !slices.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", tt.name, line, strings.Join(out, "\n"))
			}
		}
	}
}

// The processes of a job are counted together: each of them is far below the memory
// of the slot.
//
// row: S0-077
func TestMemoryOfAllProcesses(t *testing.T) {
	t.Parallel()
	const base = "execpoint-test-sum"
	p, _ := inGroups(t, base)
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTD_NAME = one\nBASE_CGROUP = "+base+"\n")
	p.write(t, "job.sh", bounds+`pids=
for i in 1 2 3 4 5 6 7 8 9 10; do
	dd if=/dev/zero of=/dev/null bs=30M count=300 2>/dev/null & pids="$pids $!"
done
for p in $pids; do wait $p || exit 7; done
echo all of them lived
`)
	p.write(t, "job.sub", "executable = job.sh\noutput = out\nlog = job.log\nrequest_memory = 128\nrequest_cpus = 1\nrequest_disk = 10\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	out := p.read(t, "out")
	if strings.Contains(out, "memory -\n") {
		t.Skip("this machine has no memory controller")
	}
	if status == exitOK || strings.Contains(out, "all of them lived") {
		t.Errorf("status %d\n%s%s%s", status, stdout, stderr, out)
	}
}

// Jobs at the same time are on cores of their own, and where the owner names them on
// those.
func TestCoresOfJobs(t *testing.T) {
	t.Parallel()
	const base = "execpoint-test-cores"
	p, _ := inGroups(t, base)
	var cores []string
	for _, n := range linux.Cores() {
		cores = append(cores, strconv.Itoa(n))
	}
	if len(cores) < 2 {
		t.Skip("needs two processors")
	}
	run := func(config, submit string) []string {
		t.Helper()
		p.write(t, "ep.conf", "NUM_CPUS = 2\nSTARTD_NAME = one\nBASE_CGROUP = "+base+"\n"+config)
		// Each waits for the other.
		p.write(t, "job.sh", "#!/bin/sh\ntaskset -p ff $$ > /dev/null 2>&1\ngrep Cpus_allowed_list /proc/self/status\n: > $1/$2; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e $1/0 -a -e $1/1 ] && exit 0; sleep 1; done; exit 1\n")
		meet := openDir(t, "meet")
		if err := os.Chmod(meet, 0o777); err != nil {
			t.Fatal(err)
		}
		p.write(t, "job.sub", small+"executable = job.sh\narguments = "+meet+" $(Process)\noutput = out.$(Process)\n"+submit+"queue 2\n")
		if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
			t.Fatalf("status %d\n%s%s", status, stdout, stderr)
		}
		got := []string{strings.TrimSpace(p.read(t, "out.0")), strings.TrimSpace(p.read(t, "out.1"))}
		for i, line := range got {
			got[i] = line[strings.LastIndexAny(line, "\t")+1:]
		}
		slices.Sort(got)
		return got
	}
	if got := run("ASSIGN_CPU_AFFINITY = WantsCores\n", "+WantsCores = true\n"); !slices.Equal(got, []string{cores[0], cores[1]}) {
		t.Errorf("the jobs are on %q", got)
	}
	if got := run("ASSIGN_CPU_AFFINITY = WantsCores\n", "+WantsCores = false\n"); got[0] != got[1] || got[0] == cores[0] {
		t.Errorf("without a wish for it they are on %q", got)
	}
	if got := run("ENFORCE_CPU_AFFINITY = true\nSLOT1_CPU_AFFINITY = "+cores[1]+", 4000\n", ""); !slices.Equal(got, []string{cores[1], cores[1]}) {
		t.Errorf("with ENFORCE_CPU_AFFINITY they are on %q", got)
	}
}

// A policy that would limit nothing because of how it is written is not kept quiet.
func TestPolicyThatIsNone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\n")
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nBASE_CGROUP =\nCGROUP_MEMORY_LIMIT_POLICY = hart\n")
	const words = "CGROUP_MEMORY_LIMIT_POLICY: is none of the words that mean something (value \"hart\", want none, soft, hard, custom)"
	if status, _, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status == exitOK || !strings.Contains(stderr, words) {
		t.Errorf("status %d, %s", status, stderr)
	}
	p.write(t, "ep.conf", "NUM_CPUS = 1\nBASE_CGROUP =\nCGROUP_MEMORY_LIMIT_POLICY = custom\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK || !strings.Contains(stdout+stderr, "CGROUP_HARD_MEMORY_LIMIT_EXPR is not set: no job's memory is limited") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

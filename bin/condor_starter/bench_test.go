// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/role"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// built compiles the program that startds start as their starters, for the test
// binary is no fair stand-in.
func built(b *testing.B) string {
	b.Helper()
	exe := filepath.Join(b.TempDir(), "condor_startd")
	if out, err := exec.Command("go", "build", "-o", exe, "../condor_startd").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return exe
}

func benchLauncher(b *testing.B, exe string, standby int) *launch.Launcher {
	b.Helper()
	s, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		b.Fatal(err)
	}
	l := launch.NewLauncher(launch.Spec{Spawner: s, Census: s, Path: exe, Args: []string{"condor_starter", role.Command}, Env: os.Environ(), Stderr: os.Stderr, Standby: standby, Channel: channel})
	b.Cleanup(l.Close)
	return l
}

func benchPlan(b *testing.B, dir, cmd, args string, slot int, cgroup string) *protocol.Plan {
	user := jobUser(b)
	give(b, user, dir)
	machine, _ := os.ReadFile("testdata/machine.ad")
	job, _ := os.ReadFile("testdata/job.ad")
	ad := string(job) + fmt.Sprintf("Cmd = %q\nArguments = %q\nIwd = %q\nShouldTransferFiles = \"YES\"\nTransferExecutable = false\n", cmd, args, dir)
	return &protocol.Plan{
		Activation: "slot1_1#1", SlotName: fmt.Sprintf("slot1_%d", slot), SlotFullName: fmt.Sprintf("slot1_%d@bench", slot),
		Execute: dir, JobAd: ad, MachineAd: string(machine), Cpus: 1, Orphan: protocol.OrphanDie, RunAs: user,
		Settings: settingsOf(b, "BIN =\nBASE_CGROUP = "+cgroup+"\n"),
	}
}

// BenchmarkActivation takes the time from Launch to the job's first
// instruction, and from the job's last one to the "ended" report and to the
// starter being gone, when its slot is idle again. The job is a
// shell that prints the nanosecond clock.
func BenchmarkActivation(b *testing.B) {
	exe := built(b)
	for _, c := range []struct {
		name    string
		standby int
		cgroup  string
	}{{"cold", 0, ""}, {"cold,cgroup", 0, benchBase}, {"standby", 1, ""}, {"standby,cgroup", 1, benchBase}} {
		b.Run(c.name, func(b *testing.B) {
			groupsGoAfter(b)
			l := benchLauncher(b, exe, c.standby)
			dir := openDir(b)
			activations(b, l, benchPlan(b, dir, clockJob(b), "", 1, c.cgroup), dir)
		})
	}
}

// activations times one activation after the other of a job that writes a stamp into dir.
func activations(b *testing.B, l *launch.Launcher, plan *protocol.Plan, dir string) {
	var starts, ends, gone []time.Duration
	for b.Loop() {
		plan.JobAd += "\n"
		began := time.Now()
		h, err := l.Launch(context.Background(), plan, nil)
		if err != nil {
			b.Fatal(err)
		}
		var ended time.Time
		for r := range h.Reports() {
			if e, ok := r.What.(protocol.Ended); ok {
				ended = time.Now()
				if !e.Record.Status.Success() {
					b.Fatalf("%+v", e.Record)
				}
			}
		}
		<-h.Exited()
		idle := time.Now() // what the slot waits for
		first := stamp(b, filepath.Join(dir, "stamp"))
		starts = append(starts, first.Sub(began))
		ends = append(ends, ended.Sub(first))
		gone = append(gone, idle.Sub(first))
	}
	report(b, starts, "ms-to-first-instruction")
	report(b, ends, "ms-end-to-ended")
	report(b, gone, "ms-end-to-idle")
}

func report(b *testing.B, d []time.Duration, name string) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name)
	b.ReportMetric(float64(d[len(d)*9/10].Microseconds())/1000, name+"-p90")
}

// clockJob compiles a program whose whole life is to write the time.
func clockJob(b *testing.B) string {
	b.Helper()
	dir := openDir(b)
	src := filepath.Join(dir, "clock.go")
	text := "package main\nimport (\"os\";\"strconv\";\"time\")\nfunc main(){ t:=time.Now().UnixNano(); os.WriteFile(\"stamp\", []byte(strconv.FormatInt(t,10)), 0o644) }\n"
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	exe := filepath.Join(dir, "clock")
	if out, err := exec.Command("go", "build", "-o", exe, src).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return exe
}

func stamp(b *testing.B, path string) time.Time {
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, ns)
}

// BenchmarkJobs runs /bin/true on eight slots at once.
func BenchmarkJobs(b *testing.B) {
	exe := built(b)
	for _, c := range []struct {
		name    string
		standby int
		cgroup  string
	}{{"cold", 0, ""}, {"cold,cgroup", 0, benchBase}, {"standby", 4, ""}} {
		b.Run(c.name, func(b *testing.B) {
			groupsGoAfter(b)
			l := benchLauncher(b, exe, c.standby)
			dir := openDir(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			before := cpu(b)
			b.ResetTimer()
			var slots sync.WaitGroup
			for slot := range 8 {
				slots.Go(func() {
					plan := benchPlan(b, dir, "/bin/true", "", slot+1, c.cgroup)
					for left.Add(-1) >= 0 {
						h, err := l.Launch(context.Background(), plan, nil)
						if err != nil {
							b.Error(err)
							return
						}
						for r := range h.Reports() {
							if e, ok := r.What.(protocol.Ended); ok && !e.Record.Status.Success() {
								b.Errorf("%+v", e.Record)
							}
						}
						<-h.Exited()
					}
				})
			}
			slots.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric((cpu(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/job")
		})
	}
}

// benchBase is the base of the benchmarks' control groups.
const benchBase = "execpoint-bench"

func groupsGoAfter(b *testing.B) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	if tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: benchBase, Self: own}); err == nil {
		b.Cleanup(tree.RemoveBase)
	}
}

// cpu is what this process and its ended children have used.
func cpu(b *testing.B) time.Duration {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var ru syscall.Rusage
		if err := syscall.Getrusage(who, &ru); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	return sum
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/run"
)

// The figures of these benchmarks are those of docs/performance.md. They run
// the real program: build it first, as `go test` does not.
//
//	go test -run '^$' -bench . -benchtime 20x ./bin/condor_ep

// built is the path of a freshly built condor_ep, the program that users run.
func built(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "condor_ep")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as packages are built
	out, err := build.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

func (p place) real(b *testing.B, self string, args ...string) *exec.Cmd {
	c := exec.Command(self, args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), "TMPDIR="+p.tmp, run.BaseVariable+"="+filepath.Join(p.tmp, "runs"))
	return c
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkFirstJob measures from the start of condor_ep run to the first
// instruction of the first job's shell.
func BenchmarkFirstJob(b *testing.B) {
	self, p := built(b), newPlace(b)
	fifo := filepath.Join(p.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		b.Fatal(err)
	}
	p.write(b, "job.sub", small+"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'echo >"+fifo+"'\"\nqueue\n")
	var all []time.Duration
	for b.Loop() {
		c := p.real(b, self, "run", "job.sub")
		began := time.Now()
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		f, err := os.Open(fifo) // returns when the job opens the other end
		all = append(all, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			b.Fatal(err)
		}
		f.Close()
		if err := c.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(median(all).Microseconds())/1000, "ms-to-first-job")
}

// BenchmarkJobs runs 500 jobs of /bin/true on 8 slots and tells how many end
// in a second and what each costs in processor time, the job's own included.
func BenchmarkJobs(b *testing.B) {
	const jobs = 500
	self, p := built(b), newPlace(b)
	p.write(b, "job.sub", fmt.Sprintf("%sexecutable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue %d\n", small, jobs))
	p.write(b, "ep.conf", "NUM_CPUS = 8\n")
	var took, cpu time.Duration
	for b.Loop() {
		c := p.real(b, self, "run", "-config", "ep.conf", "job.sub")
		began := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		took += time.Since(began)
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	n := float64(jobs * b.N)
	b.ReportMetric(n/took.Seconds(), "jobs/s")
	b.ReportMetric(cpu.Seconds()*1000/n, "cpu-ms/job")
}

// BenchmarkIdle watches an EP: its memory, and what it costs in processor time
// a minute. At rest nothing is claimed and the policy is looked at every five
// minutes; with a job that sleeps it is looked at every five seconds.
func BenchmarkIdle(b *testing.B) {
	const job = small + "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\nqueue\n"
	for _, tt := range []struct{ name, conf string }{
		{"at-rest", "POLLING_INTERVAL = 300\nSTART = KeyboardIdle > 100000000\n"},
		{"one-sleeping-job", "START = True\n"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			self, p := built(b), newPlace(b)
			p.write(b, "job.sub", job)
			p.write(b, "ep.conf", tt.conf)
			watchIdle(b, p.real(b, self, "run", "-config", "ep.conf", "job.sub"))
		})
	}
}

func watchIdle(b *testing.B, c *exec.Cmd) {
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	}()
	sched := func() (ns int64) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.Process.Pid))
		for _, path := range tasks {
			var n int64
			text, _ := os.ReadFile(path)
			_, _ = fmt.Sscan(string(text), &n)
			ns += n
		}
		return ns
	}
	const settle, watch = 5 * time.Second, 30 * time.Second
	for b.Loop() {
		<-time.After(settle)
		before := sched()
		<-time.After(watch)
		b.ReportMetric(float64(sched()-before)/1e6*float64(time.Minute/watch), "cpu-ms/min")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			b.ReportMetric(kib/1024, "rss-MiB")
		}
	}
}

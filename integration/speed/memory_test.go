// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/transfer"
)

// settle is how long an Execution Point is left alone before its memory is read.
const settle = 15 * time.Second

// BenchmarkWaiting measures what an Execution Point costs that has nothing to do:
// the memory of an idle startd, the memory of a startd whose jobs all sleep, with
// all its starters, and what those starters do in that time. Memory is what the
// kernel counts as proportional (PSS): a page that n processes share counts as an
// n-th of a page for each. The jobs' own processes do not count, HTCondor's
// condor_procd does.
func BenchmarkWaiting(b *testing.B) {
	n, minutes := number(b, jobsKnob, defaultJobs), number(b, minutesKnob, 1)
	s := newSite(b, n)
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			var idle, busy, spent, woken []float64
			for b.Loop() {
				pass(b, settle)
				at, err := proportional(daemons(e))
				s.Must(err)
				idle = append(idle, mebibytes(at))
				end := s.asleep(b, e, n)
				pass(b, settle)
				at, err = proportional(daemons(e))
				s.Must(err)
				busy = append(busy, mebibytes(at))
				before, err := awake(e)
				s.Must(err)
				pass(b, time.Duration(minutes)*time.Minute)
				after, err := awake(e)
				s.Must(err)
				spent = append(spent, milliseconds(after.spent-before.spent)/float64(n*minutes))
				woken = append(woken, float64(after.woken-before.woken)/float64(n*minutes))
				end()
			}
			report(b, idle, "MiB-idle")
			report(b, busy, fmt.Sprintf("MiB-%d-jobs", n))
			report(b, spent, "starter-cpu-ms/min")
			report(b, woken, "starter-wakeups/min")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pass lets time pass in which nothing happens, which is what is measured.
func pass(b *testing.B, d time.Duration) {
	b.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
	}
}

// asleep has n jobs sleep on an Execution Point until end is called, which waits
// for their ends.
func (s *site) asleep(b *testing.B, e *realpool.EP, n int) (end func()) {
	b.Helper()
	d := s.drive(b, e, n)
	job := s.ad(b, "executable = /bin/sleep\narguments = 100000\nshould_transfer_files = NO\n")
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	var all sync.WaitGroup
	for i, id := range d.claims {
		all.Go(func() { _, _, _ = d.run(ctx, id, 1000+i, job, transfer.SendPlan{}) }) // it is ended from below
	}
	s.Eventually(fmt.Sprintf("%d jobs sleep on %s", n, e.Name), realpool.Patience+time.Duration(n)*time.Second, func(context.Context) error {
		asleep := 0
		for _, one := range realpool.Below(realpool.Everything(), e.PID()) {
			if one.Name == "sleep" {
				asleep++
			}
		}
		if asleep < n {
			return fmt.Errorf("%d sleep", asleep)
		}
		return nil
	})
	return func() {
		for _, id := range d.claims {
			if err := d.startd.Release(ctx, id); err != nil {
				b.Error(err)
			}
		}
		d.claims = nil
		s.Eventually("the jobs have ended", 5*realpool.Patience, func(ctx context.Context) error { return e.Idle(ctx) })
		cancel()
		all.Wait()
	}
}

// daemons are the processes of an Execution Point that are not jobs.
func daemons(e *realpool.EP) []int {
	all := []int{e.PID()}
	for _, one := range realpool.Below(realpool.Everything(), e.PID()) {
		if strings.HasPrefix(one.Name, "condor_") {
			all = append(all, one.PID)
		}
	}
	return all
}

// proportional adds up the proportional memory of processes, in bytes.
func proportional(pids []int) (total int64, err error) {
	for _, pid := range pids {
		text, rerr := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		found := false
		for line := range bytes.Lines(text) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				kib, perr := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(rest)), "kB")), 10, 64)
				err, found = errors.Join(err, perr), true
				total += kib << 10
			}
		}
		if !found {
			err = errors.Join(err, fmt.Errorf("/proc/%d/smaps_rollup: no line Pss", pid))
		}
	}
	return total, err
}

// work is what processes did so far.
type work struct {
	spent time.Duration // on a processor
	woken int64         // how often one was given a processor
}

// awake is what the starters of an Execution Point whose jobs run did so far.
func awake(e *realpool.EP) (total work, err error) {
	for _, one := range realpool.Below(realpool.Everything(), e.PID()) {
		if one.Name != "condor_starter" {
			continue
		}
		threads, gerr := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", one.PID))
		err = errors.Join(err, gerr)
		for _, path := range threads {
			text, rerr := os.ReadFile(path)
			if errors.Is(rerr, os.ErrNotExist) {
				continue
			}
			var spent, waited, woken int64
			_, serr := fmt.Sscan(string(text), &spent, &waited, &woken)
			err = errors.Join(err, rerr, serr)
			total.spent += time.Duration(spent)
			total.woken += woken
		}
	}
	return total, err
}

// mebibytes of a number of bytes, with their fraction.
func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// BenchmarkDisk is what startd and starter take on disk as packages have them:
// built without cgo and stripped. The libraries that HTCondor's are linked with do
// not count.
func BenchmarkDisk(b *testing.B) {
	in := realpool.Find(b)
	dir := b.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/",
		"github.com/execpoint/execpoint/bin/condor_startd", "github.com/execpoint/execpoint/bin/condor_starter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{realpool.Original, realpool.Ours} {
		b.Run(kind, func(b *testing.B) {
			total := int64(0)
			for b.Loop() {
				total = 0
				for _, name := range []string{"condor_startd", "condor_starter"} {
					path := in.Program(name)
					if kind == realpool.Ours {
						path = filepath.Join(dir, name)
					}
					info, err := os.Stat(path)
					if err != nil {
						b.Fatal(err)
					}
					total += info.Size()
				}
			}
			b.ReportMetric(float64(total)/1e6, "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// eachWay runs a benchmark without control groups, and with those that are here.
func eachWay(b *testing.B, run func(b *testing.B, groups string)) {
	for _, groups := range []string{"none", "1", "2"} {
		b.Run("groups="+groups, func(b *testing.B) {
			if groups != "none" {
				if _, err := testTree(map[string]int{"1": 1, "2": 2}[groups]); err != nil {
					b.Skipf("needs control groups that can be written: %v", err)
				}
			}
			run(b, groups)
		})
	}
}

// BenchmarkUsage is the processor time of 200 starters that each look once what a job of
// 5 processes uses, waking up included, and what that is of a core for jobs which work
// all the time: they are looked at every 5 s (CGROUP_POLLING_INTERVAL).
func BenchmarkUsage(b *testing.B) {
	const starters, every = 200, 5 * time.Second
	eachWay(b, func(b *testing.B, groups string) {
		var all []*looker
		for range starters {
			all = append(all, newLooker(b, groups))
		}
		round := func() (spent time.Duration) {
			for _, l := range all {
				spent += l.look(b)
			}
			return spent
		}
		was := round() // the first look takes what it needs later
		var is time.Duration
		for b.Loop() {
			is = round()
		}
		each := (is - was) / time.Duration(b.N)
		b.ReportMetric(float64(each.Microseconds())/1000, "cpu-ms/round")
		b.ReportMetric(100*each.Seconds()/every.Seconds(), "%-of-a-core")
	})
}

// looker is a starter with a job, that looks when it is asked to.
type looker struct {
	to   io.WriteCloser
	from *bufio.Reader
}

func newLooker(b *testing.B, groups string) *looker {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, groups)
	cmd.Env, cmd.Stderr = append(os.Environ(), scenarioEnv+"=looks"), os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		to.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return &looker{to: to, from: bufio.NewReader(from)}
}

// look has it look once, and returns the processor time that it has used in its life.
func (l *looker) look(b *testing.B) time.Duration {
	b.Helper()
	_, err := l.to.Write([]byte{'\n'})
	var line string
	if err == nil {
		line, err = l.from.ReadString('\n')
	}
	us, perr := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err := errors.Join(err, perr); err != nil {
		b.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}

// scenarioLooks is the other side of looker.
func scenarioLooks(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := shell("sleep 1000 & sleep 1000 & sleep 1000 & sleep 1000 & wait")
	if s.groups != nil {
		spec.Group = groupName()
	}
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	for n, until := 0, time.Now().Add(time.Minute); n < 5; {
		u, err := f.Usage()
		if n = u.Procs; err != nil || time.Now().After(until) {
			return outcome{}, fmt.Errorf("%d processes: %w", n, err)
		}
		pause()
	}
	for one := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(one); err != nil {
			_, err := f.Close()
			return outcome{}, err
		}
		if u, err := f.Usage(); err != nil || u.Procs != 5 {
			return outcome{}, fmt.Errorf("%+v, %w", u, err)
		}
		var ru unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
			return outcome{}, err
		}
		fmt.Println((ru.Utime.Nano() + ru.Stime.Nano()) / 1000)
	}
}

// BenchmarkAvalanche is the time that it takes to end a family of 2,000 processes which
// fork as fast as they can, until nothing is left of it.
func BenchmarkAvalanche(b *testing.B) {
	eachWay(b, func(b *testing.B, groups string) {
		for _, words := range []string{"", "pids"} {
			b.Run("with="+words, func(b *testing.B) {
				needsSpaces(b)
				var gone time.Duration
				killed := 0
				for b.Loop() {
					got := scenario[outcome](b, "avalanche", groups, spaceDir(b), words)
					gone += got.Gone
					killed += got.Killed
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(gone.Seconds()/float64(b.N), "s-to-gone")
				b.ReportMetric(float64(killed)/float64(b.N), "killed")
			})
		}
	})
}

// scenarioAvalanche ends such a family. 2,000 shells wait until all are there; then each
// has one child after the other, so that the machine bears it whatever becomes of this.
func scenarioAvalanche(args []string) (out outcome, err error) {
	const shells = 2000
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	gate := filepath.Join(args[1], "gate")
	if err := unix.Mkfifo(gate, 0o644); err != nil {
		return outcome{}, err
	}
	f, err := s.Spawn(spaceSpec(s, args[1], args[2], fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1))
(setsid sh -c 'read x < %s; while :; do (:); done' &)
done; sleep 1000`, shells, gate)))
	if err != nil {
		return outcome{}, err
	}
	defer func() { _, cerr := f.Close(); err = errors.Join(err, cerr) }()
	for n, until := 0, time.Now().Add(5*time.Minute); n < shells; {
		u, err := f.Usage()
		if n = u.Procs; err != nil || time.Now().After(until) {
			return outcome{}, fmt.Errorf("%d processes: %w", n, err)
		}
		pause()
	}
	open, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		return outcome{}, err
	}
	open.Close()
	<-time.After(2 * time.Second) // in which it is at its worst
	began := time.Now()
	if out.Killed, err = f.Kill(); err != nil {
		return out, err
	}
	<-f.Done()
	out.Leftovers, err = f.Close()
	out.Gone = time.Since(began)
	return out, err
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// scenarioBeside starts processes beside a family that has left a child behind,
// and tells what became of whom.
func scenarioBeside(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	file := args[1]
	job := shell("(setsid sleep 1000 & echo $! > " + file + ".new; mv " + file + ".new " + file + "); exec sleep 1000")
	job.Env, job.Marker = append(job.Env, "MARK=job"), "MARK=job"
	if s.groups != nil {
		job.Group = groupName()
	}
	f, err := s.Spawn(job)
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	orphan := 0
	if _, err := fmt.Sscan(read(file), &orphan); err != nil {
		return outcome{}, err
	}
	beside := func(script string) (host.Family, error) {
		spec := shell(script)
		spec.Beside, spec.Env, spec.Marker = f, append(spec.Env, "MARK=guest"), "MARK=guest"
		return s.Spawn(spec)
	}
	var text strings.Builder
	guest, err := beside("cat /proc/self/cgroup > " + file + ".group")
	if err != nil {
		return outcome{}, err
	}
	<-guest.Done()
	if _, err := guest.Close(); err != nil {
		return outcome{}, err
	}
	fmt.Fprintf(&text, "in group %v, ", strings.Contains(read(file+".group"), groupName()))
	fmt.Fprintf(&text, "job lives %v, its orphan %v, ", running(f.Main().PID), running(orphan))
	if _, err := f.Suspend(); err != nil {
		return outcome{}, err
	}
	if guest, err = beside("exit 0"); err == nil {
		guest.Close()
	}
	fmt.Fprintf(&text, "suspended %v, ", errs.Is(err, errs.Conflict))
	if err := f.Continue(); err != nil {
		return outcome{}, err
	}
	if guest, err = beside("exec sleep 1000"); err != nil {
		return outcome{}, err
	}
	if _, err := f.Close(); err != nil {
		return outcome{}, err
	}
	if s.groups != nil {
		<-guest.Done() // it went with the group
	}
	fmt.Fprintf(&text, "orphan lives %v, guest %v, ", running(orphan), running(guest.Main().PID))
	if _, err := guest.Close(); err != nil {
		return outcome{}, err
	}
	if guest, err = beside("exit 0"); err == nil {
		guest.Close()
	}
	fmt.Fprintf(&text, "closed %v", errs.Is(err, errs.Conflict))
	return outcome{Grouped: f.Grouped(), Text: text.String()}, nil
}

// read waits for a file.
func read(path string) string {
	for range 20000 {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return string(b)
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	return ""
}

// What is started beside a job has its limits and dies with it, and leaves it in
// peace when it ends itself.
func TestBeside(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "beside", groups, tempFile(t, "pid"))
		grouped := groups != "none"
		want := fmt.Sprintf("in group %v, job lives true, its orphan true, suspended %v, orphan lives false, guest %v, closed true", grouped, grouped, !grouped)
		if got.Text != want || got.Grouped != grouped {
			t.Errorf("%s, want %s", got.Text, want)
		}
	})
}

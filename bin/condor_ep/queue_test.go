// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// word names the events that say what becomes of a job in the queue.
func word(ev eventlog.Event) string {
	switch e := ev.(type) {
	case eventlog.Execute:
		return "starts"
	case eventlog.Evicted:
		return fmt.Sprintf("evicted(%d)", e.ReasonCode)
	case eventlog.Held:
		return fmt.Sprintf("held(%d.%d)", e.ReasonCode, e.ReasonSubcode)
	case eventlog.Released:
		return "released"
	case eventlog.Aborted:
		return "removed"
	case eventlog.Terminated:
		return "done"
	}
	return ""
}

// became tells from an event log what became of its jobs.
func (p place) became(t *testing.T, log string) string {
	t.Helper()
	var order []string
	for _, r := range p.events(t, log) {
		if w := word(r.Event); w != "" {
			order = append(order, w)
		}
	}
	return strings.Join(order, " ")
}

// TestJobPolicy has jobs whose submit file says when they leave the queue, are
// held and come back, as a schedd and its shadows do it.
func TestJobPolicy(t *testing.T) {
	t.Parallel()
	const sleep = "executable = /bin/sleep\ntransfer_executable = false\narguments = 60\n"
	const fails = "executable = /bin/false\ntransfer_executable = false\n"
	for _, tt := range []struct {
		name, job string
		status    int
		events    string
		says      string // in what is shown
	}{
		{"max_retries", fails + "max_retries = 2\n", exitSomeFailed, "starts evicted(0) starts evicted(0) starts done", "1 done, 1 with a status other than 0"},
		{"retry_until", fails + "max_retries = 5\nretry_until = NumJobStarts >= 2\n", exitSomeFailed, "starts evicted(0) starts done", ""},
		{"no retry after success", "executable = /bin/true\ntransfer_executable = false\nmax_retries = 2\n", exitOK, "starts done", ""},
		{"on_exit_hold", fails + "on_exit_hold = ExitCode == 1\non_exit_hold_reason = \"see me\"\non_exit_hold_subcode = 5\n", exitSomeFailed, "starts held(3.5)", "see me (code 3 subcode 5)"},
		{"periodic_remove", sleep + "periodic_remove = JobStatus == 2 && time() - EnteredCurrentStatus >= 1\n", exitSomeFailed, "starts removed",
			"removed: The job attribute PeriodicRemove expression 'JobStatus == 2 && time() - EnteredCurrentStatus >= 1' evaluated to TRUE"},
		{"periodic_hold", sleep + "periodic_hold = NumJobStarts > 0\nperiodic_hold_reason = \"enough\"\nperiodic_hold_subcode = 9\n", exitSomeFailed, "starts held(3.9)", "enough (code 3 subcode 9)"},
		{"periodic_vacate", sleep + "periodic_vacate = NumJobStarts == 1\nperiodic_remove = NumJobStarts == 2\n", exitSomeFailed, "starts evicted(1000) starts removed", ""},
		{"periodic_release", fails + "on_exit_hold = NumJobStarts < 2\nperiodic_release = NumJobStarts < 2\n", exitSomeFailed, "starts held(3.0) released starts done", ""},
		{"a release that does not come", fails + "on_exit_hold = true\nperiodic_release = NumJobStarts < 2\n", exitSomeFailed, "starts held(3.0) released starts held(3.0)", "1 held"},
		{"hold", "executable = /bin/true\ntransfer_executable = false\nhold = true\n", exitSomeFailed, "held(15.0)", "1 held"},
		{"hold and release", "executable = /bin/true\ntransfer_executable = false\nhold = true\nperiodic_release = true\n", exitOK, "held(15.0) released starts done", ""},
		{"idle too long", "executable = /bin/true\ntransfer_executable = false\nrequirements = KeyboardIdle < -5\nperiodic_remove = time() - QDate > 2\n", exitSomeFailed, "removed", "1 removed"},
		{"allowed_execute_duration", sleep + "allowed_execute_duration = 1\n", exitSomeFailed, "starts held(47.0)", "The job exceeded allowed execute duration of 00:01"},
		{"allowed_job_duration", sleep + "allowed_job_duration = 2\n", exitSomeFailed, "starts held(46.0)", "The job exceeded allowed job duration of 00:02"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "ep.conf", "POLLING_INTERVAL = 1\nPERIODIC_EXPR_INTERVAL = 1\n")
			p.write(t, "job.sub", small+tt.job+"log = job.log\nqueue\n")
			status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
			if got := p.became(t, "job.log"); status != tt.status || got != tt.events || !strings.Contains(stdout, tt.says) {
				t.Errorf("status %d, want %d; events %q, want %q; and %q in\n%s%s", status, tt.status, got, tt.events, tt.says, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}

// TestOwnersJobPolicy has the owner of the machine say of every job what the
// submit files do not, from the beginning or with a new configuration.
func TestOwnersJobPolicy(t *testing.T) {
	t.Parallel()
	const sleep = "executable = /bin/sleep\ntransfer_executable = false\narguments = 60\n"
	const fails = "executable = /bin/false\ntransfer_executable = false\n"
	for _, tt := range []struct {
		name, config, job string
		later             bool // the configuration comes while the job runs
		events            string
		says              string
	}{
		{"remove", "SYSTEM_PERIODIC_REMOVE = JobStatus == 2 && time() - EnteredCurrentStatus >= 1\n", sleep, false, "starts removed",
			"removed: The system macro SYSTEM_PERIODIC_REMOVE expression 'JobStatus == 2 && time() - EnteredCurrentStatus >= 1' evaluated to TRUE"},
		{"remove later", "SYSTEM_PERIODIC_REMOVE = true\n", sleep, true, "starts removed", "1 removed"},
		{"hold", "SYSTEM_PERIODIC_HOLD_NAMES = Long\nSYSTEM_PERIODIC_HOLD_Long = NumJobStarts > 0\nSYSTEM_PERIODIC_HOLD_Long_REASON = \"enough\"\nSYSTEM_PERIODIC_HOLD_Long_SUBCODE = 9\n", sleep, false,
			"starts held(26.9)", "enough (code 26 subcode 9)"},
		{"vacate", "SYSTEM_PERIODIC_VACATE = NumJobStarts == 1\nSYSTEM_PERIODIC_REMOVE = NumJobStarts == 2\n", sleep, false, "starts evicted(1001) starts removed", ""},
		{"release", "SYSTEM_PERIODIC_RELEASE = NumJobStarts < 2\n", fails + "on_exit_hold = true\n", false, "starts held(3.0) released starts held(3.0)", "1 held"},
		{"releases", "SYSTEM_MAX_RELEASES = 2\n", fails + "on_exit_hold = true\nperiodic_release = true\n", false, "starts held(3.0) released starts held(3.0)", "1 held"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			const before = "NUM_CPUS = 1\nPOLLING_INTERVAL = 1\nPERIODIC_EXPR_INTERVAL = 1\n"
			p.write(t, "ep.conf", before+tt.config)
			if tt.later {
				p.write(t, "ep.conf", before)
			}
			p.write(t, "job.sub", small+tt.job+"log = job.log\nqueue\n")
			pr, output := p.start(t, 0, "run", "-config", "ep.conf", "job.sub")
			if tt.later {
				waitFor(t, "the job runs", contains(filepath.Join(p.dir, "job.log"), "\n001 ("))
				p.write(t, "ep.conf", before+tt.config)
				pr.signal(t, syscall.SIGHUP)
			}
			select {
			case <-pr.ended:
			case <-time.After(30 * time.Second): // the job itself takes a minute
				t.Fatalf("no rule of the owner counts: after 30 s the job's events are %q, want %q", p.became(t, "job.log"), tt.events)
			}
			stdout, stderr := output()
			if got := p.became(t, "job.log"); pr.status != exitSomeFailed || got != tt.events || !strings.Contains(stdout, tt.says) {
				t.Errorf("status %d; events %q, want %q; and %q in\n%s%s", pr.status, got, tt.events, tt.says, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
	// A rule that is no expression is found before anything starts.
	p := newPlace(t)
	p.write(t, "ep.conf", "NUM_CPUS = 1\nSYSTEM_PERIODIC_REMOVE = (\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	p.refused(t, exitUsage, "ep.conf:2:1: knob SYSTEM_PERIODIC_REMOVE: is not an expression", "run", "-config", "ep.conf", "job.sub")
}

// TestJobThatGetsNoFurther has a job that is never done and ends at once: after
// ten starts within a minute the next ones wait, and the user is told.
func TestJobThatGetsNoFurther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "POLLING_INTERVAL = 1\nPERIODIC_EXPR_INTERVAL = 1\n")
	p.write(t, "job.sub", small+"executable = /bin/false\ntransfer_executable = false\non_exit_remove = false\n"+
		"periodic_remove = time() - QDate > 20\nlog = job.log\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	starts := 0
	for _, r := range p.events(t, "job.log") {
		if word(r.Event) == "starts" {
			starts++
		}
	}
	const says = "waits: it started 10 times within a minute and got no further; its next start waits 1s\n"
	if status != exitSomeFailed || starts < 11 || starts > 16 || !strings.Contains(stdout, says) {
		t.Errorf("status %d, %d starts, want 11 to 16 and %q\n%s%s", status, starts, says, stdout, stderr)
	}
	p.nothingLeft(t)
}

// TestSubmitSaysNo has submit files with what no run does or finds: they end with
// the place and before anything starts.
func TestSubmitSaysNo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct{ line, want string }{
		{"executable = gone.sh", "job.sub:5:14: executable: there is no such file"},
		{"executable = /bin/true\ntransfer_input_files = gone.dat", "job.sub:6:24: transfer_input_files: there is no such file or directory"},
		{"executable = /bin/true\noutput = gone/out", "job.sub:6:10: output: there is no such directory"},
		{"executable = /bin/true\ntransfer_input_files = https://example.org/x", "job.sub:6:24: transfer_input_files: transfer of URLs is not supported"},
		{"executable = /bin/true\nconcurrency_limits = db", "job.sub:6:22: concurrency_limits: this command is not supported without a pool"},
		{"executable = /bin/true\ncron_window = 5", "job.sub:6:15: cron_window: this command is not supported"},
		{"executable = /bin/true\nmax_idle = 5", "job.sub:6:12: max_idle: this command is not supported"},
	} {
		p.write(t, "job.sub", small+tt.line+"\nlog = job.log\nqueue\n")
		if status, stdout, stderr := p.ep(t, "run", "job.sub"); status != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, want %q\n%s%s", tt.line, status, tt.want, stdout, stderr)
		}
	}
	p.nothingLeft(t)
}

// TestGPUOfTheRightKind has a job that asks what its GPU must be like get that
// one of two, and one that asks for what no GPU is never run.
func TestGPUOfTheRightKind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const discovery = "#!/bin/sh\necho 'DetectedGPUs=\"GPU-a, GPU-b\"'\n" +
		"echo 'GPU_a=[ id=\"GPU-a\"; Capability=7.5; GlobalMemoryMb=8000; MaxSupportedVersion=11080; ]'\n" +
		"echo 'GPU_b=[ id=\"GPU-b\"; Capability=8.0; GlobalMemoryMb=16000; MaxSupportedVersion=12020; ]'\n"
	p.write(t, "ep.conf", "MACHINE_RESOURCE_INVENTORY_GPUs = "+p.write(t, "discovery", discovery)+"\n")
	p.write(t, "job.sh", "#!/bin/sh\necho $_CONDOR_AssignedGPUs\n")
	for _, tt := range []struct {
		limit, gpu string
		status     int
	}{
		{"gpus_minimum_memory = 10G", "GPU-b", exitOK},
		{"gpus_minimum_capability = 8", "GPU-b", exitOK},
		{"gpus_maximum_capability = 7.9", "GPU-a", exitOK},
		{"gpus_minimum_runtime = 12.1", "GPU-b", exitOK},
		{"gpus_minimum_memory = 20G", "", exitNever},
	} {
		p.write(t, "out", "")
		p.write(t, "job.sub", small+"executable = job.sh\nrequest_gpus = 1\n"+tt.limit+"\noutput = out\nqueue\n")
		status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
		if got := strings.TrimSpace(p.read(t, "out")); status != tt.status || got != tt.gpu {
			t.Errorf("%s: status %d, GPU %q, want %d and %q\n%s%s", tt.limit, status, got, tt.status, tt.gpu, stdout, stderr)
		}
	}
	p.nothingLeft(t)
}

// TestTwoRuns has a run told of the one that goes on beside it, and not of one
// that has ended.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	p.write(t, "long.sub", small+"executable = /bin/sleep\narguments = 60\ntransfer_executable = false\nlog = long.log\nqueue\n")
	first, _, _ := p.cmd(t, "run", "long.sub")
	first.Stdout = nil
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "started"); {
	}
	says := fmt.Sprintf("warning: run 1 (process %d) uses this machine, too", first.Process.Pid)
	if status, stdout, stderr := p.ep(t, "run", "job.sub"); status != exitOK || !strings.Contains(stdout, says) {
		t.Errorf("status %d, want %q in\n%s%s", status, says, stdout, stderr)
	}
	for range 2 {
		if err := first.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	_ = first.Wait() // its status says that a job is not done
	if status, stdout, stderr := p.ep(t, "run", "job.sub"); status != exitOK || strings.Contains(stdout, "too") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	p.nothingLeft(t)
}

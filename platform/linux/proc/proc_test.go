// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

func TestExit(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		for _, c := range []struct {
			script string
			want   host.ExitStatus
		}{
			{"exit 0", host.ExitStatus{Exited: true}},
			{"exit 3", host.ExitStatus{Exited: true, Code: 3}},
			{"kill -9 $$", host.ExitStatus{Signal: 9}},
			{"kill -15 $$", host.ExitStatus{Signal: 15}},
		} {
			got := scenario[outcome](t, "run", groups, "sh:"+c.script)
			if got.Status != c.want || got.Leftovers != 0 || got.Grouped != (groups != "none") {
				t.Errorf("%s: %+v, want status %v and nothing left", c.script, got, c.want)
			}
		}
	})
}

// A child that double-forks, leaves the session, clears its environment and
// ignores every signal it can is gone when the family is closed.
//
// row: S0-062, S0-070
func TestNothingOutlivesClose(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		file := tempFile(t, "pid")
		got := scenario[outcome](t, "run", groups, "daemon:"+file)
		pid := waitFor(file)
		if !got.Status.Success() || got.Leftovers != 1 {
			t.Errorf("%+v, want success and one left over", got)
		}
		if pid == 0 || running(pid) {
			t.Errorf("process %d is still there", pid)
		}
	})
}

// Chains of processes that each start the next one and go are caught too: no
// process of them is there long enough to be looked at twice.
//
// row: S0-070
func TestRespawningFamily(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		script := tempFile(t, "respawn")
		alive := script + ".alive"
		text := "#!/bin/sh\necho x >> " + alive + "\n\"$0\" &\nexit 0\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		// The chains have made some links each, however slow the machine is.
		got := scenario[outcome](t, "run", groups, "sh:"+script+" & "+script+" & until [ \"$(cat "+alive+" | wc -l)\" -ge 20 ]; do sleep 0.01; done; exit 4")
		if got.Status.Code != 4 || got.Leftovers < 1 {
			t.Errorf("%+v, want code 4 and something left over", got)
		}
		before, err := os.ReadFile(alive)
		if err != nil || len(before) < 20 {
			t.Fatalf("the chains never ran: %d, %v", len(before), err)
		}
		for range 20 {
			pause()
		}
		if after, _ := os.ReadFile(alive); len(after) != len(before) {
			t.Errorf("the chains go on: %d more", (len(after)-len(before))/2)
		}
	})
}

func TestKillWholeFamily(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		file := tempFile(t, "pid.stay")
		got := scenario[outcome](t, "kill", groups, "marked:"+file, file)
		if got.Killed < 2 || got.Leftovers != 0 || got.Status.Signal != 9 {
			t.Errorf("%+v, want at least two killed, the main one by signal 9", got)
		}
		if pid := waitFor(file); running(pid) {
			t.Errorf("process %d is still there", pid)
		}
	})
}

func TestSuspendAndContinue(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "suspend", groups, tempFile(t, "count"))
		if got.Suspended < 2 || got.Alive || got.Status.Signal != 9 {
			t.Errorf("%+v, want at least 2 suspended and all dead by signal 9 at the end", got)
		}
	})
}

func TestUsageOfTheTree(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "measure", groups, tempFile(t, "through"))
		total := func(u host.Usage) time.Duration { return u.UserCPU + u.SysCPU }
		if total(got.Mid) < 20*time.Millisecond || got.Mid.Procs != 1 || got.Mid.RSSKiB == 0 && groups != "1" {
			t.Errorf("while it runs: %+v, want the ended child's time, one process, its memory", got.Mid)
		}
		if total(got.Usage) < total(got.Mid) || got.Usage.Procs != 0 {
			t.Errorf("afterwards: %+v, want no less than %v and no process", got.Usage, total(got.Mid))
		}
	})
}

// The figures of a job that ends between two looks are not lost.
func TestPeakOfAShortJob(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "run", groups, "sh:exec dd if=/dev/zero of=/dev/null bs=96M count=1 2>/dev/null")
		if got.Usage.PeakRSSKiB < 96<<10 || got.Usage.PeakRSSKiB > 128<<10 {
			t.Errorf("peak %d KiB of a job that ate 96 MiB", got.Usage.PeakRSSKiB)
		}
	})
}

// A short job in several processes, each of which is small beside all of them:
// without a group only the largest is known, with one the sum of them.
func TestPeakOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		// Each fills its whole buffer, and keeps it until the others have theirs.
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		script := "cd " + dir + "; full() { [ -e 1 ] && [ -e 2 ] && [ -e 3 ] && [ -e 4 ]; }; "
		for i := range 4 {
			script += fmt.Sprintf("dd if=/dev/zero bs=32M count=1 iflag=fullblock 2>/dev/null |"+
				" (dd bs=1 count=1 of=/dev/null 2>/dev/null; : >%d; until full; do sleep 0.01; done; cat >/dev/null) & ", i+1)
		}
		got := scenario[outcome](t, "run", groups, "sh:"+script+"wait")
		least := int64(32 << 10)
		counted := map[string]string{"1": "/sys/fs/cgroup/memory/memory.usage_in_bytes", "2": "/sys/fs/cgroup/cgroup.controllers"}
		if _, err := os.Stat(counted[groups]); err == nil {
			least = 4 * 32 << 10
		}
		if got.Usage.PeakRSSKiB < least || got.Usage.PeakRSSKiB > 5*32<<10 {
			t.Errorf("peak %d KiB of a job of four times 32 MiB, want at least %d", got.Usage.PeakRSSKiB, least)
		}
		if got.Usage.ImageSizeKiB < got.Usage.PeakRSSKiB {
			t.Errorf("image of %d KiB, peak of %d", got.Usage.ImageSizeKiB, got.Usage.PeakRSSKiB)
		}
		if p := got.Usage.Pressure; (p != nil) != (groups == "2") {
			t.Errorf("pressure %+v", p)
		}
	})
}

func TestExecErrno(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		if err := os.WriteFile(dir+"/"+name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	cases := map[string]syscall.Errno{
		dir + "/nothing":                                 syscall.ENOENT,
		write("plain", "#!/bin/sh\n", 0o644):             syscall.EACCES,
		write("interp", "#!/no/such/interpreter", 0o755): syscall.ENOENT,
		write("format", "garbage", 0o755):                syscall.ENOEXEC,
		dir:                                              syscall.EACCES,
	}
	eachTracking(t, func(t *testing.T, groups string) {
		for path, want := range cases {
			if got := scenario[outcome](t, "errno", groups, path); got.Errno != int(want) {
				t.Errorf("%s: errno %d, want %d", path, got.Errno, want)
			}
		}
	})
}

// The job's surroundings: leader of a session of its own, umask 022, just the
// three descriptors, no core, stack as high as it goes.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "run", groups, "sh:umask; cut -d' ' -f6 /proc/$$/stat; echo $$; ls /proc/self/fd | tr '\n' ' '; cat /proc/$$/cgroup")
		lines := strings.SplitN(got.Text, "\n", 4)
		if len(lines) < 4 || lines[0] != "0022" || lines[1] != lines[2] {
			t.Fatalf("umask, session and pid are %q", lines)
		}
		// ls itself opens the directory as its next descriptor
		if !strings.HasPrefix(lines[3], "0 1 2 3 ") || strings.HasPrefix(lines[3], "0 1 2 3 4") {
			t.Errorf("descriptors %q, want 0 to 2 (and the one of ls)", lines[3])
		}
		if in := strings.Contains(lines[3], "/execpoint-test-proc/proc_test_"); in != (groups != "none") {
			t.Errorf("groups=%s but the job is in %s", groups, lines[3])
		}
	})
}

// What a job is born with is its own affair: limits, niceness, the kernel's
// preference for killing it; and no signal is ignored, though the starter's
// was.
func TestBirth(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "props", groups)
		ours, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // as the kernel returns it: 20 less the niceness
		if err != nil {
			t.Fatal(err)
		}
		niceness := min(7+20-ours, 19)
		want := fmt.Sprintf("800\n%d\n4096\n4096\n1024\nSigIgn:\t0000000000000000\n", niceness) // shells count 512 byte blocks and KiB
		if got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	})
}

// SIGKILL of the starter takes the job's main process along.
func TestBoundJobDiesWithItsStarter(t *testing.T) {
	t.Parallel()
	file := tempFile(t, "pid")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "none", file)
	cmd.Env = append(os.Environ(), scenarioEnv+"=bound")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := waitFor(file)
	if pid == 0 {
		t.Fatal("the job never announced itself")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !gone5s(pid) {
		t.Errorf("process %d outlived its starter", pid)
	}
}

// gone5s waits at most five seconds for a process to end.
func gone5s(pid int) bool {
	fd, err := pidfdOpen(pid)
	if err != nil {
		return true
	}
	return pidfdEnds(fd, 5*time.Second)
}

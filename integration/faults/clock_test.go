// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// in has the daemon live in a time namespace in which so many seconds have
// passed since boot, and so many on the clock that stands still in a sleep.
func (w *world) in(boot, monotonic int) {
	w.t.Helper()
	realpool.NeedRoot(w.t)
	if _, err := exec.LookPath("unshare"); err != nil {
		realpool.Missing(w.t, err.Error(), "install the package util-linux of Debian")
	}
	w.run = []string{"unshare", "--time", "--boottime=" + strconv.Itoa(boot), "--monotonic=" + strconv.Itoa(monotonic),
		"--setgid=" + strconv.Itoa(int(w.cred.Gid)), "--setuid=" + strconv.Itoa(int(w.cred.Uid)), "--"}
	if out, err := exec.Command(w.run[0], append(w.run[1:len(w.run):len(w.run)], "true")...).CombinedOutput(); err != nil {
		realpool.Missing(w.t, fmt.Sprintf("no time namespace can be made: %v: %s", err, out), "use a kernel since 5.6 with CONFIG_TIME_NS")
	}
}

// processesOf are those that have a word in their command line.
func processesOf(word string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if line, err := os.ReadFile(dir + "/cmdline"); err == nil && bytes.Contains(line, []byte(word)) {
			found = append(found, fmt.Sprintf("%s %q", dir, line))
		}
	}
	return found
}

// TestAnotherBootClock kills a daemon and starts it again where another time has
// passed since boot, much more or much less, as after a reboot or in a container
// that was moved: what the first life left is found and ended, and nothing that
// it wrote down is taken for a time of the second.
func TestAnotherBootClock(t *testing.T) {
	t.Parallel()
	realpool.NeedRoot(t)
	const years = 10_000 * 86_400
	for name, tt := range map[string][2][2]int{
		"less": {{years, 1000}, {7, years}},
		"more": {{7, years}, {years, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.in(tt[0][0], tt[0][1])
			id := w.begin()
			p := w.peer(nil, w.at, id)
			first, _ := p.request(id, w.job(1, "true", ""))
			w.done("a job of the first life", p.run(p.shadow(first, w.job(1, "true", ""), shadowtest.Files{})), 30*time.Second)
			word := fmt.Sprintf("98765.%d%d", os.Getpid()%10000, tt[0][0]%10)
			left := p.run(p.shadow(first, w.job(2, "(trap : TERM; sleep "+word+") & sleep "+word, ""), shadowtest.Files{}))
			w.eventually("the job runs", 20*time.Second, func() error {
				if n := len(processesOf("sleep\x00" + word)); n < 2 {
					return fmt.Errorf("%d processes", n)
				}
				return nil
			})
			for _, below := range w.below() { // all at once: no starter sees to its job
				if below.Name == "condor_starter" {
					w.must(syscall.Kill(below.PID, syscall.SIGKILL))
				}
			}
			w.must(w.cmd.Process.Signal(syscall.SIGKILL))
			<-w.gone

			w.in(tt[1][0], tt[1][1])
			second := w.begin()
			if second == id {
				t.Error("the second life has the claim id of the first")
			}
			w.eventually("nothing is left of the first life", 30*time.Second, func() error {
				dirs, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*"))
				if err == nil && len(dirs) > 0 {
					err = fmt.Errorf("%v are in EXECUTE", dirs)
				}
				if left := processesOf("sleep\x00" + word); err == nil && len(left) > 0 {
					err = fmt.Errorf("these run: %q", left)
				}
				return err
			})
			select {
			case <-left:
			case <-time.After(20 * time.Second):
				t.Error("the shadow of the first life was not told that its job is gone")
			}
			p = w.peer(nil, w.at, second)
			again, _ := p.request(second, w.job(3, "true", ""))
			w.done("a job of the second life", p.run(p.shadow(again, w.job(3, "true", ""), shadowtest.Files{})), 30*time.Second)
			if log := w.log(); strings.Contains(log, "ERROR") || strings.Contains(log, "panic") {
				t.Errorf("the log says\n%s", log)
			}
		})
	}
}

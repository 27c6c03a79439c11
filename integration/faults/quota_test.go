// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// onQuotas is a world of root's whose EXECUTE is on a file system that counts projects,
// on an empty disk of a virtual machine.
func onQuotas(t *testing.T, kind, lines string) *world {
	t.Helper()
	const disk = "/dev/vda"
	if _, err := os.Stat(disk); err != nil || os.Getenv("EXECPOINT_GUEST_INSIDE") == "" {
		t.Skip("needs an empty disk of a virtual machine; integration/guest has one")
	}
	make := map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-F", "-O", "quota,project", "-E", "quotatype=prjquota", disk},
		"xfs":  {"mkfs.xfs", "-q", "-f", disk},
	}[kind]
	if out, err := exec.Command(make[0], make[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", make, err, out)
	}
	w := newWorld(t, lines)
	w.cred = nil
	execute := filepath.Join(w.dir, "execute")
	w.must(syscall.Mount(disk, execute, kind, 0, "prjquota"))
	t.Cleanup(func() { w.must(syscall.Unmount(execute, 0)) })
	for _, dir := range []string{"", "execute", "log", "lock", "spool"} {
		w.must(errors.Join(os.Chown(filepath.Join(w.dir, dir), 0, 0), os.Chmod(filepath.Join(w.dir, dir), 0o755)))
	}
	return w
}

// report is what the file system has in its books: the projects that have files, but for
// the first, which is of all files that are in none.
func (w *world) projects() string {
	w.t.Helper()
	out, err := exec.Command("xfs_quota", "-x", "-f", "-c", "report -p -i -n -N -b", filepath.Join(w.dir, "execute")).CombinedOutput()
	if err != nil {
		w.t.Fatalf("xfs_quota: %v\n%s", err, out)
	}
	var used []string
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 6 && words[0] != "#0" && (words[1] != "0" || words[6] != "0") {
			used = append(used, words[0])
		}
	}
	return strings.Join(used, " ")
}

// TestQuotaOfAJob has jobs on file systems that count projects: what a walk through the
// directory does not reach counts, and so does what the job takes out of the count. No
// project is left by a job that ends, nor by one whose starter and startd are killed.
func TestQuotaOfAJob(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			w := onQuotas(t, kind, "")
			w.claimed = w.begin()
			p := w.peer(nil, w.at, w.claimed)
			begin := func(n int, script string) <-chan end {
				job := w.job(n, script, "")
				part, rest := p.request(w.claimed, job)
				w.claimed = rest
				return p.run(p.shadow(part, job, shadowtest.Files{}))
			}
			said := filepath.Join(w.dir, "submit")
			for n, script := range map[int]string{
				1: "d=$(printf %600s | tr [:space:] d | sed s,d,d/,g); mkdir -p $d && cd $d && dd if=/dev/zero of=deep bs=1M count=20",
				2: "mkdir sub && cd sub && dd if=/dev/zero of=hidden bs=1M count=20 && chattr -p 0 hidden && lsattr -p hidden > " + said + "/hidden",
			} {
				ended := begin(n, script)
				e := <-ended
				if e.Held != nil {
					t.Fatalf("job %d is held: %s", n, e.Held.Ad.Text(classad.Old))
				}
				if e.err != nil || e.Exit == nil {
					t.Fatalf("job %d: %+v, %v", n, e.End, e.err)
				}
				kib, _ := e.Exit.Ad.EvalInt("DiskUsage", nil)
				files, _ := e.Exit.Ad.EvalInt("ScratchDirFileCount", nil)
				if kib < 20<<10 || kib > 24<<10 || files < 1 {
					t.Errorf("job %d has used %d KiB in %d files", n, kib, files)
				}
			}
			if text, err := os.ReadFile(said + "/hidden"); err != nil || strings.Fields(string(text))[0] != "0" {
				t.Errorf("the job has not taken its file out of the project: %q, %v", text, err)
			}
			logs, err := filepath.Glob(filepath.Join(w.dir, "log", "StarterLog.slot1_*"))
			w.must(err)
			var all string
			for _, name := range logs {
				text, err := os.ReadFile(name)
				w.must(err)
				all += string(text)
			}
			if !strings.Contains(all, "What the job uses of the disk is counted by project 1701838848 of its file system") {
				t.Errorf("%v do not say who counts:\n%s", logs, realpool.Last(all, 40))
			}
			nothing := func() error {
				if left := w.projects(); left != "" {
					return fmt.Errorf("projects with files: %s", left)
				}
				return nil
			}
			w.eventually("the projects are empty", time.Minute, nothing)

			begin(3, "dd if=/dev/zero of=big bs=1M count=5; echo > "+said+"/began3; exec sleep 600")
			_, starter := w.scratch("began3")
			if got := w.projects(); got != "#1701838848" {
				t.Errorf("while a job runs the projects with files are %q", got)
			}
			w.must(w.cmd.Process.Kill())
			w.must(syscall.Kill(starter, syscall.SIGKILL))
			<-w.gone
			w.begin()
			w.eventually("the next start has emptied the project", time.Minute, nothing)
		})
	}
}

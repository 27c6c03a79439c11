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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// needDeviceMapper skips a test that makes logical volumes where the kernel has none:
// integration/guest runs it in a machine that does.
func needDeviceMapper(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		t.Skip("the kernel has no device-mapper; integration/guest runs this in a virtual machine")
	}
	control.Close()
}

// onVolumes is a world whose daemon is root's and gives jobs volumes of a file.
func onVolumes(t *testing.T, lines string) *world {
	t.Helper()
	needDeviceMapper(t)
	w := newWorld(t, "")
	w.cred = nil
	for _, dir := range []string{"", "execute", "log", "lock", "spool"} {
		w.must(errors.Join(os.Chown(filepath.Join(w.dir, dir), 0, 0), os.Chmod(filepath.Join(w.dir, dir), 0o755)))
	}
	w.configure("DISK =\nSTARTD_ENFORCE_DISK_LIMITS = True\nLVM_BACKING_FILE_SIZE_MB = 300\nVOLUME_MANAGER_TIMEOUT = 120\n" + lines)
	t.Cleanup(func() {
		_ = exec.Command("vgremove", "--yes", "--force", "condor_STARTD").Run()
		devices, err := exec.Command("losetup", "-n", "-O", "NAME", "-j", filepath.Join(w.dir, "spool", "startd_disk.img")).Output()
		if err != nil {
			t.Error(err)
		}
		for _, device := range strings.Fields(string(devices)) {
			if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
				t.Errorf("losetup -d %s: %v: %s", device, err, out)
			}
		}
	})
	return w
}

// volumes are the names of all volumes with HTCondor's mark.
func (w *world) volumes() []string {
	w.t.Helper()
	out, err := exec.Command("lvs", "--noheadings", "-o", "lv_name", "@htcondor_lv").Output()
	w.must(err)
	return strings.Fields(string(out))
}

// scratch waits for the only scratch directory in which a job has begun, and returns it
// and the pid of its starter. A job that hides its volume leaves its word outside.
func (w *world) scratch(word string) (dir string, starter int) {
	w.t.Helper()
	w.eventually("the job runs", 60*time.Second, func() error {
		if _, err := os.Stat(filepath.Join(w.dir, "submit", word)); err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*", "scratch"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%v, %v", found, err)
		}
		dir = found[0]
		starter, err = strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "dir_"))
		return err
	})
	return dir, starter
}

// clean waits until nothing of a job is left.
func (w *world) clean() time.Duration {
	w.t.Helper()
	began := time.Now()
	w.eventually("nothing is left", 60*time.Second, func() error {
		if left := w.volumes(); len(left) > 0 {
			return fmt.Errorf("volumes: %v", left)
		}
		left, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*"))
		if len(left) > 0 {
			return fmt.Errorf("directories: %v", left)
		}
		if mounts := mountinfo(w.t, "self"); strings.Contains(mounts, "htcondor") || strings.Contains(mounts, w.dir) {
			return errors.New(mounts)
		}
		return err
	})
	return time.Since(began)
}

func mountinfo(t *testing.T, process string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + process + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVolumeOfAJob follows jobs of a startd of root that have volumes: what they see,
// what others see, one that fills its volume, and one whose starter and startd are
// killed.
//
// row: S0-083, S0-084, S0-085, S0-086, S0-088, S0-092, S2-045, S2-046, S4-074, S4-078, S4-079, S4-081
func TestVolumeOfAJob(t *testing.T) {
	w := onVolumes(t, "")
	id := w.begin()
	p := w.peer(nil, w.at, id)
	w.claimed = id
	said := filepath.Join(w.dir, "submit")
	ask := func(n int, script, lines string) (*shadowtest.Shadow, <-chan end) {
		job := w.job(n, script, lines)
		job.SetInt("RequestDisk", 40000)
		part, rest := p.request(w.claimed, job)
		w.claimed = rest
		s := p.shadow(part, job, shadowtest.Files{})
		return s, p.run(s)
	}

	release := filepath.Join(said, "release")
	_, ended := ask(1, "grep scratch /proc/self/mountinfo > "+said+"/mounts; grep -i -e Lvm -e DiskQuantum -e IsEnforcing -e ^Disk .machine.ad > "+said+"/ad; "+
		"stat -f -c %b-%S . > "+said+"/size; echo inside > secret; echo > "+said+"/began1; until test -e "+release+"; do sleep 0.2; done; echo done > made", "")
	scratch, starter := w.scratch("began1")
	if got := w.volumes(); len(got) != 1 || !strings.HasPrefix(got[0], "slot1_1+") {
		t.Errorf("volumes: %v", got)
	}
	inside, err := os.ReadFile(said + "/mounts")
	w.must(err)
	for _, option := range []string{"noatime", "nosuid", "nodev", "nobarrier", "discard", "/dev/mapper/condor_STARTD-slot1_1+", " ext4 "} {
		if !strings.Contains(string(inside), option) {
			t.Errorf("the job does not see %q: %s", option, inside)
		}
	}
	if mounts := mountinfo(t, "self"); strings.Contains(mounts, "scratch") {
		t.Errorf("others see the mount: %s", mounts)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
		t.Errorf("others see %v, %v", left, err)
	}
	if out, err := exec.Command("nsenter", "-t", strconv.Itoa(starter), "-m", "cat", scratch+"/secret").CombinedOutput(); err != nil || string(out) != "inside\n" {
		t.Errorf("nsenter shows %q, %v", out, err)
	}
	ad, err := os.ReadFile(said + "/ad")
	w.must(err)
	for _, line := range []string{"IsEnforcingDiskUsage = true", `LvmBackingStore = "condor_STARTD"`, "LvmUsingLoopback = true", "DiskQuantum = 4096"} {
		if !strings.Contains(string(ad), line) {
			t.Errorf("the slot's ad lacks %s:\n%s", line, ad)
		}
	}
	size, err := os.ReadFile(said + "/size")
	w.must(err)
	blocks, unit, _ := strings.Cut(strings.TrimSpace(string(size)), "-")
	n, _ := strconv.Atoi(blocks)
	u, _ := strconv.Atoi(unit)
	if mib := n * u >> 20; mib < 32 || mib > 44 {
		t.Errorf("the file system has %d MiB for 40000 KiB:\n%s", mib, ad)
	}
	w.must(os.WriteFile(release, nil, 0o644))
	w.done("the job", ended, realpool.Patience)
	if _, err := os.Stat(filepath.Join(said, "made")); err != nil {
		t.Error(err)
	}
	t.Logf("removed within %v of its end", w.clean())

	for n, script := range map[int]string{2: "dd if=/dev/zero of=big bs=64k; echo > " + said + "/full; exec sleep 600", 3: "dd if=/dev/zero of=big bs=64k"} {
		_, ended = ask(n, script, "")
		select {
		case e := <-ended:
			if e.err != nil || e.Held == nil {
				t.Fatalf("job %d: %+v, %v", n, e.End, e.err)
			}
			why, _ := e.Held.Ad.EvalString("ErrorMsg", nil)
			code, _ := e.Held.Ad.EvalInt("HoldReasonCode", nil)
			subcode, _ := e.Held.Ad.EvalInt("HoldReasonSubCode", nil)
			if !strings.Contains(why, "Job has exceeded allocated disk (39.20 MB). Consider increasing the value of request_disk.") || code != 34 || subcode != 104 {
				t.Errorf("job %d is held as %d/%d %q:\n%s", n, code, subcode, why, e.Held.Ad.Text(classad.Old))
			}
		case <-time.After(90 * time.Second):
			t.Fatalf("job %d is not held", n)
		}
		w.clean()
	}

	ask(4, "echo > "+said+"/began4; exec sleep 600", "")
	_, starter = w.scratch("began4")
	w.must(w.cmd.Process.Kill())
	w.must(syscall.Kill(starter, syscall.SIGKILL))
	<-w.gone
	if got := w.volumes(); len(got) != 1 {
		t.Errorf("after a crash there are the volumes %v", got)
	}
	w.begin()
	w.says("logical volumes of an earlier life were removed: slot1_", time.Minute)
	w.clean()
}

// TestVolumeThatIsSeen has the mount seen by others, which a starter that is killed
// leaves: it is taken away. One whose volume somebody else uses breaks its slot, until
// it is used no more.
//
// row: S4-081, S4-082
func TestVolumeThatIsSeen(t *testing.T) {
	w := onVolumes(t, "LVM_HIDE_MOUNT = False\nLVM_USE_THIN_PROVISIONING = True\nLVM_THIN_LV_EXTRA_SIZE_MB = 20\n"+
		"STARTD_CLEANUP_REMINDER_TIMER_INTERVAL = 3\nAGGRESSIVE_CLEANUP_REMINDER = True\n")
	id := w.begin()
	p := w.peer(nil, w.at, id)
	said := filepath.Join(w.dir, "submit")
	begin := func(n int) (string, int, <-chan end) {
		job := w.job(n, fmt.Sprintf("echo > %s/began%d; until test -e %s/release%d; do sleep 0.2; done", said, n, said, n), "")
		job.SetInt("RequestDisk", 40000)
		part, rest := p.request(id, job)
		id = rest
		ended := p.run(p.shadow(part, job, shadowtest.Files{}))
		scratch, starter := w.scratch(fmt.Sprintf("began%d", n))
		return scratch, starter, ended
	}
	scratch, starter, _ := begin(1)
	if mounts := mountinfo(t, "self"); !strings.Contains(mounts, scratch) {
		t.Errorf("others do not see the mount: %s", mounts)
	}
	w.must(syscall.Kill(starter, syscall.SIGKILL))
	w.clean()

	scratch, _, ended := begin(2)
	held, err := os.Create(scratch + "/held")
	w.must(err)
	w.must(os.WriteFile(said+"/release2", nil, 0o644))
	w.done("the job", ended, realpool.Patience)
	w.says("Could not clean up Logical Volume", time.Minute)
	if got := w.volumes(); len(got) != 1 {
		t.Errorf("volumes: %v", got)
	}
	w.says("a job's volume can still not be removed", time.Minute)
	held.Close()
	w.says("the slot is whole again", time.Minute)
	if got := w.volumes(); len(got) != 0 {
		t.Errorf("volumes: %v", got)
	}
}

// TestFullDiskWithoutVolumes has a job see what the file system says.
//
// row: S2-045
func TestFullDiskWithoutVolumes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	w := newWorld(t, "")
	execute := filepath.Join(w.dir, "execute")
	w.must(syscall.Mount("tmpfs", execute, "tmpfs", 0, fmt.Sprintf("size=4m,mode=755,uid=%d,gid=%d", w.cred.Uid, w.cred.Gid)))
	t.Cleanup(func() { _ = syscall.Unmount(execute, syscall.MNT_DETACH) })
	w.claimed = w.begin()
	p := w.peer(nil, w.at, w.claimed)
	_, seen := w.brought(p, 1, "what=$(dd if=/dev/zero of=big bs=64k 2>&1); rm big; echo $what | grep -c No.space > seen", "")
	if seen != "1\n" {
		t.Errorf("the job has seen %q", seen)
	}
}

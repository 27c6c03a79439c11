// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

func TestHasUser(t *testing.T) {
	t.Parallel()
	const status = "Name:\tsleep\nUid:\t0\t1001\t77\t55\nGid:\t99\t99\t99\t99\n"
	for uid, want := range map[uint32]bool{0: true, 1001: true, 77: true, 55: false, 99: false, 7: false} {
		if got := hasUser([]byte(status), uid); got != want {
			t.Errorf("%d: %v", uid, got)
		}
	}
	if hasUser([]byte("Uid:\t5"), 5) || hasUser([]byte("Name:\tx\nUid:"), 0) {
		t.Error("a text without the line has users")
	}
}

// All processes of an account go, whoever started them; nobody else's do.
func TestKillUser(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Role: Guest})
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{0, uint32(os.Getuid())} {
		if _, err := s.KillUser(uid); !errs.Is(err, errs.Denied) {
			t.Errorf("%d: %v", uid, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root has processes of others
	}
	const uid, other = 61301, 61302
	start := func(uid uint32) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; while sleep 1000; do :; done & wait")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setsid: true}
		if err := bound.Start(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	one, two, bystander := start(uid), start(uid), start(other)
	ended := make(chan string, 2)
	for _, cmd := range []*exec.Cmd{one, two} {
		go func() { ended <- cmd.Wait().Error() }()
	}
	n, err := s.KillUser(uid)
	if err != nil || n < 2 {
		t.Errorf("%d killed, %v", n, err)
	}
	for range 2 {
		if why := <-ended; !strings.Contains(why, "killed") {
			t.Error(why)
		}
	}
	if !running(bystander.Process.Pid) {
		t.Error("a process of another user is gone")
	}
	if n, err := s.KillUser(other); err != nil || n < 1 {
		t.Errorf("%d killed, %v", n, err)
	}
	_ = bystander.Wait()
}

func TestStatusIDs(t *testing.T) {
	t.Parallel()
	const status = "Name:\tGroups: 9\nUid:\t5\t6\t7\t8\nGroups:\t4 24 54001 \nVmPeak:\t  77 kB\n"
	for field, want := range map[string][]uint32{"Groups": {4, 24, 54001}, "Uid": {5, 6, 7, 8}, "Nothing": nil} {
		if got := statusIDs([]byte(status), field); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", field, got, want)
		}
	}
	if got := statusIDs([]byte("Name:\tx\nGroups:\t\n"), "Groups"); got != nil {
		t.Errorf("no groups: %v", got)
	}
}

func FuzzStatusIDs(f *testing.F) {
	f.Add([]byte("Name:\tx\nUid:\t0\t1\t2\t3\nGroups:\t1 2\n"), "Groups")
	f.Add([]byte("\nUid:"), "Uid")
	f.Fuzz(func(t *testing.T, text []byte, field string) {
		for _, id := range statusIDs(text, field) {
			if !bytes.Contains(text, []byte(strconv.FormatUint(uint64(id), 10))) && !bytes.Contains(text, []byte("0")) {
				t.Errorf("%d is not in %q", id, text)
			}
		}
	})
}

// A group and an account that are for jobs alone prove whose a process is, whatever
// else it hides, unless it is older than the starter; root's account proves nothing.
func TestKillRemainsByGroupAndAccount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, who gives processes groups and other users")
	}
	s := guest(t)
	const gid, uid = 61311, 61312
	start := func(cred *syscall.Credential) host.ProcID {
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, "/", &syscall.SysProcAttr{Credential: cred, Setsid: true}
		if err := bound.Start(cmd); err != nil {
			t.Fatal(err)
		}
		st, err := newTable("/proc").stat(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return st.id()
	}
	tracked := start(&syscall.Credential{Uid: 61313, Gid: 61313, Groups: []uint32{7, gid}})
	owned := start(&syscall.Credential{Uid: uid, Gid: uid})
	other := start(&syscall.Credential{Uid: 61314, Gid: 61314, Groups: []uint32{gid + 1}})
	young := host.ProcID{PID: 1 << 22, Start: max(tracked.Start, owned.Start) + 1}
	parent := host.ProcID{PID: 1 << 22, Start: min(tracked.Start, owned.Start)}
	for _, c := range []struct {
		name string
		r    host.Remains
		n    int
	}{
		{"older than the starter", host.Remains{Parent: young, TrackGID: gid, Account: uid}, 0},
		{"root", host.Remains{Parent: parent}, 0},
		{"the group", host.Remains{Parent: parent, TrackGID: gid}, 1},
		{"the account", host.Remains{Parent: parent, Account: uid}, 1},
	} {
		c.r.Boot = s.Boot()
		if n, err := s.KillRemains(c.r); n != c.n || err != nil {
			t.Errorf("%s: killed %d, %v; want %d", c.name, n, err, c.n)
		}
	}
	if s.Alive(tracked) || s.Alive(owned) || !s.Alive(other) {
		t.Errorf("alive: by the group %v, by the account %v, another %v", s.Alive(tracked), s.Alive(owned), s.Alive(other))
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/platform/linux/account"
)

// TestAsAUser has an ordinary user run the tests of what a job sees, where root runs the
// others: their starters have a user namespace then.
//
// row: S4-083
func TestAsAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests themselves are an ordinary user's here")
	}
	name := os.Getenv("EXECPOINT_TEST_USER")
	if name == "" {
		name = "nobody"
	}
	who, err := account.Lookup(name)
	if err != nil {
		t.Skip(err)
	}
	home, err := os.MkdirTemp("/var", "execpoint-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := errors.Join(os.Chmod(home, 0o755), os.Chown(home, int(who.UID), int(who.GID))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), jobProgram(t), "-test.run=^TestSpace(s|sHeld|sLink|sScripts|sWithoutRoot|Rights)$", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "USER=" + name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- SKIP") || strings.Contains(line, "user namespace") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if runs := strings.Count(string(out), "--- PASS: TestSpace"); runs < 2 { // one needs no namespace
		t.Errorf("%d tests ran:\n%s", runs, out)
	}
}

// A job has no right of its starter's: none in the user namespace that the starter
// begins in, and none to look into the starter, though both are one user's. It is that
// user as without all this, may make namespaces itself, and its files are the user's.
func TestSpaceRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("it is about users without rights: TestAsAUser")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, pids := range []bool{false, true} {
		s := newSpaceStage(t, fmt.Sprintf("USE_PID_NAMESPACES = %v\n", pids))
		s.file("look.sh", `starter=$PPID
awk '/^Cap(Inh|Prm|Eff|Amb)/ {print $1 $2}' /proc/self/status
awk '/^Cap(Inh|Prm|Eff|Amb)/ {print $2}' /proc/1/status > first
for f in environ mem maps; do head -c1 /proc/$starter/$f >/dev/null 2>&1 && echo "BAD reads $f"; done
readlink /proc/$starter/fd/0 && echo "BAD sees its files"
mount -t tmpfs none /tmp 2>/dev/null && echo "BAD mounts"
id -u; id -g; : > made
unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /var && echo own'
exit 0
`, 0o755)
		s.set("TransferInput", `"look.sh"`).sh(". ./look.sh")
		s.run()
		const none = "0000000000000000\n"
		want := "CapInh:" + none + "CapPrm:" + none + "CapEff:" + none + "CapAmb:" + none + me.Uid + "\n" + me.Gid + "\nown\n"
		if out := s.read("out"); out != want {
			t.Errorf("PIDs %v: it says\n%swant\n%s%s", pids, out, want, s.read("err"))
		}
		if first := s.read("first"); pids && first != strings.Repeat(none, 4) {
			t.Errorf("the first process has rights:\n%s", first)
		}
		info, err := os.Stat(filepath.Join(s.submit, "made"))
		if err != nil || strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)) != me.Uid {
			t.Errorf("its file: %v, %v", info, err)
		}
	}
}

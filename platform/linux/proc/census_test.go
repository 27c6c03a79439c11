// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

func guest(t *testing.T) *Spawner {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCensus(t *testing.T) {
	t.Parallel()
	s := guest(t)
	self := s.Self()
	if self.PID != os.Getpid() || !s.Alive(self) || !s.Running(self.PID) || s.Boot() == "" {
		t.Errorf("self %v, boot %q", self, s.Boot())
	}
	if s.Alive(host.ProcID{PID: self.PID, Start: self.Start + 1}) {
		t.Error("another process of our pid is alive")
	}
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if s.Running(cmd.Process.Pid) {
		t.Error("an ended process is running")
	}
}

// stray starts a process of nobody's family: no child of a starter.
func stray(t *testing.T, env ...string) host.ProcID {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "600")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	st, err := newTable("/proc").stat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return st.id()
}

// Only what is proven is killed.
func TestKillRemains(t *testing.T) {
	t.Parallel()
	s := guest(t)
	self := s.Self()
	mark := "_CONDOR_ANCESTOR_1=" + filepath.Base(t.TempDir()) + self.String()
	marked, other, main := stray(t, mark), stray(t, mark+"x"), stray(t)
	parent := host.ProcID{PID: 1 << 22, Start: self.Start}
	for _, c := range []struct {
		name string
		r    host.Remains
		n    int
	}{
		{"another boot", host.Remains{Boot: "x", Parent: parent, Main: main, Marker: mark}, 0},
		{"nothing known", host.Remains{Boot: s.Boot(), Parent: parent}, 0},
		{"a main process whose pid is another's", host.Remains{Boot: s.Boot(), Parent: parent, Main: host.ProcID{PID: main.PID, Start: main.Start + 1}}, 0},
		{"a mark on processes older than the starter", host.Remains{Boot: s.Boot(), Parent: host.ProcID{PID: 1 << 22, Start: marked.Start + 1}, Marker: mark}, 0},
		{"main and marked", host.Remains{Boot: s.Boot(), Parent: parent, Main: main, Marker: mark}, 2},
	} {
		if n, err := s.KillRemains(c.r); n != c.n || err != nil {
			t.Errorf("%s: killed %d, %v; want %d", c.name, n, err, c.n)
		}
	}
	for name, p := range map[string]bool{"marked": s.Alive(marked), "main": s.Alive(main)} {
		if p {
			t.Errorf("the %s process is still there", name)
		}
	}
	if !s.Alive(other) {
		t.Error("a process with another mark was killed")
	}
}

// session starts a process that leads a session of its own, with another in it, and
// returns both.
func session(t *testing.T, dir string) (leader, member host.ProcID) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "sleep 600 & echo $!; exec sleep 600")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"PATH=/bin:/usr/bin"}, dir, &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	var ids [2]host.ProcID
	for i, pid := range []int{cmd.Process.Pid, pid} {
		st, err := newTable("/proc").stat(pid)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = st.id()
	}
	return ids[0], ids[1]
}

// A process without the mark is proven by having been seen, and so is whoever is in
// one session with it. A process that has the pid of one that was seen is not.
func TestKillStrays(t *testing.T) {
	t.Parallel()
	s := guest(t)
	self := s.Self()
	leader, member := session(t, "")
	parent := host.ProcID{PID: 1 << 22, Start: self.Start}
	r := host.Remains{Boot: s.Boot(), Parent: parent, Strays: []host.ProcID{{PID: leader.PID, Start: leader.Start + 1}}}
	if n, err := s.KillRemains(r); n != 0 || err != nil || !s.Alive(leader) {
		t.Errorf("killed %d, %v, of a process that has the pid of another", n, err)
	}
	r.Strays = []host.ProcID{leader}
	if n, err := s.KillRemains(r); n != 2 || err != nil || s.Alive(leader) || s.Alive(member) {
		t.Errorf("killed %d, %v; leader alive %v, member alive %v", n, err, s.Alive(leader), s.Alive(member))
	}
	other, mate := session(t, "")
	r.Strays = []host.ProcID{mate}
	if n, err := s.KillRemains(r); n != 2 || err != nil || s.Alive(other) || s.Alive(mate) {
		t.Errorf("killed %d, %v; leader alive %v, member alive %v", n, err, s.Alive(other), s.Alive(mate))
	}
}

// What may be of a family is named and left alone.
func TestSuspects(t *testing.T) {
	t.Parallel()
	s := guest(t)
	self := s.Self()
	dir := t.TempDir()
	below := filepath.Join(dir, "scratch")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	working, mate := session(t, below)
	elsewhere, _ := session(t, "")
	main, led := session(t, "")
	r := host.Remains{Boot: s.Boot(), Parent: host.ProcID{PID: 1 << 22, Start: self.Start}, Main: main}
	reused := r
	reused.Main.Start--
	if names, err := s.Suspects(reused, ""); len(names) != 0 || err != nil {
		t.Errorf("in the session of another process: %q, %v", names, err)
	}
	if err := unix.Kill(main.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for s.Alive(main) {
		pause()
	}
	if err := os.RemoveAll(below); err != nil { // which does not hide who works there
		t.Fatal(err)
	}
	names, err := s.Suspects(r, dir)
	all := strings.Join(names, "\n")
	if err != nil || len(names) != 3 || !strings.Contains(all, working.String()) || !strings.Contains(all, mate.String()) ||
		!strings.Contains(all, fmt.Sprintf("is in session %d", main.PID)) || !strings.Contains(all, led.String()) || strings.Contains(all, elsewhere.String()) {
		t.Errorf("%v\n%s", err, all)
	}
	r.Parent.Start = led.Start + 1000000
	if names, err := s.Suspects(r, dir); len(names) != 0 || err != nil {
		t.Errorf("older than the starter: %q, %v", names, err)
	}
	if !s.Alive(working) || !s.Alive(led) {
		t.Error("a process was killed for being named")
	}
}

func TestDescendants(t *testing.T) {
	t.Parallel()
	stats := []Stat{{PID: 1}, {PID: 2, Parent: 1}, {PID: 3, Parent: 2}, {PID: 4, Parent: 3}, {PID: 5, Parent: 1}, {PID: 6, Parent: 6}}
	var got []int
	for _, s := range descendants(stats, 2) {
		got = append(got, s.PID)
	}
	if diff := cmp.Diff([]int{3, 4}, got); diff != "" {
		t.Error(diff)
	}
	if got := descendants(stats, 6); len(got) != 0 {
		t.Errorf("a process that is its own parent has %v below it", got)
	}
}

// The lists of children and the scan of all processes find the same.
func TestBelowBothWays(t *testing.T) {
	t.Parallel()
	s := guest(t)
	f, err := s.Spawn(shell("sleep 600 & (sleep 600 & wait) & wait"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := func(list func(int) ([]Stat, error)) int {
		all, err := list(f.Main().PID)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for range 5000 {
		if count(s.table.below) == 3 {
			break
		}
		pause()
	}
	if a, b := count(s.table.below), count(s.table.belowByScan); a != 3 || b != 3 {
		t.Errorf("%d by lists, %d by scan, want 3", a, b)
	}
}

func TestErrno(t *testing.T) {
	t.Parallel()
	_, err := os.Open("/no/such/file")
	if n, text, ok := Errno(err); n != 2 || text != "No such file or directory" || !ok {
		t.Errorf("%d, %q, %v", n, text, ok)
	}
	if _, _, ok := Errno(os.ErrClosed); ok {
		t.Error("an errno where there is none")
	}
	for name, want := range map[string]int{"SIGTERM": 15, "sigusr1": 10, "TERM": 0, "": 0} {
		if n, ok := SignalNumber(name); n != want || ok != (want != 0) {
			t.Errorf("%q: %d, %v", name, n, ok)
		}
	}
	const passwd = "root:x:0:0:root:/root:/bin/sh\nbroken:x:7\nu:x:1001:1001::/home/u:/bin/sh\n"
	for uid, want := range map[int]string{0: "/root", 1001: "/home/u", 7: "", 5: ""} {
		if got := Home([]byte(passwd), uid); got != want {
			t.Errorf("home of %d: %q", uid, got)
		}
	}
}

// A reading in which a young process stands without its parent does not show
// from whom it descends.
func TestWhole(t *testing.T) {
	t.Parallel()
	const since = 100
	for _, tt := range []struct {
		name string
		all  []Stat
		want bool
	}{
		{"a family", []Stat{{PID: 1}, {PID: 50, Parent: 1, Start: 100}, {PID: 60, Parent: 50, Start: 101}}, true},
		{"the parent comes later", []Stat{{PID: 1}, {PID: 50, Parent: 60, Start: 101}, {PID: 60, Parent: 1, Start: 100}}, true},
		{"the parent ended meanwhile", []Stat{{PID: 1}, {PID: 50, Parent: 60, Start: 101}}, false},
		{"of a time before", []Stat{{PID: 1}, {PID: 50, Parent: 60, Start: 99}}, true},
		{"the kernel's, and the first of a namespace", []Stat{{PID: 1, Start: 200}, {PID: 2, Start: 200}}, true},
		{"none", nil, true},
	} {
		if got := whole(tt.all, since); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

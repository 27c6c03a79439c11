// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/bound"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// nobody is a user without rights.
var nobody = &host.Identity{Name: "nobody", UID: 65534, GID: 65534, Groups: []uint32{65533}}

func needsSpaces(t testing.TB) {
	t.Helper()
	able := space.Able
	if os.Geteuid() != 0 {
		able = space.TryUsers
	}
	if err := able(); err != nil {
		t.Skip(err)
	}
}

// spaces are the tests whose starters make spaces. Without root they begin in a user
// namespace.
var spaces = regexp.MustCompile("^TestSpace")

func withUsers(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	space.Users(cmd.SysProcAttr)
}

// jobUser is who jobs run as: without root it is who runs the tests.
func jobUser() *host.Identity {
	if os.Geteuid() != 0 {
		return nil
	}
	return nobody
}

// TestAsAUser has an ordinary user run those tests.
//
// row: S4-083
func TestAsAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests themselves are an ordinary user's here")
	}
	dir := spaceDir(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run="+spaces.String(), "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(dir, "tmp")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody.UID, Gid: nobody.GID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "namespace") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// spaceSpec is a job of nobody's, with words of: tmp (its own /tmp, which is dir/tmp),
// shm, pids, net.
func spaceSpec(s *Spawner, dir, words, script string) host.SpawnSpec {
	spec := shell(script)
	spec.Dir, spec.User, spec.Space = "/", jobUser(), &host.Space{}
	spec.Env = append(spec.Env, "MARK=space")
	spec.Marker = "MARK=space"
	for word := range strings.SplitSeq(words, ",") {
		switch word {
		case "tmp":
			spec.Space.Mounts = append(spec.Space.Mounts, host.Mount{Source: filepath.Join(dir, "tmp"), Target: "/tmp"})
		case "shm":
			spec.Space.Mounts = append(spec.Space.Mounts, host.Mount{Target: "/dev/shm", Mode: 0o1777})
		case "ro":
			spec.Space.Mounts = append(spec.Space.Mounts, host.Mount{Source: "/usr", Target: "/usr", ReadOnly: true})
		case "pids":
			spec.Space.PIDs = true
		case "net":
			spec.Space.NoNetwork = true
		case "root":
			spec.Space.Root = dir
		}
	}
	if s.groups != nil {
		spec.Group = groupName()
	}
	return spec
}

// mounted is what the machine has mounted.
func mounted() string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return string(text)
}

// scenarioSpace runs a script in a space to its end: args are groups, a directory of
// nobody's, the words of the space, the script.
func scenarioSpace(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	before := mounted()
	out, err := os.CreateTemp("", "space")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name())
	spec := spaceSpec(s, args[1], args[2], args[3])
	spec.Stdout, spec.Stderr = out, out
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{Text: err.Error()}, nil
	}
	<-f.Done()
	if now := mounted(); now != before {
		return outcome{}, fmt.Errorf("the machine has other mounts:\n%s\nbefore:\n%s", now, before)
	}
	left, err := f.Close()
	if err != nil {
		return outcome{}, err
	}
	u, err := f.Usage()
	if err != nil {
		return outcome{}, err
	}
	text, err := os.ReadFile(out.Name())
	return outcome{Status: f.Status(), Usage: u, Leftovers: left, PID: f.Main().PID, Grouped: f.Grouped(), Text: string(text)}, err
}

// spaceDir is a directory of nobody's with a directory tmp.
func spaceDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tmp := filepath.Join(dir, "tmp")
	if os.Geteuid() != 0 {
		if err := os.Mkdir(tmp, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if err := errors.Join(os.Mkdir(tmp, 0o700), os.Chown(dir, int(nobody.UID), int(nobody.GID)), os.Chown(tmp, int(nobody.UID), int(nobody.GID))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a family sees is what its space says, and what it leaves nobody else sees.
//
// row: S4-069, S4-072, S4-083, S0-058, S0-059
func TestSpace(t *testing.T) {
	t.Parallel()
	needsSpaces(t)
	uid := "65534"
	if os.Geteuid() != 0 {
		uid = strconv.Itoa(os.Geteuid())
	}
	for _, c := range []struct {
		name, words, script string
		want                []string // lines of the output, all of them
		left                int
	}{
		{"without a space others are seen", "", `test -d /proc/$PPID && echo others; test $$ -gt 10 && echo numbers`, []string{"others", "numbers"}, 0},
		{"private /tmp", "tmp", `echo x > /tmp/mine && ls -A /tmp; stat -c '%a %u' /tmp; id -u; ls /dev/shm/execpoint-test-none 2>/dev/null; exit 0`,
			[]string{"mine", "700 " + uid, uid}, 0},
		{"private /dev/shm", "shm", `echo x > /dev/shm/execpoint-space-test && ls -A /dev/shm; stat -fc %T /dev/shm; stat -c %a /dev/shm`,
			[]string{"execpoint-space-test", "tmpfs", "1777"}, 0},
		{"no network but lo, which is up", "net", `tail -n +3 /proc/net/dev | wc -l | tr -d ' '; grep -c 'lo:' /proc/net/dev; grep 0100007F /proc/net/fib_trie >/dev/null || grep -c 127.0.0.1 /proc/net/fib_trie >/dev/null && echo up`,
			[]string{"1", "1", "up"}, 0},
		{"numbers of its own", "pids", `echo $$; cd /proc; echo [0-9]*; cat 1/comm; stat -c %u 1; kill -9 1; echo alive; cat /proc/1/environ 2>/dev/null; test -r /proc/1/mem || echo closed`,
			[]string{"2", "1 2", "condor_pid_ns_i", uid, "alive", "closed"}, 0},
		{"what it leaves dies with it", "pids", `(setsid sleep 1000 &); (sleep 1001 &); exit 3`, nil, 2},
		{"everything", "tmp,shm,pids,net", `echo $$ > /tmp/a; echo b > /dev/shm/b; cat /tmp/a /dev/shm/b; tail -n +3 /proc/net/dev | wc -l | tr -d ' '`, []string{"2", "b", "1"}, 0},
		{"read-only", "ro", `touch /usr/x 2>&1 | grep -c 'Read-only'; grep ' /usr ' /proc/self/mountinfo | cut -d' ' -f6 | cut -d, -f1`, []string{"1", "ro"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachTracking(t, func(t *testing.T, groups string) {
				dir := spaceDir(t)
				got := scenario[outcome](t, "space", groups, dir, c.words, c.script)
				want := strings.Join(c.want, "\n")
				if strings.TrimSpace(got.Text) != strings.TrimSpace(want) || got.Leftovers != c.left {
					t.Errorf("%d left, want %d, status %v, said\n%s\nwant\n%s", got.Leftovers, c.left, got.Status, got.Text, want)
				}
				if _, err := os.Stat("/dev/shm/execpoint-space-test"); err == nil {
					t.Error("the machine's /dev/shm has the job's file")
				}
				if c.words == "tmp" {
					if text, err := os.ReadFile(filepath.Join(dir, "tmp/mine")); string(text) != "x\n" {
						t.Errorf("its /tmp is not its directory: %q, %v", text, err)
					}
				}
			})
		})
	}
}

// A source that the user could not reach is not brought to him, whatever link he has put
// there; nothing is started then, and no process is left.
func TestSpaceSources(t *testing.T) {
	t.Parallel()
	needsSpaces(t)
	secret := filepath.Join(t.TempDir(), "closed") // not for others to pass through
	if err := errors.Join(os.Chmod(filepath.Dir(secret), 0o700), os.Mkdir(secret, 0o777)); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(tmp string) error{
		"a link": func(tmp string) error {
			return errors.Join(os.Remove(tmp), os.Symlink("/usr", tmp))
		},
		"a file": func(tmp string) error { return errors.Join(os.Remove(tmp), os.WriteFile(tmp, nil, 0o600)) },
		"gone":   os.Remove,
		"a link on the way": func(tmp string) error {
			dir := filepath.Dir(tmp)
			return errors.Join(os.RemoveAll(dir), os.Symlink(filepath.Dir(secret), dir), os.Rename(secret, filepath.Join(filepath.Dir(secret), "tmp")))
		},
	} {
		if name == "a link on the way" && os.Geteuid() != 0 {
			continue // it leads where the user could go himself
		}
		dir := spaceDir(t)
		if err := make(filepath.Join(dir, "tmp")); err != nil {
			t.Fatal(err)
		}
		got := scenario[outcome](t, "space", "none", dir, "pids,tmp", "echo ran")
		if !strings.Contains(got.Text, host.ErrLimit.Error()) || got.PID != 0 {
			t.Errorf("%s: %q", name, got.Text)
		}
	}
}

// scenarioBomb kills a family that forks as fast as it can: args are groups and a directory.
// It is 32 loops, each with a child at a time, so that the machine bears it whatever
// becomes of the test.
func scenarioBomb(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	f, err := s.Spawn(spaceSpec(s, args[1], "pids", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32; do
(setsid sh -c 'while :; do (:); done' &)
done; sleep 1000`))
	if err != nil {
		return outcome{}, err
	}
	for n, deadline := 0, time.Now().Add(30*time.Second); n < 30; {
		u, err := f.Usage()
		if err != nil {
			return outcome{}, err
		}
		if n = u.Procs; time.Now().After(deadline) {
			_, err := f.Close()
			return outcome{}, fmt.Errorf("there are %d processes only, %w", n, err)
		}
		pause()
	}
	killed, err := f.Kill()
	if err != nil {
		return outcome{}, err
	}
	<-f.Done()
	left, err := f.Close()
	return outcome{Killed: killed, Leftovers: left, Status: f.Status()}, err
}

// A family that forks in a PID namespace as fast as it can is gone with the first process.
//
// row: S0-059
func TestSpaceBomb(t *testing.T) {
	t.Parallel()
	needsSpaces(t)
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "bomb", groups, spaceDir(t))
		if got.Killed < 20 || got.Leftovers != 0 || got.Status.Signal != 9 {
			t.Errorf("%d killed, %d left, %v", got.Killed, got.Leftovers, got.Status)
		}
	})
}

// scenarioSpaceBeside starts a visitor beside a job with a space.
func scenarioSpaceBeside(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	f, err := s.Spawn(spaceSpec(s, args[1], "tmp,pids,net", "echo job > /tmp/job; sleep 1000 & exec sleep 1000"))
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	read(filepath.Join(args[1], "tmp/job"))
	out, err := os.CreateTemp("", "space")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name())
	guest := shell("cat /tmp/job; cat /proc/2/comm; tail -n +3 /proc/net/dev | wc -l | tr -d ' '; (setsid sleep 1000 &)")
	guest.Beside, guest.User, guest.Dir, guest.Stdout, guest.Stderr = f, jobUser(), "/tmp", out, out
	guest.Env = append(guest.Env, "MARK=guest")
	guest.Marker = "MARK=guest"
	g, err := s.Spawn(guest)
	if err != nil {
		return outcome{}, err
	}
	<-g.Done()
	if _, err := g.Close(); err != nil {
		return outcome{}, err
	}
	u, err := f.Usage()
	if err != nil {
		return outcome{}, err
	}
	text, err := os.ReadFile(out.Name())
	return outcome{Text: string(text), Alive: running(f.Main().PID), Usage: u}, err
}

// Who visits a job sees what it sees; what the visitor leaves ends with him or with the
// job, and the job goes on.
func TestSpaceBeside(t *testing.T) {
	t.Parallel()
	needsSpaces(t)
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "spacebeside", groups, spaceDir(t))
		if want := "job\nsleep\n1\n"; got.Text != want || !got.Alive || got.Usage.Procs < 2 {
			t.Errorf("%q, want %q; alive %v, %d processes", got.Text, want, got.Alive, got.Usage.Procs)
		}
	})
}

// What a process has used that lost its parent is of the family, while it lives, when it
// has ended and when the family is over.
func TestSpaceUsage(t *testing.T) {
	t.Parallel()
	needsSpaces(t)
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "space", groups, spaceDir(t), "tmp,pids",
			`(setsid sh -c 'i=0; while test $i -lt 300000; do i=$((i+1)); done; : > /tmp/done' &); until test -e /tmp/done; do sleep 0.02; done; sleep 0.02`)
		if got.Usage.UserCPU+got.Usage.SysCPU < 60*time.Millisecond {
			t.Errorf("%+v", got.Usage)
		}
	})
}

// scenarioStay starts a job in a space and tells who is of it, and then stays.
func scenarioStay(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	if _, err := s.Spawn(spaceSpec(s, args[1], "tmp,shm,pids,net", "setsid sleep 1000 & echo > /tmp/there; exec sleep 1000")); err != nil {
		return outcome{}, err
	}
	forever()
	return outcome{}, nil
}

// A starter that is killed at any moment leaves no mount on the machine and no process of
// a family with PIDs of its own.
func TestSpaceKilled(t *testing.T) {
	needsSpaces(t) // not parallel: the machine's mounts are compared
	before := mounted()
	for i := range 20 {
		dir := spaceDir(t)
		cmd := exec.Command(os.Args[0], "none", dir)
		cmd.Env = append(os.Environ(), scenarioEnv+"=stay", "OF="+dir)
		withUsers(cmd)
		if err := bound.Start(cmd); err != nil {
			t.Fatal(err)
		}
		there := filepath.Join(dir, "tmp/there")
		if i%4 == 0 { // the whole way
			for range 5000 {
				if _, err := os.Stat(there); err == nil {
					break
				}
				pause()
			}
			if _, err := os.Stat(there); err != nil {
				t.Fatal("the job does not begin")
			}
		} else {
			unix.Nanosleep(&unix.Timespec{Nsec: int64(i) * 600_000}, nil)
		}
		pid := cmd.Process.Pid
		var below []Stat
		if i%4 == 0 {
			below, _ = newTable("/proc").below(pid)
			if len(below) < 3 {
				t.Errorf("%d processes below the starter", len(below))
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, st := range below {
			if fd, err := pidfdOpen(st.PID); err == nil && !pidfdEnds(fd, 10*time.Second) {
				t.Errorf("%d (%s) lives", st.PID, st.Comm)
			}
		}
	}
	if now := mounted(); now != before {
		t.Errorf("the machine has other mounts:\n%s\nbefore:\n%s", now, before)
	}
}

// Without the rights for it nothing is started.
func TestSpaceDenied(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give it up")
	}
	dir := spaceDir(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if out, err := exec.Command("cp", exe, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cmd := exec.Command(copied, "none", dir, "pids", "echo ran")
	cmd.Env = append(os.Environ(), scenarioEnv+"=spaceself", "TMPDIR="+filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody.UID, Gid: nobody.GID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), strconv.Itoa(int(unix.EPERM))) {
		t.Errorf("%s, %v", out, err)
	}
}

// scenarioSpaceSelf is scenarioSpace for the user of the process.
func scenarioSpaceSelf(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := spaceSpec(s, args[1], args[2], args[3])
	spec.User = nil
	_, err = s.Spawn(spec)
	if !errors.Is(err, host.ErrLimit) || !errs.Is(err, errs.Broken) && !errs.Is(err, errs.Denied) {
		return outcome{}, fmt.Errorf("started: %w", err)
	}
	n, _, _ := Errno(err)
	return outcome{Errno: n}, nil
}

// BenchmarkSpace takes the time that a space adds to the start of a process.
func BenchmarkSpace(b *testing.B) {
	needsSpaces(b)
	dir := spaceDir(b)
	s, err := New(Options{Role: Guest})
	if err != nil {
		b.Fatal(err)
	}
	for _, words := range []string{"", "tmp,shm", "tmp,shm,net", "tmp,shm,pids"} {
		b.Run("with="+words, func(b *testing.B) {
			for b.Loop() {
				spec := spaceSpec(s, dir, words, "")
				spec.Path, spec.Args = "/bin/true", []string{"true"}
				f, err := s.Spawn(spec)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				<-f.Done()
				if _, err := f.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

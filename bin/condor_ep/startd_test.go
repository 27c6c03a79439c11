// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// startd is a condor_startd that this tool is to find.
type startd struct {
	place
	t       *testing.T
	program string
	cmd     *exec.Cmd
}

// nobody is the user of another person.
const nobody = 65534

// newStartd builds condor_startd and writes a configuration for it, in a place
// that other users can reach.
func newStartd(t *testing.T, lines string) *startd {
	t.Helper()
	dir, err := os.MkdirTemp("", "ep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &startd{place: place{dir: dir, tmp: t.TempDir()}, t: t, program: filepath.Join(dir, "condor_startd")}
	if out, err := exec.Command("go", "build", "-o", s.program, "../condor_startd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.write(t, "node.conf", "LOCAL_DIR = "+dir+"\nCOLLECTOR_HOST = 127.0.0.1:1\nNETWORK_INTERFACE = 127.0.0.1\nUSE_SHARED_PORT = false\nSTARTD_NAME = here\n"+
		"NUM_CPUS = 2\nSTARTD_DETECT_GPUS = false\nUID_DOMAIN = lab.test\nSEC_DEFAULT_AUTHENTICATION_METHODS = FS\n"+lines)
	return s
}

// begin starts the daemon and waits until it is seen.
func (s *startd) begin() {
	s.t.Helper()
	s.cmd = exec.Command(s.program, "-f", "-c", filepath.Join(s.dir, "node.conf"))
	s.cmd.Env = append(os.Environ(), run.BaseVariable+"="+filepath.Join(s.tmp, "runs"))
	if err := bound.Start(s.cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.end)
	end := time.Now().Add(30 * time.Second)
	for {
		status, stdout, stderr := s.ep(s.t, "status", "-config", filepath.Join(s.dir, "node.conf"))
		if status == exitOK {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log/StartLog"))
			s.t.Fatalf("status %d: %s%s\n%s", status, stdout, stderr, log)
		}
	}
}

func (s *startd) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// A condor_startd is seen by the same commands as condor_ep run: by who started
// it without any option, and by its configuration; also when it has ended.
func TestSeesStartd(t *testing.T) {
	t.Parallel()
	s := newStartd(t, "")
	conf := filepath.Join(s.dir, "node.conf")
	s.refused(t, exitSomeFailed, "no Execution Point of this user is running here", "status", "-config", conf)
	s.begin()
	for _, with := range [][]string{nil, {"-config", conf}} {
		args := func(command string, more ...string) []string {
			return append(append([]string{command}, with...), more...)
		}
		status, stdout, stderr := s.ep(t, args("status", "-json")...)
		var st observe.Status
		if err := json.Unmarshal([]byte(stdout), &st); err != nil || status != exitOK || st.Program != "condor_startd" || st.PID != s.cmd.Process.Pid || len(st.Slots) != 1 || st.Jobs != nil {
			t.Fatalf("%v: status %d: %s%s", with, status, stdout, stderr)
		}
		s.accepted(t, "slot1 is Unclaimed/Idle", args("explain")...)
		s.accepted(t, "slot1 is Unclaimed/Idle", args("explain", "slot1")...)
		s.refused(t, exitSomeFailed, "no slot here runs a job 7.0", args("explain", "7.0")...)
		s.accepted(t, "draining, request id ", args("drain", "-reason", "new disk")...)
		if status, stdout, _ := s.ep(t, args("status")...); status != exitOK || !strings.Contains(stdout, "Drained") || !strings.Contains(stdout, ", condor_startd, pid ") || !strings.Contains(stdout, "@lab.test") || !strings.Contains(stdout, "new disk") {
			t.Errorf("%v: %s", with, stdout)
		}
		s.refused(t, exitSomeFailed, "", args("drain")...)
		s.accepted(t, "cancelled the draining", args("drain", "-cancel")...)
		s.accepted(t, "vacating every slot", args("vacate", "-all")...)
		if status, _, stderr := s.ep(t, args("history")...); status != exitOK || !strings.Contains(stderr, "no job has been recorded; looked in "+filepath.Join(s.dir, "log", "startd_history")) {
			t.Errorf("%v: status %d: %s", with, status, stderr)
		}
	}
	s.end()
	for _, args := range [][]string{{"status"}, {"status", "-config", conf}} {
		s.refused(t, exitSomeFailed, "EXITING WITH STATUS 0", args...)
	}
	// What ran there is shown also when nothing runs.
	s.write(t, "log/startd_history", "ClusterId = 41\nProcId = 2\nCmd = \"/bin/true\"\nCompletionDate = 1700000000\n*** Offset = 0 ClusterId = 41 ProcId = 2\n")
	for _, args := range [][]string{{"history"}, {"history", "-config", conf}} {
		s.accepted(t, "41.2", args...)
	}
	// With the configuration it is tried what the daemon would do.
	s.accepted(t, "slot1 is Unclaimed/Idle", "explain", "-config", conf)
}

// Of several daemons of one user that one is drained which CONDOR_CONFIG names.
func TestSeveralStartds(t *testing.T) {
	t.Parallel()
	one, other := newStartd(t, ""), newStartd(t, "")
	other.tmp = one.tmp
	one.begin()
	other.begin()
	one.refused(t, exitUsage, "several Execution Points of this user run here", "drain")
	c, stdout, stderr := one.place.cmd(t, "drain")
	c.Env = append(c.Env, "CONDOR_CONFIG="+filepath.Join(other.dir, "node.conf"))
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	for s, want := range map[*startd]bool{one: false, other: true} {
		_, stdout, _ := s.ep(t, "status", "-config", filepath.Join(s.dir, "node.conf"))
		if strings.Contains(stdout, "Drain") != want {
			t.Errorf("draining is to be %v:\n%s", want, stdout)
		}
	}
}

// Other users may ask what the levels of the pool let them: READ to look,
// ADMINISTRATOR to change.
func TestOtherUsersOfStartd(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	for _, tt := range []struct {
		name, lines string
		look, drain string // what is said; "" is done
	}{
		{"nothing", "", "has not the level READ", "has not the level ADMINISTRATOR"},
		{"read", "ALLOW_READ = *\n", "", "has not the level ADMINISTRATOR"},
		{"denied", "ALLOW_READ = *\nALLOW_ADMINISTRATOR = *\nDENY_ADMINISTRATOR = nobody@lab.test\n", "", "has not the level ADMINISTRATOR"},
		{"administrator", "ALLOW_ADMINISTRATOR = nobody@lab.test\n", "", ""},
		{"not by FS", "ALLOW_ADMINISTRATOR = nobody@lab.test\nSEC_ADMINISTRATOR_AUTHENTICATION_METHODS = SSL\n", "", "has not the level ADMINISTRATOR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStartd(t, tt.lines)
			s.begin()
			self := filepath.Join(s.dir, "condor_ep")
			copyProgram(t, self)
			for _, ask := range []struct {
				args []string
				want string
			}{
				{[]string{"status"}, tt.look}, {[]string{"explain"}, tt.look}, {[]string{"drain"}, tt.drain}, {[]string{"drain", "-cancel"}, tt.drain}, {[]string{"vacate", "-all"}, tt.drain},
			} {
				cmd := exec.Command(self, append([]string{ask.args[0], "-config", filepath.Join(s.dir, "node.conf")}, ask.args[1:]...)...)
				cmd.Env = append(os.Environ(), beTool+"=1", run.BaseVariable+"="+filepath.Join(s.dir, "none"))
				cmd.Dir = s.dir
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				out, err := cmd.CombinedOutput()
				var status *exec.ExitError
				if refused := errors.As(err, &status); refused != (ask.want != "") || err != nil && !refused || !strings.Contains(string(out), ask.want) {
					t.Errorf("%v: %v\n%s", ask.args, err, out)
				}
			}
		})
	}
}

// copyProgram copies this program.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// The configuration of a run is that of -config or of CONDOR_CONFIG; variables of
// the environment and -local-name count in it.
func TestWhereTheConfigurationOfARunIs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	conf := p.write(t, "ep.conf", "STARTD_ATTRS = Hall\nHall = \"south\"\nbig.Hall = \"big\"\nNUM_CPUS = 1\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nrequirements = Hall == \"$(hall)\"\nqueue hall in (@)\n")
	sub := p.read(t, "job.sub")
	for _, tt := range []struct {
		hall string
		env  []string
		args []string
	}{
		{"south", []string{"CONDOR_CONFIG=" + conf}, nil},
		{"south", []string{"CONDOR_CONFIG=/bin/cat " + conf + " |"}, nil},
		{"south", []string{"CONDOR_CONFIG=/none"}, []string{"-config", conf}},
		{"north", []string{"CONDOR_CONFIG=" + conf, "_CONDOR_Hall=\"north\""}, nil},
		{"big", []string{"CONDOR_CONFIG=" + conf}, []string{"-local-name", "big"}},
		{"only", []string{"CONDOR_CONFIG=ONLY_ENV", "_CONDOR_STARTD_ATTRS=Hall", "_CONDOR_Hall=\"only\""}, nil},
	} {
		p.write(t, "job.sub", strings.ReplaceAll(sub, "@", tt.hall))
		c, stdout, stderr := p.cmd(t, append(append([]string{"run"}, tt.args...), "job.sub")...)
		c.Env = append(c.Env, tt.env...)
		if err := c.Run(); err != nil {
			t.Errorf("%v %v: %v\n%s%s", tt.env, tt.args, err, stdout, stderr)
		}
	}
	p.write(t, "ep.conf", "LOCAL_DIR = here\n")
	p.refused(t, exitUsage, "ep.conf:1: knob LOCAL_DIR: the path is relative", "run", "-config", "ep.conf", "job.sub")
	p.nothingLeft(t)
}

// A condor_startd is asked over the wire with the security of the pool: by who
// has proven a name, and has the level that a question needs.
func TestAsksStartdOverTheWire(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, lines string
		look, drain string // what is refused
	}{
		{"administrator", "ALLOW_ADMINISTRATOR = condor@lab.test, " + me.Username + "@lab.test\n", "", ""},
		{"read", "ALLOW_READ = *\n", "", "cannot be asked"},
		{"nothing", "", "cannot be asked", "cannot be asked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStartd(t, tt.lines)
			s.begin()
			conf := filepath.Join(s.dir, "node.conf")
			shown, _, _ := strings.Cut(s.read(t, "log/.startd_address"), "\n")
			s.write(t, "log/startd_history", "ClusterId = 41\nProcId = 2\nCmd = \"/bin/true\"\nCompletionDate = 1700000000\n*** Offset = 0 ClusterId = 41 ProcId = 2\n")
			for _, ask := range []struct {
				args          []string
				says, refused string
			}{
				{[]string{"status"}, "Unclaimed", tt.look},
				{[]string{"explain"}, "slot1 is Unclaimed/Idle", tt.look},
				{[]string{"drain", "-reason", "far"}, "draining, request id", tt.drain},
				{[]string{"drain", "-cancel"}, "cancelled the draining", tt.drain},
				{[]string{"vacate", "-all"}, "vacating every slot", tt.drain},
			} {
				args := append([]string{ask.args[0], "-config", conf, "-name", shown}, ask.args[1:]...)
				if ask.refused != "" {
					s.refused(t, exitSomeFailed, ask.refused, args...)
				} else {
					s.accepted(t, ask.says, args...)
				}
			}
			if tt.look == "" {
				s.accepted(t, "41.2", "history", "-config", conf, "-name", shown)
			}
		})
	}
}

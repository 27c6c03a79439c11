// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/bin/internal/asstarter"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// roleEnv makes the test binary be something else: the starter itself, a
// startd with a process of its own, or a job that hides.
const roleEnv = "EXECPOINT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "starter":
		args := os.Args[1:]
		if len(args) > 0 && args[0] == protocol.Command { // as condor_starter executes condor_startd
			args = args[1:]
		}
		os.Exit(asstarter.Main(args))
	case "startd":
		beStartd()
	default:
		if path, ok := strings.CutPrefix(role, "knock:"); ok {
			knockAt(path)
		}
		hide(role)
	}
}

// launcher starts this binary as the starter.
func launcher(tb testing.TB, role proc.Role, standby int) *launch.Launcher {
	tb.Helper()
	s, err := proc.New(proc.Options{Role: role})
	if err != nil {
		tb.Fatal(err)
	}
	l := launch.NewLauncher(launchSpec(s, standby))
	tb.Cleanup(l.Close)
	return l
}

func launchSpec(s *proc.Spawner, standby int) launch.Spec {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := []string{roleEnv + "=starter", "HOME=/nowhere", "PATH=" + os.Getenv("PATH")}
	return launch.Spec{Spawner: s, Census: s, Path: exe, Args: []string{"condor_starter"}, Env: env, Stderr: os.Stderr, Standby: standby}
}

// stage is one job's submit directory and EXECUTE.
type stage struct {
	*testing.T
	submit, execute string
	attrs           map[string]string // of the job ad, old syntax
	plan            *protocol.Plan
	ownUsers        bool // starters begin in a user namespace
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, submit: openDir(t), execute: openDir(t)}
	s.attrs = map[string]string{
		"ClusterId": "7", "ProcId": "2", "Iwd": strconv.Quote(s.submit), "ShouldTransferFiles": `"YES"`,
		"TransferExecutable": "false", "WhenToTransferOutput": `"ON_EXIT"`, "Out": `"out"`, "Err": `"err"`,
	}
	s.plan = &protocol.Plan{
		Activation: "slot1_1#1", SlotName: "slot1_1", SlotFullName: "slot1_1@node1.example.org", Execute: s.execute,
		MachineAd: "Name = \"slot1_1@node1.example.org\"\n", Cpus: 2, Orphan: protocol.OrphanDie,
		RunAs: jobUser(t),
	}
	s.configure("")
	return s
}

// jobUser is who jobs run as: who runs the tests or, for root, nobody.
func jobUser(tb testing.TB) *host.Identity {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := account.Lookup("nobody")
	if err != nil || who.GID == 0 {
		tb.Skipf("there is no ordinary user nobody: %v", err)
	}
	who.Home = "/nowhere"
	return who
}

// openDir is a directory through which every user may pass.
func openDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "starter-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// jobProgram is this program where jobs can execute it.
func jobProgram(tb testing.TB) string {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return exe
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(openDir(tb), "program")
	if err := os.WriteFile(path, text, 0o755); err != nil { //nolint:gosec // for others to execute
		tb.Fatal(err)
	}
	return path
}

// give makes all of a submit directory the job's user's.
func give(tb testing.TB, u *host.Identity, dir string) {
	tb.Helper()
	if u == nil {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(u.UID), int(u.GID))
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// settingsOf are the settings of a configuration.
func settingsOf(t testing.TB, text string) *protocol.Settings {
	t.Helper()
	c, err := config.Parse("text", text, config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := protocol.SettingsFrom(c, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// configure gives the starter the settings of a configuration.
func (s *stage) configure(text string) {
	s.Helper()
	s.plan.Settings = settingsOf(s.T, "BIN =\nBASE_CGROUP =\nSTARTER_NUM_THREADS_ENV_VARS = OMP_NUM_THREADS\n"+text)
}

// sh makes the job a shell script.
func (s *stage) sh(script string) *stage {
	s.attrs["Cmd"] = `"/bin/sh"`
	// the old syntax of ads has no escape but that of the double quote
	s.attrs["Arguments"] = `"-c '` + strings.ReplaceAll(strings.ReplaceAll(script, "'", "''"), `"`, `\"`) + `'"`
	return s
}

func (s *stage) set(attr, expr string) *stage {
	s.attrs[attr] = expr
	return s
}

func (s *stage) file(name, text string, mode fs.FileMode) string {
	s.Helper()
	path := filepath.Join(s.submit, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		s.Fatal(err)
	}
	return path
}

// read returns a file of the submit directory, "(none)" if it is not there.
func (s *stage) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.submit, name))
	if err != nil {
		return "(none)"
	}
	return string(text)
}

func (s *stage) ready() *protocol.Plan {
	var ad strings.Builder
	for name, expr := range s.attrs {
		fmt.Fprintf(&ad, "%s = %s\n", name, expr)
	}
	s.plan.JobAd = ad.String()
	give(s, s.plan.RunAs, s.submit)
	return s.plan
}

func (s *stage) launch(l *launch.Launcher) *launch.Handle {
	s.Helper()
	h, err := l.Launch(s.Context(), s.ready(), nil)
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// told is everything a starter said.
type told struct {
	ops    []string
	by     map[string]protocol.Report // the last of each kind
	record protocol.ExitRecord
}

// dir is the scratch directory.
func (t told) dir() string {
	s, _ := t.by["sandbox"].(protocol.Sandbox)
	return s.Dir
}

// run lives the whole activation and looks that nothing is left of it.
func (s *stage) run() told {
	s.Helper()
	l := launcher(s, proc.Guest, 0)
	l.UseOwnUsers(s.ownUsers)
	return s.follow(s.launch(l), nil)
}

// follow reads all reports; each, if set, is called with every one.
func (s *stage) follow(h *launch.Handle, each func(protocol.Report)) told {
	s.Helper()
	got := told{by: map[string]protocol.Report{}}
	for t := range h.Reports() {
		r := t.What
		got.ops = append(got.ops, r.Kind())
		got.by[r.Kind()] = r
		if e, ok := r.(protocol.Ended); ok {
			got.record = e.Record
		}
		if each != nil {
			each(r)
		}
	}
	<-h.Exited()
	st, err := h.Exit()
	if err != nil {
		s.Errorf("conversation: %v", err)
	}
	if !st.Success() {
		s.Errorf("the starter itself %v", st)
	}
	s.empty()
	return got
}

// empty looks that EXECUTE is.
func (s *stage) empty() {
	s.Helper()
	entries, err := os.ReadDir(s.execute)
	if err != nil || len(entries) != 0 {
		s.Errorf("EXECUTE holds %v (%v), want nothing", entries, err)
	}
}

func TestJobRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.file("in.txt", "input\n", 0o640)
	s.file("tree/leaf", "leaf\n", 0o644)
	s.set("TransferInput", `"in.txt,tree"`).set("Environment", `"GREETING='hello there'"`)
	s.sh(`cat in.txt tree/leaf; echo "$GREETING"; pwd; echo oops >&2; echo new > made; exit 3`)
	got := s.run()
	want := host.ExitStatus{Exited: true, Code: 3}
	if got.record.Status != want || got.record.Evicted || got.record.Held != nil || got.record.Leftovers != 0 {
		t.Errorf("record %+v", got.record)
	}
	ops := strings.Join(got.ops, " ")
	if ops != "sandbox transfer-in-start transfer-in-done running transfer-out-start transfer-out-done ended" {
		t.Errorf("reports: %s", ops)
	}
	scratch := got.dir()
	if out := s.read("out"); out != "input\nleaf\nhello there\n"+scratch+"\n" {
		t.Errorf("standard output is %q", out)
	}
	if s.read("err") != "oops\n" || s.read("made") != "new\n" {
		t.Errorf("err %q, made %q", s.read("err"), s.read("made"))
	}
	if got.record.BytesIn != 11 || got.record.BytesOut != int64(len(s.read("out"))+5+4) {
		t.Errorf("bytes in %d, out %d", got.record.BytesIn, got.record.BytesOut)
	}
	if got.record.DiskKiB < 4 || got.record.Started.IsZero() || got.record.Ended.Before(got.record.Started) {
		t.Errorf("record %+v", got.record)
	}
}

func TestEndBySignal(t *testing.T) {
	t.Parallel()
	got := newStage(t).sh("kill -9 $$").run()
	if want := (host.ExitStatus{Signal: 9}); got.record.Status != want || got.record.Evicted {
		t.Errorf("record %+v, want status %v", got.record, want)
	}
}

// Without file transfer the job runs in its own directory and writes there.
func TestWithoutTransfer(t *testing.T) {
	t.Parallel()
	s := newStage(t).set("ShouldTransferFiles", `"NO"`).set("In", `"stdin"`)
	s.file("stdin", "from stdin\n", 0o644)
	got := s.sh("cat; pwd; echo x > left").run()
	if out := s.read("out"); out != "from stdin\n"+s.submit+"\n" || s.read("left") != "x\n" || !got.record.Status.Success() {
		t.Errorf("out %q, left %q, %+v", out, s.read("left"), got.record)
	}
	if ops := strings.Join(got.ops, " "); ops != "sandbox running ended" {
		t.Errorf("reports: %s", ops)
	}
}

// What comes back by itself, as end-outfiles of the recorded starter shows:
// new and changed plain files, dot files, empty ones, a link to a file as a
// copy; neither unchanged input nor directories nor FIFOs nor set-uid bits.
func TestWhatComesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t).set("TransferInput", `"same,changed"`)
	s.file("same", "same\n", 0o640)
	s.file("changed", "old\n", 0o755)
	s.sh(`echo more >> changed; echo n > new.txt; chmod 4755 new.txt; ln new.txt hard.txt; ln -s new.txt link.txt; ln -s /etc/passwd out.txt; mkdir dir; echo d > dir/x; mkfifo fifo; : > empty; echo dot > .dot`).run()
	info := func(name string) string {
		st, err := os.Lstat(filepath.Join(s.submit, name))
		if err != nil {
			return "none"
		}
		return fmt.Sprintf("%v %d", st.Mode(), st.Size())
	}
	for name, want := range map[string]string{
		"same": "-rw-r----- 5", "changed": "-rwxr-xr-x 9", "new.txt": "-rwxr-xr-x 2", "hard.txt": "-rwxr-xr-x 2",
		"link.txt": "-rwxr-xr-x 2", "out.txt": "none", "dir": "none", "fifo": "none", "empty": "-rw-r--r-- 0",
		".dot": "-rw-r--r-- 4", ".job.ad": "none", ".machine.ad": "none", "_condor_stdout": "none",
	} {
		if got := info(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestOutputListAndRemaps(t *testing.T) {
	t.Parallel()
	s := newStage(t).set("TransferOutput", `"a,sub/b,d"`).set("TransferOutputRemaps", `"a = results/a.txt"`)
	if err := os.Mkdir(filepath.Join(s.submit, "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := s.sh("echo a > a; mkdir sub d; echo b > sub/b; echo x > d/x; echo no > unlisted").run()
	if s.read("results/a.txt") != "a\n" || s.read("b") != "b\n" || s.read("d/x") != "x\n" || s.read("unlisted") != "(none)" || got.record.Held != nil {
		t.Errorf("a %q, b %q, d/x %q, unlisted %q, held %v", s.read("results/a.txt"), s.read("b"), s.read("d/x"), s.read("unlisted"), got.record.Held)
	}
}

// Every hold has HTCondor's code and words, as the recorded starter gave them
// (exec and exit cases of the policy recordings, end-… of the starter's).
//
// row: S1-028
func TestHolds(t *testing.T) {
	t.Parallel()
	const from = "Error from slot1_1@node1.example.org: "
	for _, c := range []struct {
		name         string
		make         func(s *stage)
		code, errno  int
		text         string // ${SUB} is the submit directory, ${SCRATCH} the scratch directory
		alsoFinished bool   // the job itself ran
	}{
		{"no such program", func(s *stage) { s.set("Cmd", `"/no/such/program"`).set("Args", `"1"`) }, 6, 2,
			from + "Failed to execute '/no/such/program' with arguments 1: (errno=2: 'No such file or directory')", false},
		{"not executable", func(s *stage) { s.set("Cmd", strconv.Quote(s.file("nox", "#!/bin/sh\n", 0o644))) }, 6, 13,
			from + "Failed to execute '${SUB}/nox': (errno=13: 'Permission denied')", false},
		{"bad interpreter", func(s *stage) { s.set("Cmd", strconv.Quote(s.file("bad.sh", "#!/no/such/interp -x\n", 0o755))) }, 6, 2,
			from + "Failed to execute '${SUB}/bad.sh': invalid interpreter (/no/such/interp) specified on first line of script (errno=2: 'No such file or directory')", false},
		{"no format", func(s *stage) { s.set("Cmd", strconv.Quote(s.file("noformat", "junk", 0o755))) }, 6, 8,
			from + "Failed to execute '${SUB}/noformat': (errno=8: 'Exec format error')", false},
		{"transferred and broken", func(s *stage) {
			s.file("bad.sh", "#!/no/such/interp\n", 0o755)
			s.set("Cmd", `"bad.sh"`).set("TransferExecutable", "true")
		}, 6, 2, from + "Failed to execute '${SCRATCH}/bad.sh': invalid interpreter (/no/such/interp) specified on first line of script (errno=2: 'No such file or directory')", false},
		{"no executable to transfer", func(s *stage) { s.set("Cmd", `"gone.sh"`).set("TransferExecutable", "true") }, 13, 2,
			"Transfer input files failure at access point node1 while sending files to execution point slot1_1@node1.example.org. Details: 1 total failures: first failure: reading from file ${SUB}/gone.sh: (errno 2) No such file or directory", false},
		{"no input", func(s *stage) { s.sh("exit 0").set("TransferInput", `"nosuch.dat"`) }, 13, 2,
			"Transfer input files failure at access point node1 while sending files to execution point slot1_1@node1.example.org. Details: 1 total failures: first failure: reading from file ${SUB}/nosuch.dat: (errno 2) No such file or directory", false},
		{"no listed output", func(s *stage) { s.sh("exit 0").set("TransferOutput", `"nothere.txt"`) }, 12, 2,
			"Transfer output files failure at execution point slot1_1@node1.example.org while sending files to access point node1. Details: 1 total failures: first failure: reading from file ${SCRATCH}/nothere.txt: (errno 2) No such file or directory", true},
		{"output path not there", func(s *stage) { s.sh("exit 0").set("Out", `"/no/such/dir/out"`) }, 12, 2,
			"Transfer output files failure at access point node1 while receiving files from execution point slot1_1@node1.example.org. Details: writing to file /no/such/dir/out: (errno 2) No such file or directory", true},
		{"stdout not there", func(s *stage) { s.sh("exit 0").set("ShouldTransferFiles", `"NO"`).set("Out", `"/no/such/dir/out"`) }, 7, 2,
			from + "Failed to open '/no/such/dir/out' as standard output: No such file or directory (errno 2)", false},
		{"stdin not there", func(s *stage) { s.sh("exit 0").set("ShouldTransferFiles", `"NO"`).set("In", `"/no/such/in"`) }, 8, 2,
			from + "Failed to open '/no/such/in' as standard input: No such file or directory (errno 2)", false},
		{"initial directory not there", func(s *stage) { s.sh("exit 0").set("ShouldTransferFiles", `"NO"`).set("Iwd", `"/no/such/dir"`) }, 14, 2,
			from + "Cannot access initial working directory /no/such/dir: No such file or directory", false},
		{"output that leads out", func(s *stage) { s.sh("exit 0").set("TransferOutput", `"../../../../etc/passwd"`) }, 12, 0,
			"Transfer output files failure at execution point slot1_1@node1.example.org while sending files to access point node1. Details: 1 total failures: first failure: reading from file ../../../../etc/passwd: (errno 0) not in the scratch directory", true},
		{"arguments that cannot be read", func(s *stage) { s.sh("exit 0").set("Arguments", `"'open"`) }, 6, 0, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			c.make(s)
			got := s.run()
			h := got.record.Held
			if h == nil || h.Code != c.code || h.Subcode != c.errno {
				t.Fatalf("held %+v, want code %d subcode %d", h, c.code, c.errno)
			}
			want := strings.NewReplacer("${SUB}", s.submit, "${SCRATCH}", got.dir()).Replace(c.text)
			if want != "" && h.Reason != want {
				t.Errorf("reason\n%s\nwant\n%s", h.Reason, want)
			}
			if said := got.by["held"]; said != (protocol.Held{Hold: *h}) {
				t.Errorf("the held report says %+v", said)
			}
			if got.record.Status.Ended() != c.alsoFinished || got.record.Evicted {
				t.Errorf("record %+v", got.record)
			}
		})
	}
}

// The environment is that of the recorded policy-env-02, with our values.
func TestEnvironmentAndAds(t *testing.T) {
	t.Parallel()
	s := newStage(t).sh("env | sort; cat .job.ad > jobad; cat $_CONDOR_MACHINE_AD > machinead; umask; ulimit -c; ulimit -s")
	s.set("Environment", `"TMP=/x MINE=1 OMP_NUM_THREADS=9 WHERE=#CoNdOrScRaTcHdIr#/y"`)
	got := s.run()
	scratch := got.dir()
	out := s.read("out")
	for _, line := range []string{
		"_CONDOR_SCRATCH_DIR=" + scratch, "_CONDOR_SLOT=slot1_1", "_CONDOR_JOB_AD=" + scratch + "/.job.ad",
		"_CONDOR_MACHINE_AD=" + scratch + "/.machine.ad", "_CONDOR_JOB_IWD=" + scratch, "BATCH_SYSTEM=HTCondor",
		"TMP=" + scratch, "TMPDIR=" + scratch, "TEMP=" + scratch, "MINE=1", "OMP_NUM_THREADS=9", "WHERE=" + scratch + "/y",
		"APPTAINER_CACHEDIR=" + scratch, "0022", "unlimited",
	} {
		if !strings.Contains("\n"+out, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	if !strings.Contains(out, "_CONDOR_ANCESTOR_") || !strings.HasSuffix(out, "0022\n0\nunlimited\n") {
		t.Errorf("marker, umask, core and stack limits in\n%s", out)
	}
	ad := s.read("jobad")
	for _, line := range []string{
		fmt.Sprintf("Iwd = %q", scratch), fmt.Sprintf("OrigIwd = %q", s.submit), `Out = "_condor_stdout"`, `OriginalOut = "out"`, "ClusterId = 7",
	} {
		if !strings.Contains("\n"+ad, "\n"+line+"\n") {
			t.Errorf("no line %q in .job.ad\n%s", line, ad)
		}
	}
	if s.read("machinead") != s.plan.MachineAd {
		t.Errorf(".machine.ad is %q", s.read("machinead"))
	}
}

// A soft kill reaches the main process alone, with the signal of its manner; a
// job that goes is evicted, with the reason of the order and without output.
//
// row: S0-148, S1-034
func TestSoftKill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, attr, value string
		manner            protocol.Manner
		signal            string
	}{
		{"default", "X", "1", protocol.MannerVacate, "TERM"},
		{"KillSig", "KillSig", `"SIGUSR1"`, protocol.MannerVacate, "USR1"},
		{"KillSig as a number", "KillSig", "12", "", "USR2"},
		{"RemoveKillSig", "RemoveKillSig", `"SIGINT"`, protocol.MannerRemove, "INT"},
		{"RemoveKillSig is not for vacating", "RemoveKillSig", `"SIGINT"`, protocol.MannerVacate, "TERM"},
		{"HoldKillSig", "HoldKillSig", `"SIGQUIT"`, protocol.MannerHold, "QUIT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).set(c.attr, c.value)
			seen := filepath.Join(s.submit, "seen")
			s.sh(fmt.Sprintf(`for s in TERM USR1 USR2 INT QUIT; do trap "echo $s > %[1]s; exit 0" $s; done; : > %[1]s.ready; while :; do sleep 0.02; done`, seen))
			h := s.launch(launcher(t, proc.Guest, 0))
			got := s.follow(h, func(r protocol.Report) {
				if _, ok := r.(protocol.Running); ok {
					await(t, seen+".ready")
					if err := h.Send(protocol.SoftKill{Leave: protocol.Leave{Manner: c.manner, Asked: "startd", Reason: "because", Code: 1011, Subcode: 4}}); err != nil {
						t.Error(err)
					}
				}
			})
			if s.read("seen") != c.signal+"\n" {
				t.Errorf("the job saw %q, want %s", s.read("seen"), c.signal)
			}
			r := got.record
			if !r.Evicted || r.Reason != "because" || r.Code != 1011 || r.Subcode != 4 || r.Asked != "startd" || !r.Status.Success() || s.read("out") != "(none)" {
				t.Errorf("record %+v, out %q", r, s.read("out"))
			}
		})
	}
}

// A job that does not obey in time is killed with everything it has.
func TestSoftKillThenHardKill(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ready := filepath.Join(s.submit, "ready")
	s.sh(fmt.Sprintf(`trap "" TERM; (trap "" TERM; setsid sleep 600 & echo $! > %[1]s.pid) ; : > %[1]s; while :; do sleep 600; done`, ready))
	h := s.launch(launcher(t, proc.Guest, 0))
	got := s.follow(h, func(r protocol.Report) {
		if _, ok := r.(protocol.Running); ok {
			await(t, ready)
			if err := h.Send(protocol.SoftKill{Leave: protocol.Leave{Reason: "slow"}, Deadline: 50 * time.Millisecond}); err != nil {
				t.Error(err)
			}
		}
	})
	if r := got.record; !r.Evicted || r.Status.Signal != 9 || r.Reason != "slow" {
		t.Errorf("record %+v", r)
	}
	if pid, _ := strconv.Atoi(strings.TrimSpace(s.read("ready.pid"))); pid == 0 || alive(pid) {
		t.Errorf("the job's child %d lives", pid)
	}
}

// A suspended job is thawed before its soft kill.
func TestSoftKillOfASuspendedJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ready := filepath.Join(s.submit, "ready")
	s.sh(fmt.Sprintf(`trap "exit 5" TERM; : > %s; while :; do sleep 0.05; done`, ready))
	h := s.launch(launcher(t, proc.Guest, 0))
	got := s.follow(h, func(r protocol.Report) {
		var o protocol.Order
		switch r.(type) {
		case protocol.Running:
			await(t, ready)
			o = protocol.Suspend{}
		case protocol.Suspended:
			o = protocol.SoftKill{}
		default:
			return
		}
		if err := h.Send(o); err != nil {
			t.Error(err)
		}
	})
	if got.by["suspended"].(protocol.Suspended).Count < 1 || got.record.Status.Code != 5 || !got.record.Evicted {
		t.Errorf("suspended %+v, record %+v", got.by["suspended"], got.record)
	}
}

// Nothing that the job started outlives its end, and it is counted.
func TestLeftoversAreKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pidFile := filepath.Join(s.submit, "pid")
	exe := jobProgram(t)
	s.sh(fmt.Sprintf(`%s=detach:%s %s; exit 0`, roleEnv, pidFile, exe))
	got := s.run()
	pid := await(t, pidFile)
	if !got.record.Status.Success() || got.record.Leftovers != 1 || alive(pid) {
		t.Errorf("record %+v; process %d alive: %v", got.record, pid, alive(pid))
	}
}

func TestUsageReports(t *testing.T) {
	t.Parallel()
	s := newStage(t).sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 100000 /dev/zero > big; sleep 600")
	s.configure("STARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\n")
	h := s.launch(launcher(t, proc.Guest, 0))
	got := s.follow(h, func(r protocol.Report) {
		if u, ok := r.(protocol.Usage); ok && u.DiskKiB >= 98 {
			if err := h.Send(protocol.HardKill{}); err != nil {
				t.Error(err)
			}
		}
	})
	u := got.by["usage"].(protocol.Usage).Usage
	if u.Procs < 2 || u.RSSKiB == 0 || u.UserCPU+u.SysCPU < 10*time.Millisecond {
		t.Errorf("usage %+v", u)
	}
	if f := got.record.Usage; f.UserCPU+f.SysCPU < u.UserCPU+u.SysCPU || f.PeakRSSKiB < u.PeakRSSKiB || got.record.DiskKiB < 98 {
		t.Errorf("record %+v after usage %+v", got.record, u)
	}
}

// EXECUTE that cannot be used is the machine's fault: the job leaves with one
// clear reason and is not held.
func TestExecuteUnusable(t *testing.T) {
	t.Parallel()
	s := newStage(t).sh("exit 0")
	s.plan.Execute = filepath.Join(s.execute, "nothing")
	got := s.run()
	r := got.record
	if !r.Evicted || r.Code != 1024 || r.Held != nil || !strings.Contains(r.Reason, "EXECUTE "+s.plan.Execute) || !strings.Contains(r.Reason, "no such file or directory") {
		t.Errorf("record %+v", r)
	}
}

// A file system that is full holds the job whose files do not fit, with the
// errno, and the starter gets through.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	full := smallFS(t)
	s := newStage(t).sh("exit 0").set("TransferInput", `"big"`)
	s.file("big", strings.Repeat("x", 2<<20), 0o644)
	s.execute, s.plan.Execute = full, full
	got := s.run()
	if h := got.record.Held; h == nil || h.Code != 13 || h.Subcode != int(unix.ENOSPC) || !strings.Contains(h.Reason, "No space left on device") {
		t.Errorf("held %+v", h)
	}
	// a job that fills it fails by itself, and what it wrote so far comes back
	s = newStage(t).sh("head -c 3000000 /dev/zero > big; echo $?")
	s.execute, s.plan.Execute = full, full
	if got := s.run(); !got.record.Status.Ended() || got.record.Held != nil {
		t.Errorf("record %+v", got.record)
	}
}

// smallFS mounts a file system of one MiB.
func smallFS(t *testing.T) string {
	t.Helper()
	dir := openDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestStandby(t *testing.T) {
	t.Parallel()
	l := launcher(t, proc.Guest, 2)
	for range 4 {
		s := newStage(t).sh("echo hi")
		if got := s.follow(s.launch(l), nil); !got.record.Status.Success() || s.read("out") != "hi\n" {
			t.Errorf("record %+v", got.record)
		}
	}
}

// A sandbox that is to be kept stays, with the exit record.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := newStage(t).sh("echo kept > file")
	s.plan.Keep = true
	h := s.launch(launcher(t, proc.Guest, 0))
	var dir string
	for r := range h.Reports() {
		if box, ok := r.What.(protocol.Sandbox); ok {
			dir = filepath.Dir(box.Dir)
		}
	}
	<-h.Exited()
	var rec protocol.ExitRecord
	text, err := os.ReadFile(filepath.Join(dir, "htcondor/exit.record"))
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil || !rec.Status.Success() || rec.Activation != "slot1_1#1" {
		t.Errorf("exit record %s: %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "scratch/file")); string(text) != "kept\n" {
		t.Errorf("scratch/file is %q (%v)", text, err)
	}
}

// await waits until somebody has made path and returns the pid it holds, if
// any.
func await(tb testing.TB, path string) int {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); pause() {
		if text, err := os.ReadFile(path); err == nil {
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			return pid
		}
	}
	tb.Errorf("nobody made %s", path)
	return 0
}

func pause() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) }

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	st, err := proc.ParseStat(text)
	return err == nil && !st.Dead()
}

// hide is what a job does to get away: it starts itself anew in another
// session, twice; "detach" with a cleared environment, "marked" with its own.
// Its first process goes, or stays if the name ends in ".stay".
func hide(role string) {
	kind, path, _ := strings.Cut(role, ":")
	exe, err := os.Executable()
	if err != nil {
		os.Exit(9)
	}
	next := map[string]string{"detach": "detach2", "detach2": "hold", "marked": "marked2", "marked2": "hold"}[kind]
	if next == "" { // hold: deaf, for ever
		if err := os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil || os.Rename(path+".new", path) != nil {
			os.Exit(7)
		}
		for {
			_ = unix.Pause()
		}
	}
	env := []string{roleEnv + "=" + next + ":" + path}
	if strings.HasPrefix(kind, "marked") {
		for _, e := range os.Environ() {
			if !strings.HasPrefix(e, roleEnv+"=") {
				env = append(env, e)
			}
		}
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		os.Exit(9)
	}
	if next == "detach2" || next == "marked2" {
		for {
			if _, err := os.Stat(path); err == nil {
				break
			}
			pause()
		}
		_ = cmd.Wait() // the second one is gone, too, before the first: it is not counted with what is left
		for strings.HasSuffix(path, ".stay") {
			_ = unix.Pause()
		}
	}
	os.Exit(0)
}

// beStartd is a startd in a process of its own: it launches the plan on its
// standard input, writes what the starter says to its standard output, and
// then says whether the hidden process is gone.
func beStartd() {
	s, err := proc.New(proc.Options{Role: proc.Startd})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var plan protocol.Plan
	if err := json.NewDecoder(os.Stdin).Decode(&plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l := launch.NewLauncher(launchSpec(s, 0))
	h, err := l.Launch(context.Background(), &plan, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(word{Kind: "starter", N: h.Proc().PID})
	for r := range h.Reports() {
		w := word{Kind: r.What.Kind()}
		if run, ok := r.What.(protocol.Running); ok {
			w.N = run.Proc.PID
		}
		_ = out.Encode(w)
	}
	<-h.Exited()
	_ = out.Encode(word{Kind: "exited", N: h.Leftovers()})
	os.Exit(0)
}

// word is what a startd in a process of its own says: the kind of a report and the pid
// in it, or what is of its own knowledge.
type word struct {
	Kind string
	N    int
}

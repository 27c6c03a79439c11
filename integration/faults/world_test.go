// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

func TestMain(m *testing.M) { os.Exit(realpool.Main(m)) }

// world is a directory with one Execution Point of ours, which belongs to no
// pool: whoever reads its claim id is its access point.
type world struct {
	t    *testing.T
	dir  string
	at   string   // the interface that it listens on
	net  *network // nil: that of the test
	run  []string // what stands before the program
	env  []string // more of the daemon's environment
	cred *syscall.Credential
	cmd  *exec.Cmd
	gone chan struct{} // closed once cmd was waited for

	claimed claim.ID // of what is left of the slot, for who asks for parts of it
}

const common = `LOCAL_DIR = @DIR@
LOG = $(LOCAL_DIR)/log
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
SPOOL = $(LOCAL_DIR)/spool
COLLECTOR_HOST =
CONDOR_HOST = @AT@
NETWORK_INTERFACE = @AT@
BIND_ALL_INTERFACES = False
USE_SHARED_PORT = False
STARTD = @BIN@/condor_startd
STARTER = @BIN@/condor_starter
STARTD_NAME = here
STARTD_SHOULD_WRITE_CLAIM_ID_FILE = True
STARTD_DETECT_GPUS = False
RunBenchmarks = False
NUM_CPUS = 8
MEMORY = 8192
DISK = 104857600
START = True
SUSPEND = False
PREEMPT = False
POLLING_INTERVAL = 1
UPDATE_INTERVAL = 2
STARTD_DEBUG = D_FULLDEBUG
STARTER_DEBUG = D_FULLDEBUG
`

// newWorld prepares an Execution Point with lines added to its configuration.
func newWorld(t *testing.T, lines string) *world {
	t.Helper()
	realpool.Patient(t)
	w := &world{t: t, at: "127.0.0.1"}
	var err error
	w.dir, err = os.MkdirTemp("", "epfault")
	w.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the daemon left is in %s; its log ends\n%s", w.dir, realpool.Last(w.log(), 40))
			return
		}
		if err := os.RemoveAll(w.dir); err != nil {
			t.Error(err)
		}
	})
	for _, sub := range []string{"log", "execute", "lock", "spool", "submit"} {
		w.must(os.Mkdir(filepath.Join(w.dir, sub), 0o755))
	}
	w.configure(lines)
	if os.Geteuid() == 0 { // jobs of root would run as other users
		u, err := user.Lookup("nobody")
		w.must(err)
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		w.must(err)
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		w.must(err)
		w.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		w.must(filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, int(uid), int(gid)))
		}))
	}
	return w
}

func (w *world) configure(lines string) {
	w.t.Helper()
	text := strings.NewReplacer("@DIR@", w.dir, "@AT@", w.at, "@BIN@", realpool.Programs(w.t)).Replace(common)
	w.must(os.WriteFile(filepath.Join(w.dir, "condor_config"), []byte(text+lines), 0o644))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// begin starts the daemon and returns the claim id of its first slot.
func (w *world) begin() claim.ID {
	w.t.Helper()
	file := filepath.Join(w.dir, "log", ".startd_claim_id.slot1")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	w.cmd = w.command()
	w.must(w.net.do(w.cmd.Start))
	gone, cmd := make(chan struct{}), w.cmd
	w.gone = gone
	go func() { defer close(gone); _ = cmd.Wait() }()
	w.t.Cleanup(func() { w.end(cmd, gone, syscall.SIGQUIT) })
	var id claim.ID
	w.eventually("there is a claim id", realpool.Patience, func() error {
		text, err := os.ReadFile(file)
		if err == nil {
			id, err = claim.ParseID(strings.TrimSpace(string(text)))
		}
		return err
	})
	return id
}

// command is that of the daemon.
func (w *world) command() *exec.Cmd {
	line := append(append([]string{}, w.run...), filepath.Join(realpool.Programs(w.t), "condor_startd"), "-f")
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = w.dir
	cmd.Env = append(append(os.Environ(), w.env...), "CONDOR_CONFIG="+filepath.Join(w.dir, "condor_config"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if len(w.run) == 0 { // else it is what stands before that changes the user
		cmd.SysProcAttr.Credential = w.cred
	}
	return cmd
}

// end ends a daemon with a signal, or by force if that takes too long.
func (w *world) end(cmd *exec.Cmd, gone <-chan struct{}, sig syscall.Signal) {
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(sig)
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case <-gone:
	case <-late.C:
		_ = cmd.Process.Kill()
		<-gone
		w.t.Errorf("the daemon did not end within 20 s of %v", sig)
	}
}

// eventually asks again until there is no error.
func (w *world) eventually(what string, limit time.Duration, ask func() error) {
	w.t.Helper()
	if err := realpool.Until(w.t.Context(), limit, 50*time.Millisecond, func(context.Context) error { return ask() }); err != nil {
		w.t.Fatalf("%s: not within %v: %v", what, limit, err)
	}
}

// log is the daemon's.
func (w *world) log() string { return realpool.ReadLog(w.dir, "StartLog") }

// says waits until the log has a line, and returns how long that took.
func (w *world) says(text string, limit time.Duration) time.Duration {
	w.t.Helper()
	began := time.Now()
	w.eventually(fmt.Sprintf("the log says %q", text), limit, func() error {
		if log := w.log(); !strings.Contains(log, text) {
			return fmt.Errorf("it ends\n%s", realpool.Last(log, 10))
		}
		return nil
	})
	return time.Since(began)
}

// below are the processes that the daemon started, and theirs.
func (w *world) below() []realpool.Process {
	return realpool.Below(realpool.Everything(), w.cmd.Process.Pid)
}

// signal sends a signal to the daemon and to everything below it.
func (w *world) signal(sig syscall.Signal) {
	w.t.Helper()
	for _, p := range append(w.below(), realpool.Process{PID: w.cmd.Process.Pid}) {
		if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			w.t.Fatal(err)
		}
	}
}

// place is where the peers of a world are.
type place struct {
	w      *world
	dial   security.Dialer
	startd *shadowtest.Startd
	files  *shadowtest.Server
}

// peer is a schedd with its shadows in a network, at an address of it, for the
// daemon whose claim id that is.
func (w *world) peer(n *network, at string, id claim.ID) *place {
	w.t.Helper()
	startd, _, _ := strings.Cut(id.Public, "#")
	p := &place{w: w, dial: n.dialer()}
	var l net.Listener
	w.must(n.do(func() (err error) { l, err = net.Listen("tcp4", at+":0"); return err }))
	var err error
	p.files, err = shadowtest.NewServer("<"+l.Addr().String()+">", nil)
	w.must(err)
	w.t.Cleanup(func() { _ = l.Close() })
	ctx := w.t.Context()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p.files.ServeConn(ctx, nc)
		}
	}()
	p.startd, err = shadowtest.NewStartd(startd, p.files.Address(), p.dial, nil)
	w.must(err)
	return p
}

// request claims a part of a slot and returns the claim and what is left.
func (p *place) request(id claim.ID, job *classad.Ad) (part, rest claim.ID) {
	p.w.t.Helper()
	g, err := p.startd.Request(p.w.t.Context(), id, job, true)
	p.w.must(err)
	if len(g.Claims) != 1 {
		p.w.t.Fatalf("%d claims are granted", len(g.Claims))
	}
	return g.Claims[0], g.Rest
}

// job is the ad of one that runs a shell script without quotes.
func (w *world) job(n int, script, lines string) *classad.Ad {
	w.t.Helper()
	ad, err := classad.ParseAd(fmt.Sprintf(`ClusterId = %d
ProcId = 0
GlobalJobId = "here#%d.0#1"
JobUniverse = 5
Cmd = "/bin/sh"
Arguments = "-c '%s'"
Iwd = "%s/submit"
Owner = "nobody"
User = "nobody@here"
TransferExecutable = false
ShouldTransferFiles = "YES"
WhenToTransferOutput = "ON_EXIT"
RequestCpus = 1
RequestMemory = 64
RequestDisk = 1024
JobStatus = 2
%s`, n, n, script, w.dir, lines), classad.Old)
	w.must(err)
	return ad
}

// shadow is the shadow of a job under a claim; its files are in submit.
func (p *place) shadow(id claim.ID, job *classad.Ad, f shadowtest.Files) *shadowtest.Shadow {
	p.w.t.Helper()
	root, err := os.OpenRoot(filepath.Join(p.w.dir, "submit"))
	p.w.must(err)
	p.w.t.Cleanup(func() { _ = root.Close() })
	s := shadowtest.New(shadowtest.Job{Ad: job, Claim: id, Root: root})
	p.w.must(p.files.Add(s, f))
	return s
}

// end is how a job ended.
type end struct {
	shadowtest.End
	err error
}

// run runs the job of a shadow beside the test.
func (p *place) run(s *shadowtest.Shadow) <-chan end {
	done := make(chan end, 1)
	ctx := p.w.t.Context()
	go func() {
		e, err := p.startd.RunJob(ctx, s)
		done <- end{e, err}
	}()
	return done
}

// done waits until a job has exited by itself.
func (w *world) done(what string, ended <-chan end, limit time.Duration) {
	w.t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case e := <-ended:
		if e.err != nil || e.Exit == nil {
			w.t.Fatalf("%s: %+v, %v", what, e.End, e.err)
		}
	case <-late.C:
		w.t.Fatalf("%s: not done within %v", what, limit)
	}
}

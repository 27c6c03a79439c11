// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything in a real pool may take.
const patience = 60 * time.Second

// condor is a pool of real daemons.
type condor struct {
	t       *testing.T
	prefix  string
	dir     string
	port    int
	config  string // the file
	lines   string // added to it
	cred    *syscall.Credential
	running map[string]*exec.Cmd
}

// newCondor makes the directory and configuration of a pool, with lines added
// to the configuration. Nothing runs yet.
func newCondor(t *testing.T, lines string) *condor {
	t.Helper()
	path, err := exec.LookPath("condor_collector")
	if err != nil {
		t.Skip("HTCondor is not here: condor_collector is not in PATH")
	}
	if testing.Short() {
		t.Skip("real daemons take their time")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its name may be too long for a socket.
	dir, err := os.MkdirTemp("", "eppool")
	if err != nil {
		t.Fatal(err)
	}
	c := &condor{t: t, prefix: filepath.Dir(filepath.Dir(path)), dir: dir, port: freePort(t), lines: lines, running: make(map[string]*exec.Cmd)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the daemons left is in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	template, err := os.ReadFile("testdata/condor_config.in")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("@PREFIX@", c.prefix, "@DIR@", dir, "@PORT@", strconv.Itoa(c.port)).Replace(string(template) + lines)
	c.config = filepath.Join(dir, "condor_config")
	c.must(os.WriteFile(c.config, []byte(text), 0o644))
	for _, sub := range []string{"log", "spool", "execute", "lock", "run", "passwords.d", "tokens.d", "user-tokens.d", "ep-tokens.d", "ep-passwords.d"} {
		mode := os.FileMode(0o755)
		if strings.HasSuffix(sub, "s.d") {
			mode = 0o700
		}
		c.must(os.Mkdir(filepath.Join(dir, sub), mode))
	}
	c.must(os.Chmod(dir, 0o755))
	c.lowerRights()
	return c
}

func (c *condor) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// lowerRights finds the user to run the daemons as, and gives it the folder.
func (c *condor) lowerRights() {
	c.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	name := os.Getenv("EXECPOINT_TEST_USER")
	if name == "" {
		name = "nobody"
	}
	u, err := user.Lookup(name)
	c.must(err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	c.must(err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	c.must(err)
	c.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	c.must(filepath.WalkDir(c.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(uid), int(gid)))
	}))
}

// freePort is below the ports that the system gives out by itself: nobody gets
// it before it is used.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		return l.Addr().(*net.TCPAddr).Port
	}
	t.Fatal("no port is free")
	return 0
}

func (c *condor) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	lib := filepath.Join(c.prefix, "lib")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG="+c.config, "HOME="+c.dir,
		"PATH="+filepath.Join(c.prefix, "bin")+":"+filepath.Join(c.prefix, "sbin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+lib+":"+filepath.Join(lib, "condor"))
	cmd.Dir = c.dir
	// A test that is killed takes them along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start runs a daemon until stop or the end of the test.
func (c *condor) start(daemon string) {
	c.t.Helper()
	args := []string{"-f"}
	if daemon == "condor_collector" && !strings.Contains(c.lines, "COLLECTOR_HOST = 127.0.0.1:0") {
		args = append(args, "-p", strconv.Itoa(c.port)) // which condor_master would say
	}
	cmd := c.command(context.Background(), daemon, args...)
	c.must(cmd.Start())
	c.running[daemon] = cmd
	c.t.Cleanup(func() { c.stop(daemon, syscall.SIGQUIT) })
}

// stop ends a daemon and waits for it.
func (c *condor) stop(daemon string, sig syscall.Signal) {
	cmd, ok := c.running[daemon]
	if !ok {
		return
	}
	delete(c.running, daemon)
	_ = cmd.Process.Signal(sig)
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait()
}

// run runs a tool and returns what it printed.
func (c *condor) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := c.command(ctx, name, args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), bad.String())
	}
	return out.String(), nil
}

// tool runs a tool that must succeed.
func (c *condor) tool(name string, args ...string) string {
	c.t.Helper()
	out, err := c.run(name, args...)
	c.must(err)
	return out
}

// fullHost is what the real daemons take for the name of this machine.
func (c *condor) fullHost() string {
	c.t.Helper()
	return strings.TrimSpace(c.tool("condor_config_val", "FULL_HOSTNAME"))
}

// log returns a daemon's log.
func (c *condor) log(name string) string {
	b, err := os.ReadFile(filepath.Join(c.dir, "log", name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// begin starts the collector and what else is named, and waits until the
// collector answers.
func (c *condor) begin(others ...string) {
	c.t.Helper()
	c.start("condor_collector")
	c.answers()
	for _, d := range others {
		c.start(d)
	}
}

// answers waits until the collector does.
func (c *condor) answers() {
	c.t.Helper()
	eventually(c.t, "the collector answers", func() error {
		_, err := c.run("condor_status", "-collector", "-af", "Name")
		return err
	})
}

// proxy stands between us and a port of the loopback interface.
type proxy struct {
	port  int
	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, to int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(to)))
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			pass := func(from, to net.Conn) {
				_, _ = io.Copy(to, from)
				_ = from.Close()
				_ = to.Close()
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	return p
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, nc := range p.conns {
		_ = nc.Close()
	}
	p.conns = nil
}

// eventually asks again and again until there is no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		<-tick.C
	}
}

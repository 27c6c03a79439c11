// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// patience is how long anything in a real pool may take.
const patience = realpool.Patience

// condor is a pool of real daemons, by their programs' names.
type condor struct {
	*realpool.Pool
	running map[string]*realpool.Daemon
}

// newCondor makes the directory and configuration of a pool, with lines added
// to the configuration. Nothing runs yet.
func newCondor(t *testing.T, lines string) *condor {
	t.Helper()
	realpool.Patient(t)
	template, err := os.ReadFile("testdata/condor_config.in")
	if err != nil {
		t.Fatal(err)
	}
	c := &condor{Pool: realpool.Make(t, string(template)+lines), running: make(map[string]*realpool.Daemon)}
	for _, sub := range []string{"user-tokens.d", "ep-tokens.d", "ep-passwords.d"} {
		c.Mkdir(filepath.Join(c.Dir, sub))
		c.Must(os.Chmod(filepath.Join(c.Dir, sub), 0o700))
	}
	return c
}

// start runs a daemon until stop or the end of the test.
func (c *condor) start(daemon string) {
	c.TB.Helper()
	c.running[daemon] = c.Start(daemon)
}

// stop ends a daemon and waits for it.
func (c *condor) stop(daemon string, sig syscall.Signal) {
	if d, ok := c.running[daemon]; ok {
		delete(c.running, daemon)
		d.Stop(sig, 20*time.Second)
	}
}

// run runs a tool and returns what it printed.
func (c *condor) run(name string, args ...string) (string, error) {
	return c.Run(context.Background(), name, args...)
}

// begin starts the collector and what else is named, and waits until the
// collector answers.
func (c *condor) begin(others ...string) {
	c.TB.Helper()
	c.running["condor_collector"] = c.Collector()
	for _, d := range others {
		c.start(d)
	}
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
func eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	if err := realpool.Until(t.Context(), patience, 200*time.Millisecond, func(context.Context) error { return ask() }); err != nil {
		t.Fatalf("%s: not within %v: %v", what, patience, err)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// Daemon is a process that the pool started. It ends with the test, unless
// Stop ended it before.
type Daemon struct {
	pool    *Pool
	program string
	args    []string
	config  string
	cmd     *exec.Cmd     // nil while it does not run
	ended   chan struct{} // closed once cmd was waited for
	starts  int
	// Env is added to its environment.
	Env []string
	// AsRoot leaves it the rights of the test, where those are root's: the other
	// daemons have those of the pool's user.
	AsRoot bool
}

// Start starts a daemon with the pool's configuration.
func (p *Pool) Start(program string, args ...string) *Daemon {
	p.TB.Helper()
	d := p.NewDaemon(p.Config, program, args...)
	d.Start()
	return d
}

// NewDaemon is a daemon with a configuration that may be its own. It does not
// run yet.
func (p *Pool) NewDaemon(config, program string, args ...string) *Daemon {
	p.TB.Helper()
	d := &Daemon{pool: p, program: program, args: append([]string{"-f"}, args...), config: config}
	p.TB.Cleanup(func() { d.Stop(syscall.SIGQUIT, 20*time.Second) })
	return d
}

// Start starts it, for the first time or again after it was stopped.
func (d *Daemon) Start() {
	d.pool.TB.Helper()
	// It is ended by a signal of the test's choice, not by a context.
	d.cmd = d.pool.Command(context.Background(), d.program, d.args...)
	d.cmd.Env = append(append(d.cmd.Env, "CONDOR_CONFIG="+d.config), d.Env...)
	if d.AsRoot {
		d.cmd.SysProcAttr.Credential = nil
	}
	d.pool.Must(bound.Start(d.cmd)) // a test that is killed takes it along
	d.starts++
	ended, cmd := make(chan struct{}), d.cmd
	d.ended = ended
	go func() { defer close(ended); _ = cmd.Wait() }()
}

// Starts says how often it was started.
func (d *Daemon) Starts() int { return d.starts }

// PID is that of the running process, 0 if none runs.
func (d *Daemon) PID() int {
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// Ended says whether it is gone, though Stop did not end it.
func (d *Daemon) Ended() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// Signal sends it a signal. Once Ended is true it may be started again.
func (d *Daemon) Signal(sig syscall.Signal) {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(sig)
	}
}

// Stop signals it and waits until it is gone. One that takes longer than the
// limit is killed; then Stop returns false.
func (d *Daemon) Stop(sig syscall.Signal, limit time.Duration) bool {
	d.Signal(sig)
	return d.Wait(limit)
}

// Wait waits until it is gone. One that takes longer than the limit is killed;
// then Wait returns false.
func (d *Daemon) Wait(limit time.Duration) bool {
	if d.cmd == nil {
		return true
	}
	cmd := d.cmd
	d.cmd = nil
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-d.ended:
		return true
	case <-late.C:
		_ = cmd.Process.Kill()
		<-d.ended
		return false
	}
}

// EP is an Execution Point in the pool, in a directory of its own.
type EP struct {
	*Daemon
	Name string // its slots are slot1@Name@host, and Rig in their ads is Name
	Dir  string
	cpus int
}

// Original, as the kind of an EP, is the one of HTCondor; Ours is this one.
const (
	Original = "original"
	Ours     = "ours"
)

// NewEP makes an Execution Point of a kind with one partitionable slot, which
// Begin starts. Lines are added to its configuration.
func (p *Pool) NewEP(kind string, cpus int, lines string) *EP {
	p.TB.Helper()
	return p.NewNamedEP(kind, kind, cpus, lines)
}

// NewNamedEP is NewEP for one of several of a kind in a pool.
func (p *Pool) NewNamedEP(kind, name string, cpus int, lines string) *EP {
	p.TB.Helper()
	e := &EP{Name: name, Dir: filepath.Join(p.Dir, name), cpus: cpus}
	p.Mkdir(e.Dir)
	p.folders(e.Dir)
	text := fmt.Sprintf("include : %s\nLOCAL_DIR = %s\nSTARTD_NAME = %s\nRig = %q\nNUM_CPUS = %d\nMEMORY = 16384\nDISK = 1048576000\n"+
		"SLOT_TYPE_1 = 100%%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_1 = 1\n", p.Config, e.Dir, name, name, cpus)
	program := "condor_startd"
	switch kind {
	case Original:
	case Ours:
		program = filepath.Join(e.Dir, "condor_startd")
		text += "STARTD = " + program + "\nSTARTER = " + filepath.Join(e.Dir, "condor_starter") + "\n"
		p.Install(e.Dir)
	default:
		p.TB.Fatalf("no such kind of an Execution Point: %q; want %q or %q", kind, Original, Ours)
	}
	config := filepath.Join(e.Dir, "condor_config")
	p.Must(os.WriteFile(config, []byte(text+lines), 0o644))
	e.Daemon = &Daemon{pool: p, program: program, args: []string{"-f"}, config: config}
	return e
}

// Begin starts it for the first time and waits until it is shown.
func (e *EP) Begin() {
	e.pool.TB.Helper()
	e.Start()
	e.pool.TB.Cleanup(func() { e.Stop(syscall.SIGQUIT, 20*time.Second) })
	e.Shown()
}

// Shown waits until this life of it is in the collector.
func (e *EP) Shown() {
	e.pool.TB.Helper()
	e.pool.Eventually(e.Name+" is shown", Patience, func(ctx context.Context) error {
		if e.Ended() {
			e.pool.TB.Fatalf("%s ended by itself; its log:\n%s", e.Name, Last(e.Log("StartLog"), 30))
		}
		out, err := e.pool.Run(ctx, "condor_status", "-direct", e.Host(), "-constraint", "PartitionableSlot", "-af", "Name")
		if err == nil && !strings.Contains(out, "slot1@") {
			err = fmt.Errorf("condor_status shows %q", out)
		}
		return err
	})
}

// Host is the name of the daemon.
func (e *EP) Host() string {
	e.pool.TB.Helper()
	return e.Name + "@" + e.pool.FullHost()
}

// Idle says why not everything is free: it asks the daemon itself.
func (e *EP) Idle(ctx context.Context) error {
	out, err := e.pool.Run(ctx, "condor_status", "-direct", e.Host(), "-af", "Name", "Cpus", "State")
	if err != nil {
		return err
	}
	words := strings.Fields(out)
	if len(words) != 3 || words[1] != fmt.Sprint(e.cpus) || words[2] != "Unclaimed" {
		return fmt.Errorf("its slots are %q", out)
	}
	return nil
}

// Scratch is what is in EXECUTE, but for the lock by which a startd keeps others
// from it.
func (e *EP) Scratch() []string {
	e.pool.TB.Helper()
	list, err := os.ReadDir(filepath.Join(e.Dir, "execute"))
	e.pool.Must(err)
	var names []string
	for _, one := range list {
		if one.Name() != ".execpoint.lock" {
			names = append(names, one.Name())
		}
	}
	return names
}

// Log returns a log of the EP, or why there is none.
func (e *EP) Log(name string) string { return ReadLog(e.Dir, name) }

// Last returns the last n lines of a text.
func Last(text string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

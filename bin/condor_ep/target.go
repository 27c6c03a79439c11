// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// target says which Execution Points of this machine are meant: those of one
// configuration, or all that this user can find.
type target struct {
	config string // -config
	local  string // -local-name
	pid    int    // -pid, 0 for any
	name   string // -name: one of a pool
	pool   string // -pool
}

// flags defines the options that say which.
func (t *target) flags(fs *commands.Flags) {
	fs.StringVar(&t.config, "config", "", "")
	fs.StringVar(&t.local, "local-name", "", "")
	fs.StringVar(&t.name, "name", "", "")
	fs.StringVar(&t.pool, "pool", "", "")
}

// found are the Execution Points that can be asked.
type found struct {
	sockets []string
	// named are those of the configuration that CONDOR_CONFIG names: whoever sets
	// it means the daemon of that one.
	named []string
	ended []run.Daemon // daemons of this user that do not run any more
}

// find looks for Execution Points: the runs and daemons that this user's records
// name, and the daemons whose control socket is in RUN of the configuration. That
// is the one of -config, which then stands alone, or that of this machine.
func (t target) find() (found, error) {
	var f found
	p, err := thishost.New()
	if err != nil {
		return f, err
	}
	if t.config != "" {
		inv, err := thisMachine()
		if err != nil {
			return f, err
		}
		snap, err := loadConfig(t.config, t.local, os.TempDir(), inv)
		if err != nil {
			return f, err
		}
		f.sockets = run.ControlSockets(snap)
		f.ended = []run.Daemon{{Log: snap.String("STARTD_LOG")}}
		return f, nil
	}
	dirs, owners, err := recordedRuns(p)
	if err != nil {
		return f, err
	}
	for i, d := range dirs {
		if !owners[i].Proc.IsZero() && p.Census.Alive(owners[i].Proc) {
			f.sockets = append(f.sockets, d.Socket())
		}
	}
	daemons, err := recordedDaemons(p)
	if err != nil {
		return f, err
	}
	for _, d := range daemons {
		if d.Socket != "" && p.Census.Alive(d.Proc) {
			f.sockets = append(f.sockets, d.Socket)
		} else {
			f.ended = append(f.ended, d)
		}
	}
	if snap := machineConfig(t.local); snap != nil {
		here := run.ControlSockets(snap)
		if os.Getenv(config.RootKnob) != "" {
			f.named = here
		}
		for _, path := range here {
			if !slices.Contains(f.sockets, path) {
				f.sockets = append(f.sockets, path)
			}
		}
	}
	return f, nil
}

// recordedDaemons lists the daemons of this user that are recorded here.
func recordedDaemons(p *thishost.Platform) ([]run.Daemon, error) {
	base, err := p.RunBase()
	if err != nil {
		return nil, err
	}
	return run.Daemons(p.Private(), base)
}

// machineConfig is the configuration of this machine, nil if there is none or it
// is of no use: whoever asks about what runs does not ask about that.
func machineConfig(localName string) *config.Snapshot {
	root, err := system.RootFile("")
	if err != nil {
		return nil
	}
	inv, err := thisMachine()
	if err != nil {
		return nil
	}
	snap, err := loadConfig(root, localName, os.TempDir(), inv)
	if err != nil {
		return nil
	}
	return snap
}

// isFar reports whether one in a pool is meant.
func (t target) isFar() bool { return t.name != "" || t.pool != "" }

// askFar puts a request to the one in a pool that -name names.
func (t target) askFar(req observe.Request) (observe.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), farTimeout)
	defer cancel()
	far, err := t.reach(ctx)
	if err != nil {
		return observe.Response{}, err
	}
	resp, err := far.ask(ctx, req)
	return resp, sentence(err)
}

// farTimeout bounds how long one in a pool may take to be found and to answer.
const farTimeout = 60 * time.Second

// answer is what one Execution Point says.
type answer struct {
	socket string
	resp   observe.Response
	err    error // its refusal
}

// ask puts a request to each of the Execution Points that are found.
func (f found) ask(req observe.Request) []answer {
	var all []answer
	for _, socket := range f.sockets {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		resp, err := observe.Call(ctx, socket, req)
		cancel()
		switch {
		case errs.Is(err, errs.NotFound) && !errors.Is(err, fs.ErrPermission): // it is just starting or ending
		case err != nil:
			all = append(all, answer{socket, resp, sentence(err)})
		default:
			all = append(all, answer{socket, resp, nil})
		}
	}
	return all
}

// one is the socket of the one Execution Point that is meant: what changes
// something is never told to several. Without one the status to exit with.
func (f found) one(who string, pid int, stderr io.Writer) (socket string, status int) {
	if pid == 0 && len(f.sockets) == 1 {
		return f.sockets[0], exitOK
	}
	var pids []int
	var named []string
	for _, a := range f.ask(observe.Request{Op: observe.OpStatus}) {
		if a.err == nil && a.resp.Status != nil {
			if a.resp.Status.PID == pid {
				return a.socket, exitOK
			}
			socket, pids = a.socket, append(pids, a.resp.Status.PID)
			if slices.Contains(f.named, a.socket) {
				named = append(named, a.socket)
			}
		}
	}
	switch {
	case len(pids) == 0:
		f.nothing(stderr)
		return "", exitSomeFailed
	case pid != 0:
		fmt.Fprintf(stderr, "%s: no Execution Point of this user has pid %d; there are %v\n", who, pid, pids)
		return "", exitSomeFailed
	case len(pids) == 1:
		return socket, exitOK
	case len(named) == 1:
		return named[0], exitOK
	}
	fmt.Fprintf(stderr, "%s: several Execution Points of this user run here; -pid or CONDOR_CONFIG says which: %v\n", who, pids)
	return "", exitUsage
}

// nothing says that nothing runs, and what the last ones said before they ended.
func (f found) nothing(stderr io.Writer) {
	fmt.Fprintln(stderr, "no Execution Point of this user is running here")
	for _, d := range f.ended {
		if line := lastLine(d.Log); line != "" {
			fmt.Fprintf(stderr, "the log of one that ended, %s, ends with:\n  %s\n", d.Log, line)
		}
	}
}

// mostLastLine bounds the last line of a log, in bytes.
const mostLastLine = 4096

// lastLine is the last line of a file, "" if there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	} else if _, err := f.Seek(-min(info.Size(), mostLastLine), io.SeekEnd); err != nil {
		return ""
	}
	last := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		if text := strings.TrimSpace(s.Text()); text != "" {
			last = text
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, last)
}

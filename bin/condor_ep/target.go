// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/tool/here"
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

// check says what options make no sense together.
func (t target) check() error {
	if t.pid != 0 && t.isFar() {
		return errors.New("-pid names an Execution Point of this machine, -name and -pool one of a pool: want one of them")
	}
	return nil
}

// find looks for the Execution Points that are meant.
func (t target) find() (here.Found, error) {
	p, err := thishost.New()
	if err != nil {
		return here.Found{}, err
	}
	if t.config != "" {
		inv, err := thisMachine()
		if err != nil {
			return here.Found{}, err
		}
		snap, err := loadConfig(t.config, t.local, os.TempDir(), inv)
		if err != nil {
			return here.Found{}, err
		}
		return here.Of(snap), nil
	}
	return t.machine(p).Find()
}

// machine is this one, with what this user has running.
func (t target) machine(p *thishost.Platform) here.Machine {
	return here.Machine{
		Runs:    func() ([]run.Dir, []run.Owner, error) { return recordedRuns(p) },
		Daemons: func() ([]run.Daemon, error) { return recordedDaemons(p) },
		Alive:   p.Census.Alive,
		Config:  func() *config.Snapshot { return machineConfig(t.local) },
		Named:   os.Getenv(config.RootKnob) != "",
	}
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
// is of no use.
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

// farTimeout bounds how long one in a pool may take to be found and to answer.
const farTimeout = 60 * time.Second

// askFar puts a request to the one in a pool that -name names.
func (t target) askFar(req observe.Request) (observe.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), farTimeout)
	defer cancel()
	far, err := t.reach(ctx)
	if err != nil {
		return observe.Response{}, err
	}
	resp, err := far.ask(ctx, req)
	return resp, here.Sentence(err)
}

// askAll puts a request to every Execution Point that is meant.
func (t target) askAll(req observe.Request) (f here.Found, answers []observe.Response, refusals []error, err error) {
	if t.isFar() {
		resp, err := t.askFar(req)
		if err != nil {
			return f, nil, []error{err}, nil
		}
		return f, []observe.Response{resp}, nil, nil
	}
	if f, err = t.find(); err != nil {
		return f, nil, nil, err
	}
	for _, a := range f.Ask(context.Background(), req) {
		if a.Err != nil {
			refusals = append(refusals, a.Err)
		} else {
			answers = append(answers, a.Said)
		}
	}
	return f, answers, refusals, nil
}

// askOne puts a request to the one Execution Point that is meant. The errors are those
// of here.Found.One, of what could not be read, and the answer's.
func (t target) askOne(req observe.Request) (f here.Found, resp observe.Response, err error) {
	if t.isFar() {
		resp, err = t.askFar(req)
		return f, resp, err
	}
	if f, err = t.find(); err != nil {
		return f, resp, &unreadable{err}
	}
	socket, err := f.One(context.Background(), t.pid)
	if err != nil {
		return f, resp, &unclear{err}
	}
	resp, err = here.Call(context.Background(), socket, req)
	return f, resp, err
}

// unreadable is what keeps Execution Points from being looked for.
type unreadable struct{ error }

func (e *unreadable) Unwrap() error { return e.error }

// unclear is why it is not known which one is meant.
type unclear struct{ error }

func (e *unclear) Unwrap() error { return e.error }

// several reports whether more than one may be meant.
func several(err error) bool {
	var e *here.Several
	return errors.As(err, &e)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"os"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/detect"
	"github.com/execpoint/execpoint/platform/linux/idle"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// platform is the operating system as this tool uses it.
type platform struct {
	self    string // this program, to be executed again as a starter
	root    linux.Root
	census  host.Census
	spawner host.Spawner
}

// newPlatform is for a program that is an Execution Point, newVisitor for one
// that only looks at the machine.
func newPlatform() (*platform, error) { return platformOf(proc.Startd) }

func newVisitor() (*platform, error) { return platformOf(proc.Guest) }

func platformOf(role proc.Role) (*platform, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := proc.New(proc.Options{Role: role})
	if err != nil {
		return nil, err
	}
	return &platform{self: self, root: linux.DefaultRoot(), census: s, spawner: s}, nil
}

// scanners detect the machine.
func (p *platform) scanners() []machine.Scanner {
	return append(detect.Scanners(detect.Host(p.root)), machine.EnvScanner(os.Environ()))
}

// volume looks at the file systems that jobs work on. What is wrong with a
// SLOT<N>_EXECUTE is said by the scanner of the configuration.
func (p *platform) volume(execute string, snap *config.Snapshot) machine.Scanner {
	slots, _ := machine.SlotExecutes(snap)
	return detect.Volume(detect.Host(p.root), execute, slots...)
}

// host gives a run what it needs of the system.
func (p *platform) host(execute string, snap *config.Snapshot) (run.Host, error) {
	c := linux.Clock()
	watched, err := idle.OptionsFrom(snap)
	if err != nil {
		return run.Host{}, err
	}
	watch := idle.New(p.root, watched)
	again, err := machine.RecomputesDisk(snap)
	if err != nil {
		return run.Host{}, err
	}
	if !again {
		execute = "" // what was measured at the start holds
	}
	var others func(string) (*host.Identity, error) // only root can act for others
	if os.Geteuid() == 0 {
		others = account.Lookup
	}
	return run.Host{
		Clock: c, Sampler: detect.NewSampler(detect.Host(p.root), c, watch, execute), Spawner: p.spawner, Census: p.census,
		// Read never fails: it ends the program instead.
		Rand:   func(b []byte) { _, _ = rand.Read(b) },
		Hangup: int(syscall.SIGHUP), Terminate: int(syscall.SIGTERM), Peer: linux.PeerUser, Account: others,
	}, nil
}

// hooks runs the programs of an owner in dir.
func (p *platform) hooks(dir string) *hook.Runner {
	return &hook.Runner{
		Spawner: p.spawner, Census: p.census, Env: os.Environ(), Dir: dir,
		Hangup: int(syscall.SIGHUP), Terminate: int(syscall.SIGTERM), Grace: time.Second,
	}
}

// userNamespace is the number of the user namespace this program is in.
func (p *platform) userNamespace() uint64 { return detect.UserNamespace(p.root) }

// sweep clears one EXECUTE directory of what dead starters left.
func (p *platform) sweep(execute string) error {
	_, err := sandbox.Sweep(execute, p.census)
	return err
}

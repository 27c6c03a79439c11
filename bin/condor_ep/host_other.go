// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"runtime"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
)

// platform is the operating system as this tool uses it. There is none here:
// newPlatform and newVisitor refuse, so the methods are never reached.
type platform struct {
	self   string
	census host.Census
}

// errNoPlatform says what is missing and where it is not.
var errNoPlatform = errs.E("condor_ep", errs.Unsupported, runtime.GOOS, errors.New("jobs can be run on Linux only"))

func newPlatform() (*platform, error) { return nil, errNoPlatform }

func newVisitor() (*platform, error) { return nil, errNoPlatform }

func (p *platform) scanners() []machine.Scanner { return nil }

func (p *platform) volume(string, *config.Snapshot) machine.Scanner { return nil }

func (p *platform) host(string, *config.Snapshot) (run.Host, error) { return run.Host{}, errNoPlatform }

func (p *platform) hooks(string) *hook.Runner { return nil }

func (p *platform) userNamespace() uint64 { return 0 }

func (p *platform) sweep(string) error { return errNoPlatform }

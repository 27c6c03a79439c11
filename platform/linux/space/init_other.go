// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package space

import (
	"errors"
	"runtime"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// InitName is what an Init calls itself, as HTCondor's does.
const InitName = "condor_pid_ns_init"

// Init is the first process of a PID namespace.
type Init struct{ PID, PidFD int }

// StartInit fails: there is no program for this processor.
func StartInit(host.Space, *host.Identity, []string) (*Init, error) {
	return nil, errs.E("space.StartInit", errs.Unsupported, runtime.GOARCH, errors.New("there is no init for PID namespaces on this processor"))
}

// TryUsers fails: a starter could not make all of a space.
func TryUsers() error {
	return errs.E("space.TryUsers", errs.Unsupported, runtime.GOARCH, errors.New("there is no init for PID namespaces on this processor"))
}

// Ready is never called.
func (*Init) Ready() bool { return false }

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package asstarter

import (
	"errors"
	"io"
	"os"
	"runtime"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter"
)

func newHost() (starter.Host, io.Reader, *os.File, error) {
	return starter.Host{}, nil, nil, errs.E("asstarter.newHost", errs.Unsupported, runtime.GOOS, errors.New("jobs can be run on Linux only"))
}

// Credentials is never reached.
func Credentials() authn.System { return authn.System{} }

// systemLog is never reached.
func systemLog() (io.Writer, error) {
	return nil, errs.E("asstarter.systemLog", errs.Unsupported, runtime.GOOS, errors.New("there is no system log that a starter can write"))
}

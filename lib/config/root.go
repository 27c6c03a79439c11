// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"strings"
)

// Places is where a root configuration file may be looked for.
type Places struct {
	// Env is the process environment as "K=V"; CONDOR_CONFIG counts, and alone
	// if it is there.
	Env []string

	// Tilde is the home directory of the account condor, "" if there is none.
	Tilde string

	// Windows looks in the registry instead of the usual directories.
	Windows bool

	// Registry returns a text value of HKEY_LOCAL_MACHINE\Software\Condor.
	// Nil is a registry without that key.
	Registry func(name string) (string, bool)

	// Open tells whether path can be opened for reading, and whether it is a
	// directory. An error that is fs.ErrNotExist means that there is nothing.
	Open func(path string) (directory bool, err error)
}

// RootKnob is the variable, and on Windows the registry value, that names the
// root configuration file.
const RootKnob = "CONDOR_CONFIG"

// FindRoot returns the root to be put into Options.Root: what CONDOR_CONFIG
// says, or else the first of /etc/condor/condor_config,
// /usr/local/etc/condor_config and ~condor/condor_config, or on Windows what
// the registry says. It is "" when CONDOR_CONFIG is ONLY_ENV: then only the
// environment counts. looked are the places tried, in order. The error is a
// *Problem of class RootMissing.
func FindRoot(p Places) (root string, looked []string, err error) {
	missing := func(file, message, want string) error {
		return &Problem{File: file, Knob: RootKnob, Class: RootMissing, Message: message, Want: want}
	}
	for _, kv := range p.Env {
		name, value, _ := strings.Cut(kv, "=")
		if name != RootKnob && (!p.Windows || !equalFold(name, RootKnob)) {
			continue
		}
		if equalFold(value, "ONLY_ENV") {
			return "", []string{value}, nil
		}
		looked = []string{value}
		directory, err := p.Open(value)
		switch {
		case err == nil && directory:
			return "", looked, missing(value, "the root configuration is a directory", "a file")
		case err == nil:
			return value, looked, nil
		case errors.Is(err, fs.ErrNotExist) && isPiped(value) && strings.HasSuffix(trimRight(value), "|"):
			return value, looked, nil
		case errors.Is(err, fs.ErrNotExist):
			return "", looked, missing(value, "the root configuration does not exist", "a file, a command ending in |, or ONLY_ENV")
		}
		return "", looked, missing(value, "cannot read the root configuration: "+err.Error(), "a readable file")
	}

	var tried []string
	if p.Windows {
		if p.Registry != nil {
			if value, ok := p.Registry(RootKnob); ok && value != "" {
				tried = append(tried, value)
			}
		}
	} else {
		tried = []string{"/etc/condor/condor_config", "/usr/local/etc/condor_config"}
		if p.Tilde != "" {
			tried = append(tried, strings.TrimSuffix(p.Tilde, "/")+"/condor_config")
		}
	}
	for _, path := range tried {
		looked = append(looked, path)
		if p.Windows && isPiped(path) && strings.HasSuffix(trimRight(path), "|") {
			return path, looked, nil
		}
		if directory, err := p.Open(path); err == nil && !directory {
			return path, looked, nil
		}
	}
	want := RootKnob + " naming a file, or a file condor_config in /etc/condor, /usr/local/etc or ~condor"
	if p.Windows {
		want = RootKnob + ` naming a file, in the environment or in the registry at HKEY_LOCAL_MACHINE\Software\Condor`
	}
	return "", looked, missing("", "there is no root configuration", want)
}

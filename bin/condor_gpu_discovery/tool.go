// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
)

// system is what the tool needs of the machine.
type system struct {
	stdout, stderr io.Writer
	steps          io.Writer // is told every step, one a line
	getenv         func(name string) string
	unsetenv       func(name string) error
	now            func() time.Time
	libraries      func(warn, note func(message string)) gpus.Libraries
}

// run is one run of the tool.
type run struct {
	system
	*options
}

// tool runs the command line and returns the exit status.
func tool(args []string, sys system) int {
	o, err := parse(args)
	r := &run{sys, o}
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(r.stderr, wrong.message)
		if !wrong.brief {
			fmt.Fprint(r.stderr, usage())
		}
		return exitFailed
	case o.help:
		fmt.Fprint(r.stdout, usage())
		return exitOK
	case o.version:
		return commands.PrintVersion(r.stdout)
	}
	found, err := r.find()
	if err != nil {
		r.warn(err.Error())
		fmt.Fprintf(r.stdout, "condor_gpu_discovery_error = %q\n", "the libraries of the driver cannot say which devices there are")
		return exitFailed
	}
	if _, err := io.WriteString(r.stdout, gpu.Text(found, o.show)); err != nil {
		fmt.Fprintln(r.stderr, "the list of devices cannot be written: "+err.Error())
		return exitFailed
	}
	return exitOK
}

// warn prints what a person should know. In the syntax of configuration files
// it is a comment of the output.
func (r *run) warn(message string) {
	if r.show.Config {
		fmt.Fprintln(r.stdout, "# "+message)
		return
	}
	fmt.Fprintln(r.stderr, message)
}

// note tells a step, and prints it for those who asked for every step.
func (r *run) note(message string) {
	fmt.Fprintln(r.steps, message)
	switch {
	case !r.diagnostic:
	case r.show.Config:
		fmt.Fprintln(r.stdout, "# diag: "+message)
	default:
		fmt.Fprintln(r.stdout, "diag: "+message)
	}
}

// Variables that libraries read to leave out devices.
var (
	cudaVariables = [...]string{"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}
	hipVariables  = [...]string{"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}
)

// find asks for the devices, and sets which of them may be shown.
//
// A library that reads a list of devices gives those that it shows new
// numbers. The startd wants the numbers of the machine, so the libraries do not
// see the lists, unless that is asked for.
func (r *run) find() (gpu.Found, error) {
	var cudaLists, hipLists []string
	for _, name := range cudaVariables {
		cudaLists = append(cudaLists, r.getenv(name))
	}
	for _, name := range hipVariables {
		hipLists = append(hipLists, r.getenv(name))
	}
	if !r.dirty {
		for _, name := range append(cudaVariables[:], hipVariables[:]...) {
			if err := r.unsetenv(name); err != nil {
				return gpu.Found{}, fmt.Errorf("the variable %s cannot be removed: %w", name, err)
			}
		}
	}
	if len(r.simulate) > 0 {
		r.allow(cudaLists, nil)
		found, err := gpu.Simulate(r.simulate, uint32(r.now().Unix()%10))
		return found, err
	}
	found, hip, err := gpus.Ask(r.libraries(r.warn, r.note), r.choice())
	if r.verbose && err == nil {
		for i, d := range found.Devices {
			r.warn(fmt.Sprintf("%d: %s", i, strings.TrimSpace(d.Name+" "+d.UUID)))
		}
	}
	if !hip {
		hipLists = nil
	}
	r.allow(cudaLists, hipLists)
	return found, err
}

// allow sets which devices may be shown.
func (r *run) allow(lists ...[]string) {
	allow := &r.show.Allow
	for _, some := range lists {
		for _, list := range some {
			allow.Add(list)
		}
	}
	allow.Renumbered = r.dirty && allow.Numbered() && len(r.simulate) == 0
	for _, list := range r.devices {
		allow.Add(list)
	}
}

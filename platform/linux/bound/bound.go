// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package bound starts the processes of a test that must not outlive it, also
// where the test is killed. It owns the thread that starts them: Linux kills such
// a process with the thread it was started from, and Go ends a thread with a
// goroutine that was locked to it, so that from a thread like any other a daemon
// dies by chance in the middle of a test. It must never be used outside tests;
// the starter's own processes are platform/linux/proc's.
//
//	cmd := exec.Command("condor_startd", "-f")
//	if err := bound.Start(cmd); err != nil {
//		t.Fatal(err)
//	}
package bound

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// thread takes what is to be done on the one thread that lasts as long as this
// program.
var thread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Start starts a command that is killed when this program ends.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	thread() <- func() { done <- cmd.Start() }
	return <-done
}

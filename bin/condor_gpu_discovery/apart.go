// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A driver's library runs inside the process that loads it. One that is
// damaged, or does not fit its kernel module, ends that process. So libraries
// are asked by a second process, and the first one says what became of it.

// apartVariable marks the second process. Its value is the number of the file
// to which it tells every step.
const apartVariable = "CONDOR_GPU_DISCOVERY_STEPS"

// stepsFile is the first file that a process has besides its standard ones.
const stepsFile = 3

// patience is how long files of an ended process are read on.
const patience = time.Second

// maxOutput is as much as is read of what libraries print, in bytes.
const maxOutput = 4 << 20

// bounded is a buffer that takes no more than maxOutput.
type bounded struct{ buf bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("more than %d bytes", maxOutput)
	}
	return b.buf.Write(p)
}

// lastLine keeps the last line of what is written to it, as far as it is there
// in one piece.
type lastLine struct{ line string }

func (l *lastLine) Write(p []byte) (int, error) {
	lines := bytes.Split(bytes.TrimSuffix(p, []byte("\n")), []byte("\n"))
	l.line = string(lines[len(lines)-1])
	return len(p), nil
}

// statusCrashed is what Go exits with when C code gets a deadly signal.
const statusCrashed = 2

// apart runs the program again with the same arguments and passes on what it
// printed, if it came to an end by itself. own is how this program is started.
func apart(own string, args []string, stdout, stderr io.Writer) int {
	failed := func(err error) int {
		fmt.Fprintln(stderr, "the process that asks the libraries cannot be started: "+err.Error())
		return exitFailed
	}
	steps, end, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer steps.Close()
	var out, messages bounded
	cmd := exec.Command(own, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &messages, []*os.File{end}
	cmd.WaitDelay = patience
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", apartVariable, stepsFile), "GOTRACEBACK=none")
	err = cmd.Start()
	end.Close()
	if err != nil {
		return failed(err)
	}
	var trail lastLine
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&trail, steps) // ends with the last holder of the pipe, or at the deadline
	}()
	// A helper that a library left running may hold the files open.
	err = cmd.Wait()
	if err := steps.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return failed(err)
	}
	<-read
	status := cmd.ProcessState.ExitCode()
	if err == nil || status >= 0 && status != statusCrashed {
		io.Copy(stderr, &messages.buf)
		if _, err := io.Copy(stdout, &out.buf); err != nil {
			fmt.Fprintln(stderr, "the list of devices cannot be written: "+err.Error())
			return exitFailed
		}
		return status
	}
	why := err.Error()
	if status == statusCrashed {
		why, _, _ = strings.Cut(messages.buf.String(), "\n")
	}
	fmt.Fprintf(stderr, "a library of a GPU driver crashed: %s, at the step: %s\n", why, trail.line)
	fmt.Fprintf(stdout, "condor_gpu_discovery_error = %q\n", "a library of a GPU driver crashed")
	return exitFailed
}

// needsLibraries reports whether the command line asks for the devices of this
// machine.
func needsLibraries(args []string) bool {
	o, err := parse(args)
	return err == nil && !o.help && len(o.simulate) == 0
}

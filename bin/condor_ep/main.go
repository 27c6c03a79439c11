// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Condor_ep is the tool for people: it runs jobs on this machine without a
// pool, and shows what a running Execution Point does and why.
//
//	condor_ep                    the commands
//	condor_ep run -help          the options and exit statuses of one
//
// What its commands and options are called, and what they say of themselves,
// is the table of bin/internal/commands, from which docs/commands.md is made.
//
// It holds flags, files and the choice of the platform; what its commands do is
// lib/tool, and all else lib/run and below. It must never decide anything about a slot
// or a job.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/asstarter"
	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The exit statuses, as the table of commands promises them.
const (
	exitOK         = commands.OK
	exitSomeFailed = commands.No
	exitUsage      = commands.Misused
	exitNever      = commands.Never
	exitRestart    = commands.Restart
)

// version is what status shows and ads carry.
const version = commands.Version

func main() {
	os.Exit(heard(os.Args[1:], os.Stdout, os.Stderr))
}

// heard runs one command. Yes to who could not be told is not yes: a history
// that a full disk cut off must not look whole to a script. A run is another
// matter, as its answer is its jobs.
func heard(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && (args[0] == "run" || args[0] == protocol.Command) {
		return tool(args, stdout, stderr)
	}
	out := &told{w: stdout}
	status := tool(args, out, stderr)
	if out.err != nil && status == exitOK {
		fmt.Fprintf(stderr, "condor_ep: %v\n", out.err)
		return exitUsage
	}
	return status
}

// told remembers the first error of a writer.
type told struct {
	w   io.Writer
	err error
}

// Write writes to the writer.
func (t *told) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil && t.err == nil {
		t.err = err
	}
	return n, err
}

// tool runs one command and returns its exit status.
func tool(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, commands.EP.Overview())
		return exitUsage
	}
	switch args[0] {
	case "run":
		return cmdRun(args[1:], stdout, stderr)
	case "status":
		return cmdStatus(args[1:], stdout, stderr)
	case "explain":
		return cmdExplain(args[1:], stdout, stderr)
	case "drain":
		return cmdDrain(args[1:], stdout, stderr)
	case "vacate":
		return cmdVacate(args[1:], stdout, stderr)
	case "rehome":
		return cmdRehome(args[1:], stdout, stderr)
	case "history":
		return cmdHistory(args[1:], stdout, stderr)
	case "check":
		return cmdCheck(args[1:], stdout, stderr)
	case "slots":
		return cmdSlots(args[1:], os.Stdin, stdout, stderr)
	case "simulate":
		return cmdSimulate(args[1:], os.Stdin, stdout, stderr)
	case "classad":
		return cmdClassad(args[1:], os.Stdin, stdout, stderr)
	case protocol.Command:
		return asstarter.Main(args[1:])
	case "version", "-v", "-version", "--version":
		return commands.PrintVersion(stdout)
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[0] == "help" {
			return tool(append(args[1:], "-help"), stdout, stderr) // help run is run -help
		}
		fmt.Fprint(stdout, commands.EP.Overview())
		return exitOK
	}
	if strings.HasSuffix(args[0], ".sub") {
		fmt.Fprintf(stderr, "condor_ep: to run the jobs of a submit file: condor_ep run %s\n", strings.Join(args, " "))
		return exitUsage
	}
	return commands.EP.Unknown(stderr, "", args[0])
}

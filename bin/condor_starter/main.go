// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command condor_starter runs one job for a startd, which speaks to it through
// its standard input and output; see lib/starter. The starter itself is a part of
// condor_startd: condor_starter executes the program of the startd that started
// it or, without one, the condor_startd beside it. So a machine has one program on
// its disk, and all starters and their startd share its text in memory. A startd
// whose STARTER is this file spares the detour.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/starter/role"
)

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Executable, os.Stdout, os.Stderr))
}

// statusNone says that this machine cannot run jobs.
const statusNone = 1

func run(args, env []string, executable func() (string, error), stdout, stderr io.Writer) int {
	self, err := executable()
	if len(args) == 1 {
		switch args[0] {
		case "-v", "-version", "--version":
			return commands.PrintVersion(stdout)
		case "-h", "-help", "--help":
			fmt.Fprint(stdout, commands.Starter.Help(""))
			return commands.OK
		case role.ClassadOption:
			// A startd wants to know which file this is, and finds out what starters can
			// do by itself. A person, or another daemon, gets all of it.
			fmt.Fprintf(stdout, "%s = %q\n", role.Attribute, self)
			if slices.ContainsFunc(env, role.Is) {
				return commands.OK
			}
		}
	}
	if err == nil {
		var program string
		if program, err = startdOf(env, self); err == nil {
			err = &os.PathError{Op: "execute", Path: program, Err: syscall.Exec(program, append([]string{"condor_starter", role.Command}, args...), env)}
		}
	}
	fmt.Fprintf(stderr, "condor_starter: %v\n", err)
	return statusNone
}

// startdOf is the program that has the starter in it.
func startdOf(env []string, self string) (string, error) {
	for _, entry := range env {
		if _, program, _ := strings.Cut(entry, "="); role.Is(entry) && isProgram(program) == nil {
			return program, nil
		}
	}
	beside := filepath.Join(filepath.Dir(self), "condor_startd")
	if err := isProgram(beside); err != nil {
		return "", fmt.Errorf("%w; the starter is a part of condor_startd, which belongs beside %s", err, self)
	}
	return beside, nil
}

// isProgram refuses what would not become a starter: a script around condor_startd
// would start a second startd.
func isProgram(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	const elf = "\x7fELF"
	begins := make([]byte, len(elf))
	if _, err := io.ReadFull(f, begins); err != nil || !bytes.Equal(begins, []byte(elf)) {
		return &os.PathError{Op: "read", Path: path, Err: errors.New("not a program, perhaps a script")}
	}
	return nil
}

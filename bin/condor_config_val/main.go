// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Condor_config_val prints what the configuration says, and where it says so,
// in the words and with the exit statuses of HTCondor's tool of that name.
//
//	condor_config_val START
//	condor_config_val -verbose -subsystem STARTD UPDATE_INTERVAL
//	condor_config_val -dump '^SLOT_TYPE'
//	condor_config_val -summary
//	condor_config_val -snapshot /run/execpoint/startd.config -dump -unused
//
//	condor_config_val -startd -name node7.example.org START
//
// It owns options and files; what is printed is lib/tool/settings, what a
// configuration means is lib/config. It must never change a configuration other than by writing the file it was asked
// for, and of daemons it asks what they are set to and nothing else.
package main

import (
	"os"
	"os/user"
	"runtime"

	"github.com/execpoint/execpoint/platform/confio"
)

func main() {
	home := ""
	if u, err := user.Lookup("condor"); err == nil {
		home = u.HomeDir
	}
	os.Exit(tool(os.Args[1:], system{
		stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), tilde: home, windows: runtime.GOOS == "windows",
		readFile: os.ReadFile, readDir: confio.ReadDir, runCommand: confio.RunCommand, writeFile: confio.WriteFile, open: confio.IsDir, registry: registry, facts: newFacts(home),
	}))
}

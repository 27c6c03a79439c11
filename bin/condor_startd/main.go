// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Condor_startd makes this machine an Execution Point of an HTCondor pool. It
// is started by condor_master, by a service manager or by hand, and takes the
// options of HTCondor's daemons:
//
//	condor_startd [-f] [-t] [-c FILE] [-p PORT] [-n NAME] [-local-name NAME] [-v]
//	condor_startd -help
//
// It holds flags, signals and the choice of the platform; all else is
// lib/startd and below. It must never decide anything about a slot or a job.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/execpoint/execpoint/bin/internal/asstarter"
	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/startd"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// version is what ads carry.
const version = commands.Version

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// flags are the command line.
type flags struct {
	terminal, version, help bool
	config, name, local     string
	port                    int
}

// parse reads the command line. HTCondor's daemons take every option with one
// dash, and condor_master gives -f and -local-name.
func parse(args []string) (flags, error) {
	var f flags
	for i := 0; i < len(args); i++ {
		value := func() (string, error) {
			if i++; i >= len(args) {
				return "", fmt.Errorf("%s wants a value", args[i-1])
			}
			return args[i], nil
		}
		var err error
		switch args[i] {
		case "-f":
		case "-t":
			f.terminal = true
		case "-v", "-version", "--version":
			f.version = true
		case "-h", "-help", "--help":
			f.help = true
		case "-c":
			f.config, err = value()
		case "-n":
			f.name, err = value()
		case "-local-name":
			f.local, err = value()
		case "-p", "-port":
			var text string
			if text, err = value(); err == nil {
				if f.port, err = strconv.Atoi(text); err != nil || f.port < 0 || f.port > 65535 {
					err = fmt.Errorf("-p %s: want a port from 0 to 65535", text)
				}
			}
		default:
			err = commands.Startd.UnknownOption("", args[i])
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == protocol.Command {
		return asstarter.Main(args[1:])
	}
	f, err := parse(args)
	switch {
	case err != nil:
		commands.Startd.Misuse(stderr, "", "%v", err)
		if p, perr := thishost.Visit(); perr == nil { // under condor_master standard error is lost
			startd.TellFatal(err, daemon.ExitError, nil, p, os.Getpid())
		}
		return daemon.ExitError
	case f.help:
		fmt.Fprint(stdout, commands.Startd.Help(""))
		return daemon.ExitOK
	case f.version:
		return commands.PrintVersion(stdout)
	}
	status, err := serve(f, stderr)
	if err == nil {
		return status
	}
	for _, line := range startd.Lines(err) {
		fmt.Fprintf(stderr, "condor_startd: %s\n", line)
	}
	return status
}

func serve(f flags, stderr io.Writer) (int, error) {
	p, err := thishost.New()
	if err != nil {
		return daemon.ExitException, err
	}
	root, err := system.RootFile(f.config)
	if err != nil {
		if !f.terminal {
			startd.TellFatal(err, daemon.ExitException, nil, p, os.Getpid())
		}
		return daemon.ExitException, err
	}
	env := os.Environ()
	if f.name != "" {
		env = append(env, "_CONDOR_STARTD_NAME="+f.name) // stands above every file
	}
	o := p.Daemon(system.Configuration{File: root, LocalName: f.local, Env: env})
	o.Version, o.Port, o.Reboot = version, f.port, reboot
	o.StarterArgs = []string{"condor_starter", protocol.Command}
	o.Early = stderr
	if f.terminal {
		o.Out, o.StarterLog = stderr, os.Stderr
	}
	return startd.Run(context.Background(), o)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
)

const usage = `usage: realpool COMMAND [options]

  make   make the root directory, or find the one that is there
  exec   run a command inside, with this checkout and Go
  up     start a personal pool whose startd is ours
  in     run a command, or a shell, in the pool
  down   end the pool
  sweep  remove what killed commands left
`

// run is the program. It returns the exit status: that of the command inside,
// 2 for a bad command line, 1 for everything else that fails.
func run(stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	// A child is killed with the thread that started it, so this one must not end
	// before the program does.
	runtime.LockOSThread()
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	subcommand, args := args[0], args[1:]
	code, err := 0, error(nil)
	switch subcommand {
	case "build", "inside", "hold": // realpool starts itself with these
		code, err = started(stdout, subcommand, args)
	case "make", "exec", "up", "in", "down", "sweep":
		var o options
		if o, err = parse(stderr, subcommand, args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return 0 // parse has printed it
			}
			fmt.Fprintln(stderr, err)
			return 2
		}
		code, err = command(subcommand, o, streams{stdin, stdout, stderr})
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
	default:
		fmt.Fprintf(stderr, "realpool: no command %q\n%s", subcommand, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return max(code, 1)
	}
	return code
}

// streams are the standard files of the program.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// started is what realpool does when it was started by itself.
func started(stdout io.Writer, subcommand string, args []string) (int, error) {
	if len(args) != 1 {
		return 2, fmt.Errorf("realpool %s: only realpool itself gives this command", subcommand)
	}
	switch subcommand {
	case "build":
		return 0, build(stdout, args[0])
	case "inside":
		return inside(args[0])
	default:
		return hold(args[0])
	}
}

func command(subcommand string, o options, io streams) (int, error) {
	s, err := openStore(o.store)
	if err != nil {
		return 1, err
	}
	removed, err := s.sweep()
	if err != nil {
		return 1, err
	}
	switch subcommand {
	case "sweep":
		for _, dir := range removed {
			fmt.Fprintln(io.out, "removed", dir)
		}
		return 0, nil
	case "make":
		st, err := provide(s, o, io.err)
		if err != nil {
			return 1, err
		}
		fmt.Fprintln(io.out, s.rootDir(st))
		return 0, nil
	case "exec":
		return execute(s, o, io)
	case "up":
		return 0, up(s, o, io)
	case "in":
		return in(s, o, io)
	default:
		return 0, down(s, o, io)
	}
}

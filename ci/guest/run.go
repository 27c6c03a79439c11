// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/ci/qemu"
)

const usage = `usage: guest COMMAND [options]

  make   download the kernel and make the first file system, or find them
  exec   run a program of this machine in a guest
  sh     run commands of the guest's shell
`

// run is the program. It returns the exit status: that of the program in the
// guest, 2 for a bad command line, 1 for everything else that fails.
func run(stdout, stderr io.Writer, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	subcommand, args := args[0], args[1:]
	o, err := parse(stderr, subcommand, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "guest: %v\n", err)
		return 2
	}
	code, err := o.do(ctx, subcommand, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "guest: %v\n", err)
		return max(code, 1)
	}
	return code
}

// options are the flags of all subcommands.
type options struct {
	store   string
	fresh   bool
	systemd bool
	console bool
	machine qemu.Machine
	env     words
	args    []string
}

// words are the values of a flag that may be repeated.
type words []string

func (w *words) String() string     { return strings.Join(*w, " ") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

// parse reads the flags of one subcommand.
func parse(stderr io.Writer, subcommand string, args []string) (o options, err error) {
	f := flag.NewFlagSet("guest "+subcommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.store, "store", "", "directory of what is made once (default $"+qemu.StoreKnob+", else below the user's cache directory, or /var/cache for root)")
	var cgroups, disks, modules, programs string
	var files words
	switch subcommand {
	case "make":
		f.BoolVar(&o.fresh, "fresh", false, "download the kernel that Debian has now, and forget the one that is there")
		f.BoolVar(&o.systemd, "systemd", false, "make the file system of guests with systemd, too")
	case "exec", "sh":
		m := &o.machine
		f.StringVar(&cgroups, "cgroups", "v2", "v1, v2 or hybrid")
		f.IntVar(&m.Memory, "memory", 1024, "MiB")
		f.IntVar(&m.CPUs, "cpus", 1, "CPUs")
		f.StringVar(&disks, "disks", "", "sizes of empty disks in MiB, with commas: /dev/vda, /dev/vdb...")
		f.StringVar(&m.User, "user", "root", "who runs it: root or "+qemu.Tester)
		f.BoolVar(&m.Delegated, "delegated", false, "begin in a group of version 2 that the user owns")
		f.BoolVar(&m.Systemd, "systemd", false, "begin with Debian's systemd, and run it as a service")
		f.StringVar(&modules, "modules", "", "kernel modules to load first, with commas")
		f.StringVar(&programs, "programs", "", "programs of ours to build and to have in PATH, with commas: condor_ep,condor_starter")
		f.Var(&files, "file", "`TARGET=SOURCE`: a file or directory of this machine and its path in the guest; may be repeated")
		f.Var(&o.env, "env", "`NAME=VALUE` for the program's environment; may be repeated")
		f.DurationVar(&m.Limit, "limit", 10*time.Minute, "how long the guest may last")
		f.BoolVar(&o.console, "console", false, "print the console at the end")
	default:
		return o, fmt.Errorf("no command %q\n%s", subcommand, usage)
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.args = f.Args()
	switch {
	case subcommand == "make" && len(o.args) > 0:
		return o, fmt.Errorf("make: unexpected argument %q", o.args[0])
	case subcommand == "make":
		return o, nil
	case subcommand == "exec" && len(o.args) == 0:
		return o, errors.New("exec: no program; want guest exec [options] -- FILE [ARGUMENTS]")
	case subcommand == "sh" && len(o.args) != 1:
		return o, errors.New("sh: want one argument, the commands")
	}
	if o.machine.Cgroups, err = qemu.ParseCgroups(cgroups); err != nil {
		return o, err
	}
	o.machine.Modules, o.machine.Programs = list(modules), list(programs)
	for _, size := range list(disks) {
		n, err := strconv.Atoi(size)
		if err != nil || n <= 0 {
			return o, fmt.Errorf("-disks: %q: want a number of MiB", size)
		}
		o.machine.Disks = append(o.machine.Disks, n)
	}
	o.machine.Files = map[string]string{}
	for _, pair := range files {
		target, from, ok := strings.Cut(pair, "=")
		if !ok || !strings.HasPrefix(target, "/") || from == "" {
			return o, fmt.Errorf("-file: %q: want TARGET=SOURCE, where TARGET is an absolute path", pair)
		}
		o.machine.Files[target] = from
	}
	return o, nil
}

// list takes a list with commas apart.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o options) do(ctx context.Context, subcommand string, stdout, stderr io.Writer) (int, error) {
	s, err := qemu.OpenStore(o.store)
	if err != nil {
		return 1, err
	}
	if subcommand == "make" {
		base, err := s.Make(ctx, o.fresh, stderr)
		if err == nil && o.systemd {
			err = base.MakeSystem(ctx, stderr)
		}
		return 0, err
	}
	base, err := s.Find()
	if err != nil {
		return 1, err
	}
	c := qemu.Command{Env: o.env}
	if subcommand == "sh" {
		c.Shell = o.args[0]
	} else {
		c.Program, c.Args = o.args[0], o.args[1:]
		here, err := os.Getwd()
		if err != nil {
			return 1, err
		}
		if err := o.machine.AddPackage(&c, here); err != nil {
			return 1, err
		}
	}
	r, err := base.Run(ctx, o.machine, c, stdout)
	if o.console {
		fmt.Fprintf(stderr, "guest: the console, after %.1f s:\n%s", r.Took.Seconds(), r.Console)
	}
	if err != nil {
		return 1, err
	}
	return r.Status, nil
}

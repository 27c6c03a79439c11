// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

// options are the flags of all subcommands; each takes those it has a use for.
type options struct {
	htcondor string        // a Debian release, or a version of HTCondor
	store    string        // where root directories are kept
	mirror   string        // a Debian mirror, empty for Debian's own
	include  string        // more Debian packages for the root directory, comma separated
	maxAge   time.Duration // a root directory older than this is made anew

	user     string // who runs the command inside
	bind     binds  // more directories of this machine that are seen inside
	hostNet  bool   // the network of this machine
	original bool   // HTCondor's own startd stands in the pool as well
	noJob    bool   // up: do not run a first job
	name     string // of the pool

	command []string
}

// binds are -bind SOURCE:TARGET flags.
type binds []bind

type bind struct{ Source, Target string }

func (b *binds) String() string { return fmt.Sprint(*b) }

func (b *binds) Set(s string) error {
	source, target, ok := strings.Cut(s, ":")
	if !ok || !filepath.IsAbs(target) || source == "" {
		return errors.New("want SOURCE:TARGET, where TARGET is an absolute path inside")
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	*b = append(*b, bind{source, target})
	return nil
}

// parse reads the flags of one subcommand.
func parse(stderr io.Writer, subcommand string, args []string) (options, error) {
	o := options{}
	f := flag.NewFlagSet("realpool "+subcommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.store, "store", "", "directory of the root directories (default $EXECPOINT_REALPOOL_STORE, else below the user's cache directory, or /var/cache for root)")
	makes := subcommand == "make" || subcommand == "exec" || subcommand == "up"
	if makes {
		f.StringVar(&o.htcondor, "htcondor", "sid", "Debian release (sid, trixie), or the version of HTCondor wanted from one (25.14, 23.9)")
		f.StringVar(&o.mirror, "mirror", os.Getenv("EXECPOINT_REALPOOL_MIRROR"), "Debian mirror to take the packages from; empty for Debian's own")
		f.StringVar(&o.include, "include", "", "more Debian packages, comma separated")
		f.DurationVar(&o.maxAge, "max-age", 30*24*time.Hour, "make a root directory anew that is older than this; it is kept if the new one cannot be made")
	}
	switch subcommand {
	case "exec":
		f.StringVar(&o.user, "user", "root", "user inside who runs the command: root, "+tester+" or condor")
		f.Var(&o.bind, "bind", "SOURCE:TARGET, a directory or file of this machine and where it is seen inside; may be repeated")
		f.BoolVar(&o.hostNet, "host-network", false, "use the network of this machine, not a private one with loopback only")
	case "up":
		f.BoolVar(&o.original, "with-original", false, "put HTCondor's own startd into the pool as well")
		f.BoolVar(&o.noJob, "no-job", false, "do not run a first job")
	}
	if subcommand == "up" || subcommand == "in" || subcommand == "down" {
		f.StringVar(&o.name, "name", "personal", "name of the pool")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.command = f.Args()
	switch {
	case subcommand == "exec" && len(o.command) == 0:
		return o, errors.New("realpool exec: no command; want realpool exec [options] -- COMMAND [ARGUMENTS]")
	case subcommand != "exec" && subcommand != "in" && len(o.command) > 0:
		return o, fmt.Errorf("realpool %s: unexpected argument %q", subcommand, o.command[0])
	case strings.ContainsAny(o.name, "/\x00") || strings.HasPrefix(o.name, "."):
		return o, fmt.Errorf("realpool %s: -name %q: want a file name that does not begin with a dot", subcommand, o.name)
	}
	var err error
	if o.store == "" {
		if o.store, err = defaultStore(os.Getenv, os.Geteuid()); err != nil {
			return o, err
		}
	}
	if o.store, err = filepath.Abs(o.store); err != nil {
		return o, err
	}
	if root, err := source.Root(); err == nil && within(root, o.store) {
		return o, fmt.Errorf("realpool: the store %s is inside the checkout; name a directory outside it by -store or EXECPOINT_REALPOOL_STORE", o.store)
	}
	return o, nil
}

// within says whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// defaultStore is a directory on disk that outlives a reboot: root directories
// have some 350 MB each.
func defaultStore(getenv func(string) string, uid int) (string, error) {
	if dir := getenv("EXECPOINT_REALPOOL_STORE"); dir != "" {
		return dir, nil
	}
	if uid == 0 {
		return "/var/cache/execpoint-realpool", nil
	}
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "execpoint-realpool"), nil
	}
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".cache", "execpoint-realpool"), nil
	}
	return "", errors.New("realpool: neither HOME nor XDG_CACHE_HOME is set; name a directory by -store")
}

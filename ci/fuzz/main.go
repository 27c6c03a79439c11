// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fuzz looks for inputs that break a test. It divides a time among all
// fuzz targets of the module and among the properties that are checked with
// rapidtest, which it has draw from new seeds.
//
//	go run ./ci/fuzz                        an hour over all of them
//	go run ./ci/fuzz -time 10m ./lib/...    ten minutes over some packages
//	go run ./ci/fuzz -each 30s              half a minute for each target, and one round of the properties
//	go run ./ci/fuzz -only Sinful -each 5m  what has Sinful in its name
//
// The inputs that reach code of their own are kept in the cache directory of
// the user, execpoint-ci/fuzz, and the next run goes on from there. An input
// that breaks a test stands in testdata of its package, where `go test` plays it
// again: commit it with what mends it. fuzz exits with 1 when there was one.
//
// fuzz must never change anything else in the tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	total, each time.Duration
	only        *regexp.Regexp
	workers     int
	seed        uint64
	checks      int
	root, cache string
	packages    []string
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.total, "time", time.Hour, "how long in all, without building")
	flags.DurationVar(&o.each, "each", 0, "how long for each fuzz target, in place of -time; the properties are then checked once")
	only := flags.String("only", "", "only targets and tests whose name matches `REGEXP`")
	flags.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "inputs that are tried at the same time")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1<<32)+1, "of the first round of the properties; each further round has the next one")
	flags.IntVar(&o.checks, "checks", 1000, "draws of each property in a round")
	flags.StringVar(&o.root, "root", "", "the repository; found from the working directory if empty")
	flags.StringVar(&o.cache, "cache", "", "where inputs are kept; execpoint-ci/fuzz in the user's cache directory if empty")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("fuzz: -only: %w", err)
	}
	if o.each < 0 || o.total <= 0 || o.workers < 1 || o.checks < 1 || o.seed == 0 {
		return o, errors.New("fuzz: -time, -workers, -checks and -seed want more than 0, -each not less")
	}
	if o.root == "" {
		if o.root, err = source.Root(); err != nil {
			return o, err
		}
	}
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("fuzz: there is no cache directory; -cache names one: %w", err)
		}
		o.cache = filepath.Join(dir, "execpoint-ci", "fuzz")
	}
	return o, nil
}

// run does what the command line says. The error is also what was found.
func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "execpoint-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j := &job{options: o, out: out, bin: dir}
	if err := j.find(ctx); err != nil {
		return err
	}
	each, properties := o.each, time.Duration(0)
	if each == 0 {
		each, properties = divide(o.total, j.targets(), len(j.properties) > 0)
	}
	fmt.Fprintf(out, "%d fuzz targets in %d packages, %v for each; properties in %d packages, for %v from seed %d\n",
		j.targets(), len(j.fuzzed), each, len(j.properties), properties, o.seed)
	j.check(ctx, properties)
	j.fuzz(ctx, each)
	return j.report(ctx)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"os"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/simulate"
	"github.com/execpoint/execpoint/lib/tool/record"
	"github.com/execpoint/execpoint/lib/tool/scenario"
	"github.com/execpoint/execpoint/platform/confio"
)

// cmdSimulate plays a scenario in virtual time.
func cmdSimulate(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	const who = "condor_ep simulate"
	play := scenario.Play{Options: config.Options{ReadFile: os.ReadFile, ReadDir: confio.ReadDir, RunCommand: confio.RunCommand}}
	fs := newFlags("simulate", stdout, stderr)
	fs.StringVar(&play.Config, "config", "", "")
	fs.StringVar(&play.Machine, "machine", "", "")
	fs.StringVar(&play.Compare, "compare", "", "")
	svg := fs.String("svg", "", "")
	asJSON := fs.Bool("json", false, "")
	recorded := fs.Bool("record", false, "")
	width := fs.Int("width", 100, "")
	seed := fs.Uint64("seed", 0, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	fs.Visit(func(one *flag.Flag) {
		if one.Name == "seed" {
			play.Seed = seed
		}
	})
	switch {
	case *recorded && (fs.NArg() > 0 || fs.NFlag() > 1):
		return fs.Misuse("-record stands alone: a record has its own configuration")
	case *recorded:
		unanswered, err := record.Moves(stdin, stdout)
		return answered(unanswered, err, who, stderr)
	case fs.NArg() != 1:
		return fs.Misuse("want one scenario, got %d", fs.NArg())
	case *width < 20 || *width > 10000:
		return fs.Misuse("-width is from 20 to 10000, not %d", *width)
	}
	play.Host, _ = os.Hostname() // a machine without a name has none to show
	out, err := play.File(fs.Arg(0))
	if err == nil && *svg != "" {
		err = writeSVG(*svg, out.First)
	}
	if err == nil {
		err = out.Print(stdout, *width, *asJSON)
	}
	switch {
	case err != nil:
		printError(stderr, who, err)
		return exitUsage
	case out.Refused:
		return exitSomeFailed
	}
	return exitOK
}

func writeSVG(path string, res *simulate.Result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(res.WriteSVG(f), f.Close())
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/user"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // records name zones, and not every machine has them

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/adtext"
	"github.com/execpoint/execpoint/lib/tool/batch"
)

// classadStreams are what the classad commands read and write besides files.
type classadStreams struct {
	in       io.Reader
	out, err io.Writer
}

// cmdClassad evaluates, matches and prints ads.
func cmdClassad(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := classadStreams{in: stdin, out: stdout, err: stderr}
	if len(args) == 0 {
		fmt.Fprint(stderr, commands.EP.Group("classad"))
		return exitUsage
	}
	switch args[0] {
	case "eval":
		return classadEval(args[1:], s)
	case "match":
		return classadMatch(args[1:], s)
	case "print":
		return classadPrint(args[1:], s)
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[0] == "help" {
			return cmdClassad(append(args[1:], "-help"), stdin, stdout, stderr)
		}
		fmt.Fprint(stdout, commands.EP.Group("classad"))
		return exitOK
	}
	return commands.EP.Unknown(stderr, "classad", args[0])
}

// flagsGiven returns the names of the options on a command line.
func flagsGiven(fs *commands.Flags) []string {
	var names []string
	fs.Visit(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}

func classadEval(args []string, s classadStreams) int {
	const who = "condor_ep classad eval"
	fs := newFlags("classad eval", s.out, s.err)
	my := fs.String("my", "", "")
	target := fs.String("target", "", "")
	newSyntax := fs.Bool("new", false, "")
	format := fs.String("format", adtext.New, "")
	fs.BoolFunc("json", "", func(string) error { *format = adtext.JSON; return nil })
	syntax := fs.String("syntax", adtext.Auto, "")
	many := fs.Bool("batch", false, "")
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	if *many {
		if given := flagsGiven(fs); len(given) > 1 || fs.NArg() > 0 {
			return fs.Misuse("-batch stands alone, got %s", strings.Join(append(given, fs.Args()...), " "))
		}
		unread, err := batch.Eval(s.in, s.out, batchWorld)
		return s.answered(who, unread, err)
	}
	switch {
	case fs.NArg() == 0:
		return fs.Misuse("want an expression")
	case !slices.Contains(adtext.Formats(), *format):
		return fs.Misuse("-format is %q, want %s", *format, strings.Join(adtext.Formats(), ", "))
	case !slices.Contains(adtext.Syntaxes(), *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(adtext.Syntaxes(), ", "))
	case *my == stdinName && *target == stdinName:
		return fs.Misuse("only one of -my and -target can be the standard input")
	}

	env := personEnv()
	env.OnDebug = func(e *classad.Expr, v classad.Value) {
		fmt.Fprintf(s.err, "debug: %s is %s\n", e, v.Text(classad.Old))
	}
	ok := true
	for _, f := range []struct {
		name string
		ad   **classad.Ad
	}{{*my, &env.My}, {*target, &env.Target}} {
		if f.name == "" {
			continue
		}
		ad, err := readAd(f.name, *syntax, s.in)
		if err != nil {
			adtext.PrintMistake(s.err, who, err)
			ok = false
		}
		*f.ad = ad
	}
	dialect := classad.Old
	if *newSyntax {
		dialect = classad.New
	}
	exprs := make([]*classad.Expr, fs.NArg())
	for i, text := range fs.Args() {
		e, err := classad.ParseExpr(text, dialect)
		if err != nil {
			adtext.PrintMistake(s.err, who, &adtext.Mistake{Name: "<expression>", Err: err})
			ok = false
		}
		exprs[i] = e
	}
	if !ok {
		return exitUsage
	}
	for _, e := range exprs {
		v, done := e.TryEval(&env)
		if !done {
			fmt.Fprintf(s.err, "%s: %s: given up: too deep, too long, or a function that fails\n", who, e)
		}
		if _, err := fmt.Fprintln(s.out, adtext.Value(v, *format)); err != nil {
			fmt.Fprintf(s.err, "%s: %v\n", who, err)
			return exitUsage
		}
	}
	return exitOK
}

func classadPrint(args []string, s classadStreams) int {
	const who = "condor_ep classad print"
	fs := newFlags("classad print", s.out, s.err)
	format := fs.String("format", adtext.Old, "")
	fs.BoolFunc("json", "", func(string) error { *format = adtext.JSON; return nil })
	syntax := fs.String("syntax", adtext.Auto, "")
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	switch {
	case fs.NArg() != 1:
		return fs.Misuse("want one ad file, got %d", fs.NArg())
	case !slices.Contains(adtext.Formats(), *format):
		return fs.Misuse("-format is %q, want %s", *format, strings.Join(adtext.Formats(), ", "))
	case !slices.Contains(adtext.Syntaxes(), *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(adtext.Syntaxes(), ", "))
	}
	if err := printAds(s.out, fs.Arg(0), *syntax, *format, s.in); err != nil {
		adtext.PrintMistake(s.err, who, err)
		return exitUsage
	}
	return exitOK
}

// personEnv is the world as an expression that a person types sees it.
func personEnv() classad.Env {
	return classad.Env{Now: time.Now(), Location: time.Local, Rand: rand.Float64, HomeDir: homeDir}
}

func homeDir(name string) (string, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", false
	}
	return u.HomeDir, true
}

// batchWorld is the world that records are evaluated in: that of the process, but
// in UTC, as the recordings are.
var batchWorld = batch.World{
	Env: func() classad.Env {
		return classad.Env{Now: time.Now(), Location: time.UTC, Rand: rand.Float64, HomeDir: homeDir}
	},
	Zone: time.LoadLocation,
}

// answered is the status of a batch.
func (s classadStreams) answered(who string, unread int, err error) int {
	switch {
	case err != nil:
		fmt.Fprintf(s.err, "%s: %v\n", who, err)
		return exitUsage
	case unread > 0:
		return exitSomeFailed
	}
	return exitOK
}

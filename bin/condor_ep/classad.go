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

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/classad"
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

// parseFlags reads a command line; done means that the command is over with
// that status.
func parseFlags(fs *commands.Flags, args []string) (status int, done bool) {
	err := fs.Parse(args)
	return commands.StatusOf(err), err != nil
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
	format := fs.String("format", formatNew, "")
	fs.BoolFunc("json", "", func(string) error { *format = formatJSON; return nil })
	syntax := fs.String("syntax", syntaxAuto, "")
	batch := fs.Bool("batch", false, "")
	if status, done := parseFlags(fs, args); done {
		return status
	}
	if *batch {
		if given := flagsGiven(fs); len(given) > 1 || fs.NArg() > 0 {
			return fs.Misuse("-batch stands alone, got %s", strings.Join(append(given, fs.Args()...), " "))
		}
		return batchEval(s)
	}
	switch {
	case fs.NArg() == 0:
		return fs.Misuse("want an expression")
	case !slices.Contains(formats, *format):
		return fs.Misuse("-format is %q, want %s", *format, strings.Join(formats, ", "))
	case !slices.Contains(syntaxes, *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(syntaxes, ", "))
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
			printInputError(s.err, who, err)
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
			printInputError(s.err, who, &inputError{Name: "<expression>", Err: err})
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
		if _, err := fmt.Fprintln(s.out, formatValue(v, *format)); err != nil {
			fmt.Fprintf(s.err, "%s: %v\n", who, err)
			return exitUsage
		}
	}
	return exitOK
}

func classadPrint(args []string, s classadStreams) int {
	const who = "condor_ep classad print"
	fs := newFlags("classad print", s.out, s.err)
	format := fs.String("format", formatOld, "")
	fs.BoolFunc("json", "", func(string) error { *format = formatJSON; return nil })
	syntax := fs.String("syntax", syntaxAuto, "")
	if status, done := parseFlags(fs, args); done {
		return status
	}
	switch {
	case fs.NArg() != 1:
		return fs.Misuse("want one ad file, got %d", fs.NArg())
	case !slices.Contains(formats, *format):
		return fs.Misuse("-format is %q, want %s", *format, strings.Join(formats, ", "))
	case !slices.Contains(syntaxes, *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(syntaxes, ", "))
	}
	if err := printAds(s.out, fs.Arg(0), *syntax, *format, s.in); err != nil {
		printInputError(s.err, who, err)
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

// The formats of -format.
const (
	formatOld  = "old"
	formatNew  = "new"
	formatJSON = "json"
	formatXML  = "xml"
)

var formats = []string{formatOld, formatNew, formatJSON, formatXML}

// formatValue prints a value. JSON and XML have a notation only for what
// stands in an ad.
func formatValue(v classad.Value, format string) string {
	const name = "v"
	switch format {
	case formatOld:
		return v.Text(classad.Old)
	case formatJSON:
		ad := classad.NewAd()
		ad.SetValue(name, v)
		return strings.TrimSuffix(strings.TrimPrefix(ad.JSON(), `{"`+name+`": `), "}")
	case formatXML:
		ad := classad.NewAd()
		ad.SetValue(name, v)
		return strings.TrimSuffix(strings.TrimPrefix(ad.XML(), `<c><a n="`+name+`">`), "</a></c>")
	}
	return v.Text(classad.New)
}

// formatAd prints a whole ad, private attributes included: it is the person's
// own file.
func formatAd(ad *classad.Ad, format string) string {
	switch format {
	case formatNew:
		return ad.TextAll(classad.New) + "\n"
	case formatJSON:
		return ad.JSONAll() + "\n"
	case formatXML:
		return ad.XMLAll() + "\n"
	}
	names := ad.Names()
	slices.Sort(names)
	var b []byte
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			b = append(b, name...)
			b = append(b, " = "...)
			b = append(e.AppendText(b, classad.Old), '\n')
		}
	}
	return string(b)
}

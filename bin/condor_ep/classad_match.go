// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/adtext"
	"github.com/execpoint/execpoint/lib/tool/batch"
	"github.com/execpoint/execpoint/lib/tool/match"
)

func classadMatch(args []string, s classadStreams) int {
	const who = "condor_ep classad match"
	fs := newFlags("classad match", s.out, s.err)
	asJSON := fs.Bool("json", false, "")
	syntax := fs.String("syntax", adtext.Auto, "")
	many := fs.Bool("batch", false, "")
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	if *many {
		if given := flagsGiven(fs); len(given) > 1 || fs.NArg() > 0 {
			return fs.Misuse("-batch stands alone, got %s", strings.Join(append(given, fs.Args()...), " "))
		}
		unread, err := batch.Match(s.in, s.out, batchWorld)
		return s.answered(who, unread, err)
	}
	switch {
	case fs.NArg() != 2:
		return fs.Misuse("want two ad files, got %d", fs.NArg())
	case !slices.Contains(adtext.Syntaxes(), *syntax):
		return fs.Misuse("-syntax is %q, want %s", *syntax, strings.Join(adtext.Syntaxes(), ", "))
	case fs.Arg(0) == stdinName && fs.Arg(1) == stdinName:
		return fs.Misuse("only one of the two ads can be the standard input")
	}
	var ads [2]*classad.Ad
	ok := true
	for i := range ads {
		ad, err := readAd(fs.Arg(i), *syntax, s.in)
		if err != nil {
			adtext.PrintMistake(s.err, who, err)
			ok = false
		}
		ads[i] = ad
	}
	if !ok {
		return exitUsage
	}
	env := personEnv()
	report := match.Ads(ads, [2]string{adName(fs.Arg(0)), adName(fs.Arg(1))}, &env)
	var err error
	if *asJSON {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(report)
	} else {
		_, err = io.WriteString(s.out, report.Text())
	}
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", who, err)
		return exitUsage
	}
	if !report.Match {
		return exitSomeFailed
	}
	return exitOK
}

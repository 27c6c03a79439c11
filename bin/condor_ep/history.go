// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/ask"
	"github.com/execpoint/execpoint/lib/tool/here"
	"github.com/execpoint/execpoint/lib/tool/jobs"
)

// historyFlags are the options of condor_ep history.
type historyFlags struct {
	target
	file, constraint  string
	limit             int
	json, jsonl, long bool
	job               string // its id, "" for all
}

// cmdHistory shows the jobs that have ended here, the newest first.
func cmdHistory(args []string, stdout, stderr io.Writer) int {
	const who = "condor_ep history"
	var f historyFlags
	fs := newFlags("history", stdout, stderr)
	fs.StringVar(&f.file, "file", "", "")
	f.target.flags(fs)
	fs.StringVar(&f.constraint, "constraint", "", "")
	fs.IntVar(&f.limit, "limit", 0, "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.jsonl, "jsonl", false, "")
	fs.BoolVar(&f.long, "long", false, "")
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	switch {
	case fs.NArg() > 1:
		return fs.Misuse("want one job (3.0), or none, got %s", spelling.Count(fs.NArg(), "word"))
	case fs.NArg() == 1 && !jobs.IsID(fs.Arg(0)):
		return fs.Misuse("%q is no job (3.0)", fs.Arg(0))
	case f.limit < 0:
		return fs.Misuse("-limit %d: want a number of jobs", f.limit)
	case countTrue(f.json, f.jsonl, f.long) > 1:
		return fs.Misuse("-json, -jsonl and -long exclude one another")
	}
	f.job = fs.Arg(0)
	if f.job != "" {
		f.constraint = jobs.OfJob(f.job, f.constraint)
	}
	q := history.Query{Limit: f.limit, Env: classad.Env{Now: time.Now(), Location: time.Local}}
	if f.constraint != "" {
		e, err := classad.ParseExpr(f.constraint, classad.Old)
		if err != nil {
			fmt.Fprintf(stderr, "%s: -constraint: %v\n", who, err)
			return exitUsage
		}
		q.Constraint = e
	}
	var paths []string
	var err error
	if !f.isFar() {
		paths, err = f.paths()
	}
	if err != nil {
		printError(stderr, who, err)
		return exitUsage
	}
	status := exitOK
	list := jobs.NewList(stdout, f.form(), time.Local)
	if f.isFar() {
		if err := f.fromAfar(list.Show); err != nil {
			printError(stderr, who, err)
			return exitUsage
		}
	}
	var histories [][]string
	for _, path := range paths {
		files, err := history.Files(path)
		if errs.Is(err, errs.NotFound) && f.file == "" {
			continue // no job has ended there yet
		}
		if err != nil {
			printError(stderr, who, err)
			return exitUsage
		}
		histories = append(histories, files)
	}
	err = q.SearchAll(context.Background(), histories, func(r history.Record) bool { return list.Show(r.Ad) == nil },
		func(path string, at int64, err error) {
			fmt.Fprintf(stderr, "%s: %s, byte %d: %v\n", who, path, at, err)
			status = exitSomeFailed
		})
	if err != nil {
		printError(stderr, who, err)
		return exitUsage
	}
	// The writer below is a terminal or a pipe; its errors show as missing lines.
	_ = list.Close()
	if form := f.form(); list.Len() == 0 && (form == jobs.Table || form == jobs.Long || form == jobs.Accounts) {
		where := paths
		if f.isFar() {
			where = []string{"the history of " + f.name}
		}
		fmt.Fprintf(stderr, "%s: %s\n", who, jobs.None(where, f.constraint != ""))
	}
	return status
}

// form is what the flags say of the output.
func (f *historyFlags) form() jobs.Form {
	switch {
	case f.json:
		return jobs.JSON
	case f.jsonl:
		return jobs.Lines
	case f.long:
		return jobs.Long
	case f.job != "":
		return jobs.Accounts
	}
	return jobs.Table
}

// fromAfar shows the history of the one in a pool that -name names.
func (f *historyFlags) fromAfar(show func(*classad.Ad) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), farTimeout)
	defer cancel()
	far, err := f.reach(ctx)
	if err != nil {
		return err
	}
	return ask.History(ctx, far.client, far.at, f.constraint, f.limit, show)
}

// countTrue counts the options that were given.
func countTrue(set ...bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// paths are the histories to read: the file that was named, that of a
// configuration, or those of the Execution Points of this user.
func (f *historyFlags) paths() ([]string, error) {
	if f.file != "" {
		return []string{f.file}, nil
	}
	if f.config == "" {
		p, err := thishost.Visit()
		if err != nil {
			return nil, err
		}
		return f.machine(p).Histories()
	}
	inv, err := thisMachine()
	if err != nil {
		return nil, err
	}
	snap, err := loadConfig(f.config, f.local, os.TempDir(), inv)
	if err != nil {
		return nil, err
	}
	path, err := here.HistoryOf(snap)
	return []string{path}, err
}

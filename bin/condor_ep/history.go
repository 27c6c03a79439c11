// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/history"
)

// historyFlags are the options of condor_ep history.
type historyFlags struct {
	target
	file, constraint  string
	limit             int
	json, jsonl, long bool
	shown             int // so many ads of the list of -json
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
	case fs.NArg() > 0:
		return fs.Misuse("unexpected argument %q", fs.Arg(0))
	case f.limit < 0:
		return fs.Misuse("-limit %d: want a number of jobs", f.limit)
	case countTrue(f.json, f.jsonl, f.long) > 1:
		return fs.Misuse("-json, -jsonl and -long exclude one another")
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
	tw := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	if countTrue(f.json, f.jsonl, f.long) == 0 {
		fmt.Fprintln(tw, "ID\tOWNER\tSLOT\tENDED\tWALL\tEND\tCMD")
	}
	if f.isFar() {
		if err := f.fromAfar(stdout, tw); err != nil {
			printError(stderr, who, err)
			return exitUsage
		}
	}
	for _, path := range paths {
		files, err := history.Files(path)
		if errs.Is(err, errs.NotFound) && f.file == "" {
			continue // no job has ended there yet
		}
		if err == nil {
			err = q.Search(context.Background(), files, func(r history.Record) bool { return f.show(stdout, tw, r.Ad) == nil },
				func(path string, at int64, err error) {
					fmt.Fprintf(stderr, "%s: %s, byte %d: %v\n", who, path, at, err)
					status = exitSomeFailed
				})
		}
		if err != nil {
			printError(stderr, who, err)
			return exitUsage
		}
	}
	if f.json {
		fmt.Fprint(stdout, f.listEnd())
	}
	// The writer below is a terminal or a pipe; its errors show as missing lines.
	_ = tw.Flush()
	return status
}

// fromAfar shows the history of the one in a pool that -name names.
func (f *historyFlags) fromAfar(w, table io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), farTimeout)
	defer cancel()
	far, err := f.reach(ctx)
	if err != nil {
		return err
	}
	return far.history(ctx, f.constraint, f.limit, func(ad *classad.Ad) error { return f.show(w, table, ad) })
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

// listBetween and listEnd are what condor_history -json writes before an ad
// and behind the last one.
func (f *historyFlags) listBetween() string {
	f.shown++
	if f.shown == 1 {
		return "[\n"
	}
	return ",\n"
}

func (f *historyFlags) listEnd() string {
	if f.shown == 0 {
		return "[\n]\n"
	}
	return "]\n"
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
		dirs, _, err := recordedRuns(p)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, d := range dirs {
			if d.Files != "" {
				out = append(out, filepath.Join(d.Log(), "startd_history"))
			}
		}
		daemons, err := recordedDaemons(p)
		if err != nil {
			return nil, err
		}
		for _, d := range daemons {
			if d.History != "" {
				out = append(out, d.History)
			}
		}
		if snap := machineConfig(f.local); snap != nil {
			o, err := history.OptionsFrom(snap)
			if err == nil && o.Path != "" && !slices.Contains(out, o.Path) {
				out = append(out, o.Path)
			}
		}
		return out, nil
	}
	inv, err := thisMachine()
	if err != nil {
		return nil, err
	}
	snap, err := loadConfig(f.config, f.local, os.TempDir(), inv)
	if err != nil {
		return nil, err
	}
	o, err := history.OptionsFrom(snap)
	if err != nil {
		return nil, err
	}
	if o.Path == "" {
		return nil, fmt.Errorf("STARTD_HISTORY is empty: no history is kept")
	}
	return []string{o.Path}, nil
}

// show prints one job.
func (f *historyFlags) show(w, table io.Writer, ad *classad.Ad) error {
	switch {
	case f.json:
		_, err := fmt.Fprint(w, f.listBetween(), ad.JSON(), "\n")
		return err
	case f.jsonl:
		_, err := fmt.Fprintln(w, ad.JSON())
		return err
	case f.long:
		_, err := fmt.Fprintf(w, "%s\n", ad.Text(classad.Old))
		return err
	}
	text := func(name string) string { s, _ := ad.EvalString(name, nil); return s }
	num := func(name string) int64 { n, _ := ad.EvalInt(name, nil); return n }
	end := "lost"
	switch signal, ok := ad.EvalBool("ExitBySignal", nil); {
	case text("HoldReason") != "":
		end = "held"
	case text("VacateReason") != "":
		end = "evicted"
	case ok && signal:
		end = fmt.Sprintf("signal %d", num("ExitSignal"))
	case ok:
		end = fmt.Sprintf("status %d", num("ExitCode"))
	}
	wall := time.Duration(num("RemoteWallClockTime")) * time.Second
	// That has whole seconds only; the other one is finer, where it says the same.
	if secs, ok := ad.EvalReal("JobDuration", nil); ok && secs >= 0 && int64(secs) == num("RemoteWallClockTime") {
		wall = time.Duration(secs * float64(time.Second))
	}
	_, err := fmt.Fprintf(table, "%d.%d\t%s\t%s\t%s\t%s\t%s\t%s\n", num("ClusterId"), num("ProcId"), text("Owner"), text("RemoteHost"),
		time.Unix(num("CompletionDate"), 0).Format(time.DateTime), short(wall), end, text("Cmd"))
	return err
}

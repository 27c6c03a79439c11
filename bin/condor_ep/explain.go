// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/adtext"
	"github.com/execpoint/execpoint/lib/tool/jobs"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// explainFlags are the options of condor_ep explain.
type explainFlags struct {
	target
	machine, job string
	set          settings
	json         bool
	subject      string
}

// settings are attributes given as NAME=EXPRESSION; the ad is nil without any.
type settings struct{ ad *classad.Ad }

func (s *settings) String() string { return "" }

// Set implements flag.Value.
func (s *settings) Set(text string) error {
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		return fmt.Errorf("%q is not NAME=EXPRESSION: %w", text, err)
	}
	for name, e := range ad.All() {
		if s.ad == nil {
			s.ad = classad.NewAd()
		}
		s.ad.Set(name, e)
	}
	return nil
}

func cmdExplain(args []string, stdout, stderr io.Writer) int {
	var f explainFlags
	fs := newFlags("explain", stdout, stderr)
	f.target.flags(fs)
	fs.StringVar(&f.machine, "machine", "", "")
	fs.StringVar(&f.job, "job", "", "")
	fs.Var(&f.set, "set", "")
	fs.BoolVar(&f.json, "json", false, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	f.subject = fs.Arg(0)
	// A configuration with which an Execution Point runs is that one's.
	offline := f.machine != "" || f.set.ad != nil || f.config != "" && !f.isFar() && !f.runs()
	if f.isFar() && (f.machine != "" || f.set.ad != nil) {
		return fs.Misuse("-machine and -set try what an Execution Point would do, -name and -pool ask one that runs: want one of the two")
	}
	if fs.NArg() > 1 {
		return fs.Misuse("want one slot (slot1_1) or job (3.0), or none, got %s", spelling.Count(fs.NArg(), "word"))
	}
	reports, status := f.running, 0
	if offline {
		reports = f.tried
	}
	var complaints bytes.Buffer
	list, status := reports(&complaints)
	if f.machine == "" && f.set.ad == nil && jobs.IsID(f.subject) && !slices.ContainsFunc(list, func(r *explain.Report) bool { return r.Slot != "" || r.Answer != "" }) {
		// It does not run, and does not wait: it may have ended here.
		if ad := f.ended(); ad != nil {
			return f.account(stdout, ad)
		}
	}
	_, _ = complaints.WriteTo(stderr) // what cannot be written there is lost
	for _, r := range list {
		if err := f.print(stdout, r); err != nil {
			printError(stderr, "condor_ep explain", err)
			return exitUsage
		}
	}
	return status
}

func (f *explainFlags) print(w io.Writer, r *explain.Report) error {
	if f.json {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := io.WriteString(w, words.Lines(r.Text(time.Now()))) // jobs have a say in it
	return err
}

// ended is the newest ad in a history of the job that is the subject, nil without one.
func (f *explainFlags) ended() *classad.Ad {
	var newest *classad.Ad
	h := historyFlags{target: f.target, job: f.subject, constraint: jobs.OfJob(f.subject, ""), limit: 1}
	show := func(ad *classad.Ad) error { newest = ad; return nil }
	if h.isFar() {
		_ = h.fromAfar(show) // who asked for a job that runs was told already what is wrong
		return newest
	}
	paths, err := h.paths()
	if err != nil {
		return nil
	}
	e, err := classad.ParseExpr(h.constraint, classad.Old)
	if err != nil {
		return nil
	}
	var histories [][]string
	for _, path := range paths {
		if files, err := history.Files(path); err == nil {
			histories = append(histories, files)
		}
	}
	q := history.Query{Limit: 1, Constraint: e, Env: classad.Env{Now: time.Now(), Location: time.Local}}
	_ = q.SearchAll(context.Background(), histories, func(r history.Record) bool { return show(r.Ad) == nil }, func(string, int64, error) {})
	return newest
}

// account prints how the job of ad ended.
func (f *explainFlags) account(w io.Writer, ad *classad.Ad) int {
	form := jobs.Accounts
	if f.json {
		form = jobs.Lines
	}
	list := jobs.NewList(w, form, time.Local)
	// The writer is a terminal or a pipe; its errors show as missing lines.
	_ = list.Show(ad)
	_ = list.Close()
	return exitOK
}

// runs reports whether an Execution Point runs here with the configuration.
func (f *explainFlags) runs() bool {
	_, answers, refusals, err := f.askAll(observe.Request{Op: observe.OpStatus})
	return err == nil && len(answers)+len(refusals) > 0
}

// running asks the Execution Points that run here.
func (f *explainFlags) running(stderr io.Writer) ([]*explain.Report, int) {
	req := observe.Request{Op: observe.OpExplain, Subject: f.subject}
	if f.job != "" {
		job, err := f.jobAd()
		if err != nil {
			printError(stderr, "condor_ep explain", err)
			return nil, exitUsage
		}
		req.Job = job.Text(classad.Old)
	}
	where, answers, refusals, err := f.askAll(req)
	if err != nil {
		printError(stderr, "condor_ep explain", err)
		return nil, exitUsage
	}
	if len(answers) == 0 {
		for _, r := range refusals {
			printError(stderr, "condor_ep explain", r)
		}
		if len(refusals) == 0 {
			where.Nothing(stderr)
			fmt.Fprintln(stderr, "with -config it is tried what one would do")
		}
		return nil, exitSomeFailed
	}
	var list []*explain.Report
	for _, a := range answers {
		for _, x := range a.Explanations {
			if x != nil { // what comes over the wire may be anything
				list = append(list, x)
			}
		}
	}
	return list, exitOK
}

// submitEnding marks a submit description among the files of -job.
const submitEnding = ".sub"

// jobAd reads the job of -job: an ad, or the first job of a submit file.
func (f *explainFlags) jobAd() (*classad.Ad, error) {
	if filepath.Ext(f.job) != submitEnding {
		return readAd(f.job, adtext.Auto, os.Stdin)
	}
	inv, err := thisMachine()
	if err != nil {
		return nil, err
	}
	snap, err := loadConfig(f.config, f.local, os.TempDir(), inv)
	if err != nil {
		return nil, err
	}
	who, err := currentUser(snap, inv)
	if err != nil {
		return nil, err
	}
	jobs, _, err := readJobs(f.job, nil, 1, who, os.Environ(), snap, inv)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s queues no job", f.job)
	}
	return jobs[0], nil
}

// thisMachine is what can be found out of it. What a scanner could not find
// stays unknown.
func thisMachine() (*machine.Inventory, error) {
	p, err := thishost.New()
	if err != nil {
		return nil, err
	}
	inv, _ := machine.Scan(context.Background(), time.Now(), p.Scanners()...)
	return inv, nil
}

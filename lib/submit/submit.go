// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package submit turns submit description files into job ads: HTCondor's
// language of commands, macros and queue statements, and the attributes that
// condor_submit makes of them.
//
// It must never look at a clock, at this process's environment or working
// directory, or at a file by itself: everything comes in the Options. It never
// writes anything and starts no job. What it cannot do it refuses with the
// file, line and column, and then nothing of the description is used.
//
//	d, err := submit.Parse("hello.sub", text, submit.Options{Cluster: 1, Cwd: "/home/ann", Owner: "ann", Now: now})
//	jobs, err := d.Jobs() // one ad per job
//
// Relative names: the executable and item files count from Options.Cwd, the
// job's other files from its initialdir, which itself counts from Options.Cwd.
package submit

import (
	"cmp"
	"io/fs"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Options are everything a description depends on besides its text.
type Options struct {
	Cluster int       // ClusterId of the jobs
	Now     time.Time // QDate and EnteredCurrentStatus
	Owner   string    // account the jobs belong to
	Domain  string    // User is Owner@Domain; "" leaves the domain out
	Host    string    // name of the access point, for GlobalJobId; "" leaves that attribute out
	Cwd     string    // absolute working directory of who submits
	Env     []string  // NAME=value: for $ENV() and getenv

	Arch, OpSys string // of this machine as in its ad; "" are X86_64 and LINUX

	// DirFS gives the files of a directory; os.DirFS serves. It is used for
	// item files, matching and file sizes. Nil: item files and matching are
	// refused and sizes count as 0.
	DirFS func(dir string) fs.FS

	// Writable is nil where who submits may write the file of a name, or make it.
	// Nil: that is not looked at.
	Writable func(name string) error

	// Alone says that the jobs run on this machine and without a pool: what they
	// bring must be there, and what only a schedd or a negotiator does is refused.
	Alone bool

	// Config returns the text of a configuration setting, "" when it has
	// none. Nil: HTCondor's defaults.
	Config func(name string) string
}

// defaults are the settings that submission reads, with HTCondor's values.
func defaultConfig(name string) string {
	switch name {
	case "JOB_DEFAULT_REQUESTCPUS":
		return "1"
	case "JOB_DEFAULT_REQUESTMEMORY":
		return "128"
	case "JOB_DEFAULT_REQUESTDISK":
		return "MAX({1024, (TransferInputSizeMB+1) * 1.25}) * 1024"
	case "JOB_DEFAULT_LEASE_DURATION":
		return "2400"
	case "NICE_USER_ACCOUNTING_GROUP_NAME":
		return "nice-user"
	}
	return ""
}

// Limits, so that no description takes all memory or never ends.
const (
	MaxText     = 8 << 20  // bytes of a description or an item file
	maxSettings = 200000   // lines "name = value"
	maxGrown    = 64 << 20 // bytes of all settings that mention themselves
	maxJobs     = 1000000  // jobs of one description
	maxQueues   = 10000    // queue statements
	maxNesting  = 100      // ifs within ifs
	maxProblems = 50       // reported; the rest is left out
)

// Description is a parsed submit description. It is not safe for concurrent
// use.
type Description struct {
	name     string
	opts     Options
	queues   []*queue
	total    int
	warnings Problems
	exprs    map[string]*classad.Expr   // parsed before, by text
	refs     map[string]map[string]bool // of expressions, by text
	sizes    map[string]int64           // of files in KiB, by name
	found    map[string]string          // what is wrong with files that were looked at, by name
}

// Parse reads a description. name is the file's name as the user gave it: it
// stands in messages, in JobSubmitFile and in $(SUBMIT_FILE). The first job of
// each queue statement is made to check the commands. The error is Problems.
func Parse(name, text string, o Options) (*Description, error) {
	o.Arch, o.OpSys = cmp.Or(o.Arch, "X86_64"), cmp.Or(o.OpSys, "LINUX")
	if o.Config == nil {
		o.Config = defaultConfig
	}
	d := &Description{name: name, opts: o, exprs: map[string]*classad.Expr{}}
	p := &parser{d: d}
	p.parse(text)
	if len(d.queues) == 0 && !p.problems.Failed() {
		p.fail(Problem{Line: p.reader.num + 1, Column: 1, Message: "no queue statement", Want: "queue, queue N or queue VARIABLE in (...) at the end"})
	}
	if p.problems.Failed() {
		// The commands are looked at all the same, so that all mistakes are told.
		p.problems = append(p.problems, d.tentative(p.table.now())...)
		return nil, append(p.problems, p.misspelt()...).unique()
	}
	some := false // without a job no command is looked at
	for _, q := range d.queues {
		if q.jobs() == 0 {
			continue
		}
		some = true
		b := d.builder(q)
		b.job(q, 0)
		p.problems = append(p.problems, b.problems...)
		if p.problems.Failed() {
			return nil, append(p.problems, p.misspelt()...).unique()
		}
	}
	if some {
		p.problems = append(p.problems, p.unused()...)
	}
	d.warnings = p.problems.unique()
	return d, nil
}

// tentative looks for mistakes in the commands of a description whose lines or
// queue statements are wrong. Values with macros are left out, because what
// they stand for may be missing.
func (d *Description) tentative(v view) Problems {
	q := &queue{view: v, count: 1, items: []item{{}}}
	b := d.builder(q)
	b.tentative = true
	b.job(q, 0)
	return b.problems
}

// Len returns the number of jobs.
func (d *Description) Len() int { return d.total }

// Warnings are things that look wrong but stop nothing: commands nobody
// reads, macros that are not defined.
func (d *Description) Warnings() Problems { return d.warnings }

// Jobs makes the job ads, in the order of their ProcIds from 0. Ads of one
// queue statement share a parent that holds what they have in common; the
// caller may change the ads it gets but not the parents. The error is
// Problems, and then there are no ads.
func (d *Description) Jobs() ([]*classad.Ad, error) {
	ads := make([]*classad.Ad, 0, d.total)
	var problems Problems
	for _, q := range d.queues {
		b := d.builder(q)
		for i := range q.jobs() {
			ads = append(ads, b.job(q, i))
			if b.problems.Failed() && len(b.problems) >= maxProblems {
				break
			}
		}
		problems = append(problems, b.problems...)
	}
	if problems.Failed() {
		return nil, problems.unique()
	}
	return ads, nil
}

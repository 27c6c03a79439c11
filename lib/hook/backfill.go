// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// Backfill is the client that works while nobody else wants the machine.
type Backfill struct {
	On    bool        // there is one; the other fields are of no use without
	Owner string      // who it runs as; "" is who runs the Execution Point
	Job   *classad.Ad // the client as a job that runs where it is, without moving files
}

const vanilla = 5 // JobUniverse

// BackfillFrom reads the settings of the backfill client. asRoot says that it
// has to run as another user than the Execution Point, so that its owner must
// be named. Where nothing enables backfill nothing else is looked at. What
// keeps an enabled one from being on is told as a problem.
func BackfillFrom(cfg *config.Snapshot, asRoot bool) (Backfill, config.Problems) {
	r := boinc{cfg: cfg}
	if s, ok := cfg.Lookup("ENABLE_BACKFILL"); !ok || strings.TrimSpace(s.Value) == "" {
		return Backfill{}, nil
	}
	on, err := cfg.Bool("ENABLE_BACKFILL")
	if err != nil {
		r.problem("ENABLE_BACKFILL", "not a boolean", "True or False", config.Error)
	}
	if !on || err != nil {
		return Backfill{}, r.problems
	}
	switch system := strings.TrimSpace(cfg.String("BACKFILL_SYSTEM")); {
	case system == "":
		r.problem("BACKFILL_SYSTEM", "backfill is enabled without a system to do it", "BOINC", config.Warning)
	case !strings.EqualFold(system, "BOINC"):
		r.problem("BACKFILL_SYSTEM", "unknown backfill system", "BOINC", config.Warning)
	}
	if len(r.problems) > 0 {
		return Backfill{}, r.problems
	}
	job := classad.NewAd()
	job.SetString("MyType", "Job")
	job.SetInt("ClusterId", 1)
	job.SetInt("ProcId", 0)
	job.SetInt("JobUniverse", vanilla)
	job.SetString("ShouldTransferFiles", "NO")
	job.SetString("Cmd", r.path("BOINC_Executable", "BOINC_Cmd", "the full path of the client"))
	job.SetString("Iwd", r.path("BOINC_InitialDir", "BOINC_Iwd", "the full path of the directory that the client works in"))
	r.universe()
	b := Backfill{Owner: r.owner(asRoot), Job: job}
	if b.Owner != "" {
		job.SetString("Owner", b.Owner)
	}
	r.arguments(job)
	r.environment(job)
	for attr, knob := range map[string]string{"Out": "BOINC_Output", "Err": "BOINC_Error"} {
		if file, _ := r.text(knob, ""); file != "" {
			job.SetString(attr, file)
		}
	}
	if b.On = !r.problems.Failed(); !b.On {
		return Backfill{}, r.problems
	}
	return b, r.problems
}

// boinc reads the settings of the BOINC client.
type boinc struct {
	cfg      *config.Snapshot
	problems config.Problems
}

// problem tells of a knob that is set, or of one that is missed where backfill
// is enabled.
func (r *boinc) problem(knob, message, want string, severity config.Severity) {
	p := &config.Problem{Knob: knob, Message: message + "; there is no backfill", Want: want, Severity: severity, Class: config.BadValue}
	s, ok := r.cfg.Lookup(knob)
	if ok && !s.IsDefault {
		p.Value = s.Value
	} else {
		s, ok = r.cfg.Lookup("ENABLE_BACKFILL")
	}
	if ok {
		locate(p, s)
	}
	r.problems = append(r.problems, p)
}

// text gives the value of knob and the name that it was set by. The alias is
// the job attribute that the knob stands for, which wins where both are set.
func (r *boinc) text(knob, alias string) (value, by string) {
	for _, name := range []string{alias, knob} {
		if value = strings.TrimSpace(r.cfg.String(name)); name != "" && value != "" {
			return value, name
		}
	}
	return "", knob
}

func (r *boinc) path(knob, alias, want string) string {
	value, by := r.text(knob, alias)
	switch {
	case value == "":
		r.problem(knob, "not set, and needed", want, config.Error)
	case !filepath.IsAbs(value):
		r.problem(by, "not a full path", want, config.Error)
	}
	return value
}

func (r *boinc) universe() {
	value, by := r.text("BOINC_Universe", "BOINC_JobUniverse")
	switch {
	case value == "":
		r.problem(by, "not set, and needed", "vanilla", config.Error)
	case !strings.EqualFold(value, "vanilla") && value != "5":
		r.problem(by, "the client can run in no such universe", "vanilla", config.Error)
	}
}

// owner gives the user that the client is to run as, "" for the present one.
func (r *boinc) owner(asRoot bool) string {
	value, _ := r.text("BOINC_Owner", "")
	switch {
	case asRoot && value == "":
		r.problem("BOINC_Owner", "not set, and needed where the Execution Point runs as root", "a user who may write to BOINC_InitialDir", config.Error)
	case !asRoot && value != "":
		s, _ := r.cfg.Lookup("BOINC_Owner")
		p := &config.Problem{Knob: "BOINC_Owner", Value: value, Severity: config.Warning, Class: config.BadValue,
			Message: "not used: only an Execution Point that runs as root can run the client as somebody else"}
		locate(p, s)
		r.problems = append(r.problems, p)
		return ""
	}
	return value
}

func (r *boinc) arguments(job *classad.Ad) {
	text, by := r.text("BOINC_Arguments", "")
	args, err := jobenv.ArgsFromSubmit(text)
	switch {
	case err != nil:
		r.problem(by, err.Error(), "words between blanks, or the new syntax in double quotes", config.Error)
	case len(args.List) == 0:
	case args.V1:
		job.SetString("Args", strings.Join(args.List, " "))
	default:
		job.SetString("Arguments", jobenv.ArgsToV2(args.List))
	}
}

func (r *boinc) environment(job *classad.Ad) {
	text, by := r.text("BOINC_Environment", "")
	if text == "" {
		return
	}
	env := jobenv.Env{}
	if err := env.MergeSubmit(text); err != nil {
		r.problem(by, err.Error(), "NAME=value with ; between, or the new syntax in double quotes", config.Error)
		return
	}
	job.SetString("Environment", env.V2())
}

// OwnerProblem says that there is no backfill because of who it is to run as.
func OwnerProblem(cfg *config.Snapshot, err error) *config.Problem {
	r := boinc{cfg: cfg}
	r.problem("BOINC_Owner", err.Error(), "a user of this machine, not root, who may write to BOINC_InitialDir", config.Error)
	return r.problems[0]
}

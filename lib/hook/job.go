// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// Mode says when a job runs.
type Mode uint8

// The modes.
const (
	Periodic    Mode = iota // at the start and every Period after
	WaitForExit             // at the start and a Period after each end
	OneShot                 // once at the start
	OnDemand                // when asked for, as benchmarks are
)

var modeNames = [...]string{"Periodic", "WaitForExit", "OneShot", "OnDemand"}

// String returns the mode as the configuration spells it.
func (m Mode) String() string { return modeNames[m] }

// AutoPublish says when output is worth an update of its own.
type AutoPublish uint8

// The values of STARTD_CRON_AUTOPUBLISH.
const (
	Never AutoPublish = iota
	Always
	IfChanged
)

var autoPublishNames = [...]string{"Never", "Always", "If_Changed"}

// Job is one program and how it is to be run.
type Job struct {
	Name   string
	Mode   Mode
	Period time.Duration // 0 for WaitForExit: at once
	Path   string
	Args   []string // the whole vector; the name of the job stands first
	Env    []string // NAME=value, beyond the environment that the runner has
	Dir    string   // working directory, "" the runner's

	Prefix    string // goes before the name of each attribute it prints
	Slots     []int  // numbers of the slots it may reach; nil is all
	Load      float64
	Kill      bool          // end a running one when the next is due
	Hup       bool          // RECONFIG: a running one is told of a new configuration by SIGHUP
	Rerun     bool          // RECONFIG_RERUN: it runs again after a new configuration
	Condition *classad.Expr // starts only while true; nil is always
	Metrics   []Metric

	Origin config.Origin // where EXECUTABLE was given
}

// Cron is a list of jobs that share one budget of load.
type Cron struct {
	Family      string // "STARTD_CRON" or "BENCHMARKS"
	Jobs        []Job  // in the order of the list; a later one's output counts before an earlier one's
	MaxLoad     float64
	LogFailures bool // LOG_NON_ZERO_EXIT
	AutoPublish AutoPublish
}

// CronFrom reads the settings of the startd's cron. A job that cannot run is
// left out and told as a problem; the others run.
func CronFrom(cfg *config.Snapshot) (Cron, config.Problems) {
	r := reader{cfg: cfg, family: "STARTD_CRON", mode: Periodic, load: 0.01}
	c := r.cron(0.1)
	if s, ok := cfg.Lookup("STARTD_CRON_NAME"); ok && s.Value != "" {
		r.problem("STARTD_CRON_NAME", "another prefix is not supported; the settings are read as STARTD_CRON_*", "", config.Warning)
	}
	switch v := strings.TrimSpace(cfg.String("STARTD_CRON_AUTOPUBLISH")); {
	case v == "":
	default:
		i := slices.IndexFunc(autoPublishNames[:], func(n string) bool { return strings.EqualFold(n, v) })
		if i < 0 {
			r.problem("STARTD_CRON_AUTOPUBLISH", "unknown word", "Never, Always or If_Changed", config.Error)
			break
		}
		c.AutoPublish = AutoPublish(i)
	}
	return c, r.problems
}

// BenchmarksFrom reads the settings of the benchmarks, all of which run on
// demand.
func BenchmarksFrom(cfg *config.Snapshot) (Cron, config.Problems) {
	r := reader{cfg: cfg, family: "BENCHMARKS", mode: OnDemand, load: 1}
	c := r.cron(1)
	c.Jobs = slices.DeleteFunc(c.Jobs, func(j Job) bool {
		if j.Mode == OnDemand {
			return false
		}
		r.problem("BENCHMARKS_"+j.Name+"_MODE", "a benchmark runs only when asked for; it is left out", "OnDemand", config.Error)
		return true
	})
	for i := range c.Jobs {
		if j := &c.Jobs[i]; j.Rerun {
			j.Rerun = false
			r.problem("BENCHMARKS_"+j.Name+"_RECONFIG_RERUN", "a new configuration does not run a benchmark again; it is taken for False", "RunBenchmarks says when", config.Warning)
		}
	}
	return c, r.problems
}

// reader reads one family of cron settings.
type reader struct {
	cfg      *config.Snapshot
	family   string
	mode     Mode    // of a job that does not say
	load     float64 // of a job that does not say
	problems config.Problems
}

func (r *reader) problem(knob, message, want string, severity config.Severity) {
	p := &config.Problem{Knob: knob, Message: message, Want: want, Severity: severity, Class: config.BadValue}
	s, ok := r.cfg.Lookup(knob)
	if ok && !s.IsDefault {
		p.Value = s.Value
	} else {
		s, ok = r.cfg.Lookup(r.family + "_JOBLIST") // a setting that is missing is missed there
	}
	if ok {
		locate(p, s)
	}
	r.problems = append(r.problems, p)
}

// locate says where the setting is that a problem is about.
func locate(p *config.Problem, s config.Setting) {
	p.File, p.Line, p.Column, p.EndLine = s.Origin.File, s.Origin.Line, s.Origin.Column, s.Origin.EndLine
	if p.File == "" {
		p.File = s.Origin.Kind.String()
	}
}

func (r *reader) text(knob string) string { return strings.TrimSpace(r.cfg.String(knob)) }

// number reads a number of a range. An unset one is def, a bad one as well.
func (r *reader) number(knob string, def, low, high float64) float64 {
	text := r.text(knob)
	if text == "" {
		return def
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		v = math.NaN()
		if e, bad := classad.ParseExpr(text, classad.Old); bad == nil {
			if n, ok := e.Eval(nil).AsNumber(); ok {
				v = n
			}
		}
	}
	if !(v >= low && v <= high) {
		format := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
		r.problem(knob, "not a number in range; "+format(def)+" is used", format(low)+" to "+format(high), config.Error)
		return def
	}
	return v
}

// flag reads a boolean. A bad one is false.
func (r *reader) flag(knob string) bool {
	text := r.text(knob)
	if text == "" {
		return false
	}
	e, err := classad.ParseExpr(text, classad.Old)
	if err == nil {
		switch v := e.Eval(nil); v.Kind() {
		case classad.KindBoolean, classad.KindInteger, classad.KindReal:
			return v.IsTrue()
		}
	}
	r.problem(knob, "not a boolean; False is used", "True or False", config.Error)
	return false
}

func (r *reader) cron(maxLoad float64) Cron {
	c := Cron{
		Family:      r.family,
		MaxLoad:     r.number(r.family+"_MAX_JOB_LOAD", maxLoad, 0.01, 1000),
		LogFailures: r.flag(r.family + "_LOG_NON_ZERO_EXIT"),
	}
	list := r.family + "_JOBLIST"
	for _, name := range r.cfg.List(list) {
		if slices.ContainsFunc(c.Jobs, func(j Job) bool { return strings.EqualFold(j.Name, name) }) {
			r.problem(list, "the job "+name+" is listed twice", "each name once", config.Warning)
			continue
		}
		if job, ok := r.job(name); ok {
			if job.Load > c.MaxLoad {
				r.problem(r.family+"_"+name+"_JOB_LOAD", "the job never runs: its load is above "+r.family+"_MAX_JOB_LOAD",
					"at most "+strconv.FormatFloat(c.MaxLoad, 'g', -1, 64), config.Warning)
			}
			c.Jobs = append(c.Jobs, job)
		}
	}
	return c
}

// job reads one job. It is false for one that cannot run, with a problem told.
func (r *reader) job(name string) (Job, bool) {
	knob := func(item string) string { return r.family + "_" + name + "_" + item }
	j := Job{
		Name: name, Mode: r.mode, Path: r.text(knob("EXECUTABLE")), Dir: r.text(knob("CWD")), Prefix: r.text(knob("PREFIX")),
		Kill: r.flag(knob("KILL")), Hup: r.flag(knob("RECONFIG")), Rerun: r.flag(knob("RECONFIG_RERUN")),
		Load: r.number(knob("JOB_LOAD"), r.load, 0, 100),
	}
	before := len(r.problems) // bad flags and loads have a default and do not stop the job
	if s, ok := r.cfg.Lookup(knob("EXECUTABLE")); ok {
		j.Origin = s.Origin
	}
	if j.Path == "" {
		r.problem(knob("EXECUTABLE"), "the job "+name+" has no program and is left out", "a path", config.Error)
	}
	if !r.modeOf(knob("MODE"), &j) {
		return Job{}, false
	}
	r.period(knob("PERIOD"), &j)
	if j.Prefix != "" && !attrName(j.Prefix) {
		r.problem(knob("PREFIX"), "no attribute can begin with this; the job is left out", "letters, digits and _", config.Error)
	}
	r.arguments(knob("ARGS"), &j)
	r.environment(knob("ENV"), &j)
	r.slots(knob("SLOTS"), &j)
	if text := r.text(knob("CONDITION")); text != "" {
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			r.problem(knob("CONDITION"), err.Error()+"; the job is left out", "an expression", config.Error)
		}
		j.Condition = e
	}
	sound := len(r.problems) == before
	r.metrics(knob("METRICS"), &j)
	return j, sound
}

func (r *reader) modeOf(knob string, j *Job) bool {
	text := r.text(knob)
	if text == "" {
		return true
	}
	i := slices.IndexFunc(modeNames[:], func(n string) bool { return strings.EqualFold(n, text) })
	if i < 0 {
		want := strings.Join(modeNames[:], ", ")
		if strings.EqualFold(text, "Continuous") {
			want = "WaitForExit, which is today's name"
		}
		r.problem(knob, "unknown mode; the job is left out", want, config.Error)
		return false
	}
	j.Mode = Mode(i)
	return true
}

// period reads a number with a suffix s, m or h.
func (r *reader) period(knob string, j *Job) {
	text := r.text(knob)
	if j.Mode == OneShot || j.Mode == OnDemand {
		return
	}
	if text == "" {
		r.problem(knob, "the job "+j.Name+" has no period and is left out", "a number of seconds, or with a suffix s, m or h", config.Error)
		return
	}
	digits, unit := text, time.Second
	switch text[len(text)-1] {
	case 's', 'S':
		digits = text[:len(text)-1]
	case 'm', 'M':
		digits, unit = text[:len(text)-1], time.Minute
	case 'h', 'H':
		digits, unit = text[:len(text)-1], time.Hour
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n < 0 || n > int64(math.MaxInt64/unit):
		r.problem(knob, "not a period; the job is left out", "a number of seconds, or with a suffix s, m or h", config.Error)
	case n == 0 && j.Mode == Periodic:
		r.problem(knob, "a period of 0 switches the job off", "at least 1", config.Error)
	}
	j.Period = time.Duration(n) * unit
}

func (r *reader) arguments(knob string, j *Job) {
	args, err := splitArgs(r.cfg.String(knob))
	if err != nil {
		r.problem(knob, err.Error()+"; the job is left out", "words between blanks, or the new syntax in double quotes", config.Error)
	}
	j.Args = append([]string{j.Name}, args...)
}

// splitArgs reads the new syntax when the text is in double quotes, else the
// old one.
func splitArgs(text string) ([]string, error) {
	if !jobenv.IsQuoted(text) {
		return jobenv.ArgsFromV1(text), nil
	}
	v2, err := jobenv.Unquote(text)
	if err != nil {
		return nil, err
	}
	return jobenv.ArgsFromV2(v2)
}

func (r *reader) environment(knob string, j *Job) {
	env := jobenv.Env{}
	if tool := r.text(r.family + "_CONFIG_VAL"); tool != "" {
		env[r.family+"_CONFIG_VAL"] = tool
	}
	if text := r.text(knob); text != "" {
		if err := env.MergeSubmit(text); err != nil {
			r.problem(knob, err.Error()+"; the job is left out", "NAME=value with ; between, or the new syntax in double quotes", config.Error)
		}
	}
	j.Env = env.List()
}

func (r *reader) slots(knob string, j *Job) {
	for _, word := range r.cfg.List(knob) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			r.problem(knob, "not a list of slot numbers; the job is left out", "numbers from 1", config.Error)
			return
		}
		j.Slots = append(j.Slots, n)
	}
}

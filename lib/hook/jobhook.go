// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// JobHook is a moment in the life of a job at which its starter runs a program of the
// machine's owner. It is spelled as in the name of the knob, <Keyword>_HOOK_<JobHook>.
type JobHook string

// The moments.
const (
	PrepareBeforeTransfer JobHook = "PREPARE_JOB_BEFORE_TRANSFER" // before the input is transferred
	PrepareJob            JobHook = "PREPARE_JOB"                 // after that, before the job
	UpdateJobInfo         JobHook = "UPDATE_JOB_INFO"             // while it runs
	JobExit               JobHook = "JOB_EXIT"                    // when it has ended, before its output is transferred
)

// jobHooks are all of them.
var jobHooks = [...]JobHook{PrepareBeforeTransfer, PrepareJob, UpdateJobInfo, JobExit}

// JobHooks are the hooks of jobs in a configuration. The starter chooses among them, for
// the job may name a keyword.
type JobHooks struct {
	Forced  string                 `json:",omitempty"` // STARTER_JOB_HOOK_KEYWORD
	Default string                 `json:",omitempty"` // STARTER_DEFAULT_JOB_HOOK_KEYWORD
	Sets    map[string]*JobHookSet `json:",omitempty"` // by keyword, in capital letters
}

// JobHookSet is what a configuration has under one keyword.
type JobHookSet struct {
	Paths map[JobHook]string `json:",omitempty"`
	// Others are the programs of the startd's hooks. A keyword that has only these is
	// defined: a job that names it has no hooks, instead of the default ones.
	Others      []string      `json:",omitempty"`
	PrepareArgs string        `json:",omitempty"` // PREPARE_JOB_ARGS, in the new syntax, without quotes
	ExitTimeout time.Duration // JOB_EXIT_TIMEOUT
}

// JobHooksFrom reads the hooks of jobs from the configuration of a starter, nil where
// there are none. A time that cannot be read is an error.
func JobHooksFrom(cfg *config.Snapshot) (*JobHooks, error) {
	h := &JobHooks{
		Forced:  strings.TrimSpace(cfg.String("STARTER_JOB_HOOK_KEYWORD")),
		Default: strings.TrimSpace(cfg.String("STARTER_DEFAULT_JOB_HOOK_KEYWORD")),
		Sets:    map[string]*JobHookSet{},
	}
	var bad []error
	for _, name := range cfg.Names() {
		keyword, what, ok := cutHookKnob(name)
		if !ok {
			continue
		}
		if h.Sets[keyword] == nil {
			set, err := jobHookSet(cfg, keyword)
			bad = append(bad, err)
			h.Sets[keyword] = set
		}
		h.Sets[keyword].other(what, strings.TrimSpace(cfg.String(keyword+"_HOOK_"+what)))
	}
	for keyword, set := range h.Sets {
		if len(set.Paths) == 0 && len(set.Others) == 0 {
			delete(h.Sets, keyword)
		}
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	if h.Forced == "" && h.Default == "" && len(h.Sets) == 0 {
		return nil, nil
	}
	return h, nil
}

// cutHookKnob takes the name of a hook's knob apart, which may begin with the name of a
// daemon and of a slot type: slot_type_1.STARTER.WEB_HOOK_JOB_EXIT. Those that set a
// keyword, as STARTER_JOB_HOOK_KEYWORD, look alike.
func cutHookKnob(name string) (keyword, what string, ok bool) {
	name = strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:])
	keyword, what, ok = strings.Cut(name, "_HOOK_")
	return keyword, what, ok && keyword != "" && what != "" && what != "KEYWORD"
}

// jobHookSet reads what the configuration has for jobs under a keyword.
func jobHookSet(cfg *config.Snapshot, keyword string) (*JobHookSet, error) {
	set := &JobHookSet{Paths: map[JobHook]string{}, PrepareArgs: strings.TrimSpace(cfg.String(keyword + "_HOOK_PREPARE_JOB_ARGS"))}
	for _, h := range jobHooks {
		if path := strings.TrimSpace(cfg.String(keyword + "_HOOK_" + string(h))); path != "" {
			set.Paths[h] = path
		}
	}
	limit, err := cfg.Duration(keyword + "_HOOK_JOB_EXIT_TIMEOUT")
	set.ExitTimeout = max(limit, time.Second) // a hook that has no time at all is no hook
	return set, err
}

// other notes a hook that is not of a job. What else stands under a keyword is no hook:
// arguments, times, and the directory of the documents' examples.
func (s *JobHookSet) other(what, path string) {
	if path == "" || what == "DIR" || strings.HasSuffix(what, "_ARGS") || strings.HasSuffix(what, "_TIMEOUT") || slices.Contains(jobHooks[:], JobHook(what)) {
		return
	}
	s.Others = append(s.Others, path)
}

// Chosen are the hooks of one job.
type Chosen struct {
	Keyword string
	*JobHookSet
	// Said is for the log: where the keyword comes from, in HTCondor's words.
	Said []string
}

// Choose returns the hooks of a job that names a keyword, "" for none. That of
// STARTER_JOB_HOOK_KEYWORD counts before the job's, and that of
// STARTER_DEFAULT_JOB_HOOK_KEYWORD where the job names none, or one under which no hook
// is sound: a job must not get around its owner's default with a keyword that nobody has
// defined. So it is documented. HTCondor 25.14 says in its log that it ignores such a
// keyword, and runs no hook then. sound says of a path whether it may be used.
func (h *JobHooks) Choose(named string, sound func(path string) bool) Chosen {
	var c Chosen
	if h == nil {
		return c
	}
	say := func(format string, args ...any) { c.Said = append(c.Said, fmt.Sprintf(format, args...)) }
	named = strings.TrimSpace(named)
	switch {
	case h.Forced != "":
		c.Keyword = h.Forced
		say("Using STARTER_JOB_HOOK_KEYWORD value from config file: %q", c.Keyword)
	case named != "" && h.Sets[strings.ToUpper(named)].any(sound):
		c.Keyword = named
		say("Using HookKeyword value from job ClassAd: %q", c.Keyword)
	case named != "":
		say("Ignoring HookKeyword value of %.100q from job ClassAd because hook not defined in config file", named)
	}
	if c.Keyword == "" && h.Default != "" {
		c.Keyword = h.Default
		say("Using STARTER_DEFAULT_JOB_HOOK_KEYWORD value from config file: %q", c.Keyword)
	}
	c.JobHookSet = h.Sets[strings.ToUpper(c.Keyword)]
	return c
}

// any reports whether one of the set's hooks is sound.
func (s *JobHookSet) any(sound func(string) bool) bool {
	if s == nil {
		return false
	}
	for _, path := range s.Paths {
		if sound(path) {
			return true
		}
	}
	return slices.ContainsFunc(s.Others, sound)
}

// Path is the program of a hook, "" for none.
func (c Chosen) Path(h JobHook) string {
	if c.JobHookSet == nil {
		return ""
	}
	return c.Paths[h]
}

// Unsound says what is wrong with the hooks of a job, nil for nothing: one that may not
// be used, or arguments that cannot be read. HTCondor's starter refuses the job for any
// of them, whether or not it comes to run that hook.
func (c Chosen) Unsound(stat func(path string) (fs.FileInfo, error)) error {
	if c.JobHookSet == nil {
		return nil
	}
	for _, h := range jobHooks {
		if path := c.Paths[h]; path != "" {
			if err := CheckPath(strings.ToUpper(c.Keyword)+"_HOOK_"+string(h), path, stat); err != nil {
				return err
			}
		}
	}
	if _, err := c.Args(PrepareJob); err != nil {
		return errs.E("hook.Choose", errs.Invalid, strings.ToUpper(c.Keyword)+"_HOOK_PREPARE_JOB_ARGS", err)
	}
	return nil
}

// Args are the arguments of a hook that its knobs give it, after its name. Those of
// PREPARE_JOB are those of PREPARE_JOB_BEFORE_TRANSFER too, as HTCondor has it.
func (c Chosen) Args(h JobHook) ([]string, error) {
	if c.JobHookSet == nil || h != PrepareJob && h != PrepareBeforeTransfer {
		return nil, nil
	}
	return jobenv.ArgsFromV2(c.PrepareArgs)
}

// The permissions of a file that matter here.
const (
	ownerMayExecute = 0o100
	anyoneMayWrite  = 0o002
)

// CheckPath says why the program at path may not be used as a hook, nil if it may: it has
// to be there and to be executable, and neither it nor its directory may be one that
// everybody can change. knob names it in the error.
func CheckPath(knob, path string, stat func(path string) (fs.FileInfo, error)) error {
	const op = "hook.CheckPath"
	if !filepath.IsAbs(path) {
		return errs.E(op, errs.Invalid, knob, fmt.Errorf("%s is no absolute path; give the full path of the program", path))
	}
	info, err := stat(path)
	if err != nil {
		return errs.E(op, errs.NotFound, knob, fmt.Errorf("invalid path specified for %s (%s): %w", knob, path, err))
	}
	mode := info.Mode()
	if mode.Perm()&anyoneMayWrite != 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is world-writable! Refusing to use. Take the permission away", knob, path))
	}
	if !mode.IsRegular() || mode.Perm()&ownerMayExecute == 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is not executable. Give its owner that permission", knob, path))
	}
	dir := filepath.Dir(path)
	if info, err = stat(dir); err != nil {
		return errs.E(op, errs.NotFound, knob, err)
	}
	if info.Mode().Perm()&anyoneMayWrite != 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is in a world-writable directory! Refusing to use. Take the permission from %s", knob, path, dir))
	}
	return nil
}

// name is how a hook appears in messages.
func (h JobHook) name(path string) string { return string(h) + " (" + filepath.Base(path) + ")" }

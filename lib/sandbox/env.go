// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// scratchWord in the value of any variable becomes the scratch directory.
const scratchWord = "#CoNdOrScRaTcHdIr#"

// EnvSpec is what a job's environment is made of.
type EnvSpec struct {
	Job, Machine *classad.Ad
	Settings     *Settings
	Slot         string // "slot1_1"
	Scratch      string // path of the scratch directory
	Iwd          string // where the job starts: Scratch, or its own Iwd when no files are moved
	Cpus         int    // cores of the slot
	StarterPID   int
	Home         string   // of the user the job runs as; "" leaves HOME as the job has it
	Temp         string   // TMPDIR and its likes: "/tmp" where the job has one of its own; "" is Scratch
	Inherited    []string // the starter's own environment
	Chirp        string   // path of the file by which the job reaches its shadow, "" for none
	Creds        string   // path of the directory with credentials, "" for none
	Tickets      string   // path of its ticket cache of Kerberos, "" for none
	Proxy        string   // path of the job's X.509 proxy, "" for none
	Marker       string   // NAME=value that tells the job's processes apart, "" for none
	// Script is "Pre" or "Post" for a program before or after the job: it has its
	// own PreEnvironment or PreEnv, and of the rest only what the starter says.
	Script string
	More   []string // what the starter says besides, as NAME=value
}

// Environment returns the environment of the job, sorted by name. Who wins over
// whom: what the starter says, the job, the thread counts,
// STARTER_JOB_ENVIRONMENT, what is inherited. An environment of the job that
// cannot be read is an error; problems are knobs that cannot.
func Environment(s EnvSpec) (list []string, problems []string, err error) {
	if s.Script != "" {
		return s.script()
	}
	env := make(jobenv.Env, 48)
	if text := s.Settings.Environment; text != "" {
		if err := env.MergeSubmit(text); err != nil {
			problems = append(problems, fmt.Sprintf("STARTER_JOB_ENVIRONMENT: %v", err))
		}
	}
	if err := mergeJob(env, s.Job, ""); err != nil {
		return nil, problems, err
	}
	base := make(jobenv.Env)
	for _, entry := range s.Inherited {
		if name, value, ok := strings.Cut(entry, "="); ok && s.Settings.Inherits.passes(name) {
			base[name] = value
		}
	}
	for name, value := range base {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	problems = append(problems, assigned(env, s)...)
	s.publish(env)
	s.threads(env)
	for name, value := range env {
		if strings.Contains(value, scratchWord) {
			env[name] = strings.ReplaceAll(value, scratchWord, s.Scratch)
		}
	}
	return env.List(), problems, nil
}

// script is Environment for a program before or after the job.
func (s EnvSpec) script() (list []string, problems []string, err error) {
	env := make(jobenv.Env, 32)
	if err := mergeJob(env, s.Job, s.Script); err != nil {
		return nil, nil, err
	}
	problems = assigned(env, s)
	s.publish(env)
	s.threads(env)
	env.MergeList(s.More)
	return env.List(), problems, nil
}

// threads sets how many threads a program may use, where it does not say.
func (s EnvSpec) threads(env jobenv.Env) {
	if s.Cpus <= 0 {
		return
	}
	for _, name := range s.Settings.ThreadVars {
		if env[name] == "" {
			env[name] = strconv.Itoa(s.Cpus)
		}
	}
}

// MergeJob reads Environment (new syntax), else Env (old) of the job.
func MergeJob(env jobenv.Env, job *classad.Ad) error { return mergeJob(env, job, "") }

// mergeJob is MergeJob of attributes whose names
// have a prefix for the programs before and after it.
func mergeJob(env jobenv.Env, job *classad.Ad, prefix string) error {
	if text, ok := job.EvalString(prefix+"Environment", nil); ok {
		if err := env.MergeV2(text); err != nil {
			return fmt.Errorf("job attribute %sEnvironment: %w", prefix, err)
		}
		return nil
	}
	if text, ok := job.EvalString(prefix+"Env", nil); ok {
		delim := byte(jobenv.V1Delimiter)
		if d, ok := job.EvalString("EnvDelim", nil); ok && len(d) == 1 {
			delim = d[0]
		}
		if err := env.MergeV1(text, delim); err != nil {
			return fmt.Errorf("job attribute %sEnv: %w", prefix, err)
		}
	}
	return nil
}

// publish sets what the starter itself says, over whatever is there.
func (s EnvSpec) publish(env jobenv.Env) {
	env["BATCH_SYSTEM"] = "HTCondor"
	env["_CONDOR_JOB_IWD"] = s.Iwd
	env["_CONDOR_JOB_PIDS"] = ""
	if bin := s.Settings.Bin; bin != "" {
		env["_CONDOR_BIN"] = bin
	}
	env["CONDOR_STARTER_PID"] = strconv.Itoa(s.StarterPID)
	env["_CONDOR_SCRATCH_DIR"] = s.Scratch
	env["APPTAINER_CACHEDIR"], env["SINGULARITY_CACHEDIR"] = s.Scratch, s.Scratch
	env["_CONDOR_SLOT"] = s.Slot
	for _, name := range [...]string{"TMPDIR", "TEMP", "TMP"} {
		env[name] = cmp.Or(s.Temp, s.Scratch)
	}
	env["_CONDOR_MACHINE_AD"] = filepath.Join(s.Scratch, MachineAdFile)
	env["_CONDOR_JOB_AD"] = filepath.Join(s.Scratch, JobAdFile)
	if s.Chirp != "" {
		env["_CONDOR_CHIRP_CONFIG"] = s.Chirp
	}
	if s.Creds != "" {
		env["_CONDOR_CREDS"] = s.Creds
	}
	if s.Tickets != "" {
		env["KRB5CCNAME"] = "FILE:" + s.Tickets
	}
	if s.Proxy != "" {
		env["X509_USER_PROXY"] = s.Proxy
	}
	if p := s.Settings.ChirpPrefix; p != "" {
		env["_CHIRP_DELAYED_UPDATE_PREFIX"] = p
	}
	if s.Settings.SetsHome && s.Home != "" {
		env["HOME"] = s.Home
	}
	if name, value, ok := strings.Cut(s.Marker, "="); ok {
		env[name] = value
	}
}

// words splits a list at blanks and commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Settings are what the configuration says about the environments of jobs. JSON
// gives them back as they were.
type Settings struct {
	Environment string   `json:",omitempty"` // STARTER_JOB_ENVIRONMENT
	Inherits    Inherits // JOB_INHERITS_STARTER_ENVIRONMENT
	ThreadVars  []string // STARTER_NUM_THREADS_ENV_VARS
	Bin         string   // BIN, "" for none
	ChirpPrefix string   // CHIRP_DELAYED_UPDATE_PREFIX as it is written, "" for none
	SetsHome    bool     // STARTER_SETS_HOME_ENV
	Nvidia      bool     // AUTO_SET_NVIDIA_VISIBLE_DEVICES
	// Resources are the machine's custom resources by name.
	Resources map[string]Resource `json:",omitempty"`
}

// Resource says how a job is told which assets of a custom resource it has.
type Resource struct {
	Variables  string // ENVIRONMENT_FOR_Assigned<NAME>
	Unassigned string // ENVIRONMENT_VALUE_FOR_UnAssigned<NAME>
}

// Inherits says which variables of the starter's environment a job has: all, or
// those that match one of Patterns and none that begins with a "!". Patterns of which
// each begins with a "!" let everything else pass.
type Inherits struct {
	All      bool     `json:",omitempty"`
	Patterns []string `json:",omitempty"` // in lower case
}

// SettingsFrom reads the configuration of a machine that has these custom resources.
func SettingsFrom(s *config.Snapshot, resources []string) (*Settings, error) {
	r := &config.Reader{Snapshot: s}
	set := &Settings{
		Environment: r.String("STARTER_JOB_ENVIRONMENT"), ThreadVars: words(r.String("STARTER_NUM_THREADS_ENV_VARS")), Bin: r.String("BIN"),
		ChirpPrefix: r.String("CHIRP_DELAYED_UPDATE_PREFIX"), SetsHome: r.Bool("STARTER_SETS_HOME_ENV"), Nvidia: r.Bool("AUTO_SET_NVIDIA_VISIBLE_DEVICES"),
	}
	// As with HTCondor what is no boolean is a list of patterns.
	const inherits = "JOB_INHERITS_STARTER_ENVIRONMENT"
	var err error
	if set.Inherits.All, err = s.Bool(inherits); err != nil {
		set.Inherits.Patterns = strings.FieldsFunc(strings.ToLower(r.String(inherits)), func(c rune) bool { return strings.ContainsRune(",; \t\r\n", c) })
	}
	for _, name := range resources {
		own := Resource{Variables: r.String("ENVIRONMENT_FOR_Assigned" + name), Unassigned: r.String("ENVIRONMENT_VALUE_FOR_UnAssigned" + name)}
		if own == (Resource{}) {
			continue
		}
		if set.Resources == nil {
			set.Resources = make(map[string]Resource)
		}
		set.Resources[strings.ToLower(name)] = own
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return set, nil
}

func (s *Settings) resource(name string) Resource { return s.Resources[strings.ToLower(name)] }

// passes reports whether a job has the variable name.
func (i *Inherits) passes(name string) bool {
	if i.All || len(i.Patterns) == 0 {
		return i.All
	}
	wanted, listed := false, false
	for _, pattern := range i.Patterns {
		pattern, refuse := strings.CutPrefix(pattern, "!")
		ok, err := path.Match(pattern, strings.ToLower(name))
		switch {
		case ok && err == nil && refuse:
			return false
		case !refuse:
			listed = true
			wanted = wanted || ok && err == nil
		}
	}
	return wanted || !listed
}

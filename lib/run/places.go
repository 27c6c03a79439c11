// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// CheckPlaces says which directories that an Execution Point writes to are not
// named as they have to be: by an absolute path, and not below a LOCAL_DIR that
// nobody has set. HTCondor's default for LOCAL_DIR is the home of the user
// condor; without that user it is nothing, and the log would go to /log. home
// says that there is such a home. The error is a config.Problems.
func CheckPlaces(s *config.Snapshot, home bool) error {
	var all config.Problems
	bad := func(set config.Setting, value, message, want string) {
		all = append(all, &config.Problem{File: set.Origin.String(), Knob: set.Name, Value: value, Class: config.BadValue, Message: message, Want: want})
	}
	local, _ := s.Lookup("LOCAL_DIR")
	unset := local.Value == "" || local.IsDefault && !home
	if !unset && !filepath.IsAbs(local.Value) {
		bad(local, local.Value, "the path is relative", "an absolute path")
	}
	for _, knob := range [...]string{"LOG", "EXECUTE", "LOCK", "RUN"} {
		set, ok := s.Lookup(knob)
		set.Name = knob // not in the letters of who set it
		switch {
		case !ok || set.Value == "":
		case unset && slices.ContainsFunc(set.Origin.Via, func(via string) bool { return strings.EqualFold(via, "LOCAL_DIR") }):
			if knob == "LOG" || knob == "EXECUTE" || !local.IsDefault {
				bad(set, set.Raw, "LOCAL_DIR is not set", "LOCAL_DIR = /an/absolute/path, or "+knob+" itself")
			}
		case !filepath.IsAbs(set.Value) && filepath.IsAbs(local.Value):
			bad(set, set.Value, "the path is relative", "an absolute path")
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// StarterProgram is the program that runs a job, with its whole argument vector:
// what STARTER names, else self with args. HTCondor's default, its own starter,
// does not count: it speaks another protocol with its startd.
func StarterProgram(s *config.Snapshot, self string, args []string) (path string, argv []string, err error) {
	set, ok := s.Lookup("STARTER")
	if !ok || set.Value == "" || set.Origin.Kind == config.Default {
		return self, args, nil
	}
	info, err := os.Stat(set.Value)
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
		err = errors.New("not a program that can be executed")
	}
	if err != nil {
		return "", nil, errs.E("run", errs.Invalid, "STARTER", fmt.Errorf("%v: STARTER = %s: %w", set.Origin, set.Value, err))
	}
	return set.Value, []string{set.Value}, nil
}

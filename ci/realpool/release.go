// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"
)

// release is a Debian release that has HTCondor, and the version that it had
// when it was last looked at.
type release struct{ suite, version string }

// releases are those that the tests know.
func releases() []release {
	return []release{{"sid", "25.14"}, {"trixie", "23.9"}}
}

// choose finds the release for what -htcondor says, and the version that the
// user insists on: empty if any version of the release will do.
func choose(htcondor string) (r release, insists string, err error) {
	var known []string
	for _, r := range releases() {
		switch {
		case htcondor == r.suite:
			return r, "", nil
		case htcondor == r.version || strings.HasPrefix(htcondor, r.version+"."):
			return r, htcondor, nil
		}
		known = append(known, fmt.Sprintf("%s (HTCondor %s)", r.suite, r.version))
	}
	return release{}, "", fmt.Errorf("realpool: -htcondor %q: want a Debian release or its version of HTCondor: %s", htcondor, strings.Join(known, ", "))
}

// isVersion says whether HTCondor's version is the one insisted on: 25.14.1 is
// 25.14, and 25.1 is not.
func isVersion(version, insists string) bool {
	return insists == "" || version == insists || strings.HasPrefix(version, insists+".")
}

// parseVersion finds the version in what condor_version prints.
func parseVersion(out string) (string, error) {
	words := strings.Fields(out)
	if len(words) < 2 || words[0] != "$CondorVersion:" {
		return "", fmt.Errorf("realpool: condor_version prints %q", out)
	}
	return words[1], nil
}

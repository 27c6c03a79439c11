// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"slices"
	"strings"
)

// The controllers of version 1 that a job is put under, with the names under
// which they are found mounted. Each costs the job's start some time, so those of
// v1Optional are for jobs with a limit that needs them. The rest is left alone.
var (
	v1Controllers = [...]string{"memory", "cpu", "cpuacct", "freezer"}
	v1Optional    = [...]string{"cpuset", "pids", "devices"}
)

// scope is the name of the group below that called name, on version 2, which has the
// job's processes. It is HTCondor's.
func scope(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return name + ".scope"
}

// Membership is one line of /proc/<pid>/cgroup: the group that a process is in
// within one hierarchy. Controllers is empty for version 2.
type Membership struct {
	Controllers []string
	Path        string
}

// ParseMembership reads the text of /proc/<pid>/cgroup. Lines that are not of
// its form are left out.
func ParseMembership(text []byte) []Membership {
	var all []Membership
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		m := Membership{Path: parts[2]}
		if parts[1] != "" {
			m.Controllers = strings.Split(parts[1], ",")
		}
		all = append(all, m)
	}
	return all
}

// pathIn returns the group of the hierarchy that has controller, "/" if the
// text did not say. An empty controller asks for version 2.
func pathIn(all []Membership, controller string) string {
	for _, m := range all {
		if slices.Contains(m.Controllers, controller) || (controller == "" && len(m.Controllers) == 0) {
			return m.Path
		}
	}
	return "/"
}

// validName reports whether name can be one directory below a base.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00\n") && len(name) < 256
}

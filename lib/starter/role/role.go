// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package role owns the words by which a program becomes a starter. It is apart
// from lib/starter because condor_starter has nothing but them: the starter itself
// is a part of condor_startd, so that both are one file on disk and share the
// memory of its text.
package role

import "strings"

// Command is the first argument by which a program is asked to be a starter.
const Command = "starter"

// Variable names, in the environment of a starter, the program of the process
// that starts it. condor_starter executes that one, whatever stands beside it: an
// administrator may have put a script in the place of condor_startd.
const Variable = "EXECPOINT_STARTER_PROGRAM"

// Of is an environment with the program that condor_starter is to execute; "" is
// none.
func Of(env []string, program string) []string {
	out := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !Is(entry) {
			out = append(out, entry)
		}
	}
	if program != "" {
		out = append(out, Variable+"="+program)
	}
	return out
}

// Is reports whether an entry of an environment is Variable's. A job does not
// inherit it.
func Is(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return name == Variable
}

// Attribute is what condor_starter says of itself with ClassadOption: the file it
// is in. A startd that STARTER leads to that very file need not execute it, since
// it would only execute the startd's own program. A script around condor_starter
// is another file.
const Attribute = "ExecpointStarter"

// ClassadOption asks a starter to print an ad of what it can, as HTCondor's does.
const ClassadOption = "-classad"

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"strings"
)

// Document returns the page docs/checks.md: every finding with its
// explanation and an example that has it.
func Document() []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Made by go generate ./lib/check from the table in lib/check/rule.go. Do not edit. -->

# What condor_ep check finds

    condor_ep check [-json] [-warnings-ok] [-machine FILE.json] [FILE...]

reads a configuration as the daemon would, starts nothing, and prints everything that is wrong with it. Without a FILE it
reads the configuration of this machine; each FILE is read as a configuration of its own. Lines that cannot be read are
left out, so that the rest is checked as well.

With -machine the configuration is checked for the machine that the file describes, as condor_ep slots has it, and not for
this one. Inventory programs are not run: slots may ask for any amount of a resource that only such a program counts, unless
the description says how many there are.

Exit status: 0 nothing is wrong; 1 something is; 2 the command line or a file cannot be used. With -warnings-ok warnings
are shown and do not count. Check a configuration before it is rolled out, where the answer can still be read. In a service
it may talk but not decide: the daemon begins with much of what is found here, as HTCondor's does, and a node that is kept
down serves nobody. The minus sign says so:

    [Service]
    ExecStartPre=-/usr/bin/condor_ep check

A finding names its code, the place (of the use statement, with the template, for what a template sets), the knob with its
value, what is wrong and what to write instead. With -json it is one object to a line, with the fields code, severity,
file, line, column, template, knob, value, message, explanation and instead; those that do not apply are left out.

| Code | Severity | What |
|---|---|---|
`)
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", r.Code, strings.ToLower(string(r.Code)), r.Severity, r.Title)
	}
	for _, r := range Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n%s: %s.\n\n%s\n\n%s\n\n", r.Code, upper(r.Severity.String()), r.Title, r.Why, r.Instead)
		for line := range strings.Lines(r.Example) {
			b.WriteString("    " + line)
		}
	}
	return b.Bytes()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

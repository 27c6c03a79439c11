// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/commands"
)

// Every command of the table is one of the program, with its own help, the
// options that the table gives it (a difference panics), and the same answer to
// an option that it does not have.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	for _, c := range commands.EP.Commands {
		words := strings.Fields(c.Name)
		for _, help := range [][]string{append(slices.Clone(words), "-help"), append(slices.Clone(words), "-h"), append([]string{"help"}, words...)} {
			var out, errOut bytes.Buffer
			if status := tool(help, &out, &errOut); status != exitOK || out.String() != commands.EP.Help(c.Name) || errOut.Len() > 0 {
				t.Errorf("%v: status %d\n%s%s", help, status, out.String(), errOut.String())
			}
		}
		if n := strings.Count(commands.EP.Help(c.Name), "\n"); n > 60 {
			t.Errorf("%s: %d lines of help", c.Name, n)
		}
		var out, errOut bytes.Buffer
		want := "condor_ep " + c.Name + ": unknown option -no-such-option\ncondor_ep " + c.Name + " -help shows the options\n"
		if status := tool(append(words, "-no-such-option"), &out, &errOut); status != exitUsage || out.Len() > 0 || errOut.String() != want {
			t.Errorf("%s: status %d\n%s%s", c.Name, status, out.String(), errOut.String())
		}
	}
}

// What the program says of itself, and to a slip of the finger.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   string
		status int
		out    string
		errOut string
	}{
		{"", exitUsage, "", commands.EP.Overview()},
		{"help", exitOK, commands.EP.Overview(), ""},
		{"-h", exitOK, commands.EP.Overview(), ""},
		{"-help", exitOK, commands.EP.Overview(), ""},
		{"--help", exitOK, commands.EP.Overview(), ""},
		{"help help", exitOK, commands.EP.Overview(), ""},
		{"statsu", exitUsage, "", "condor_ep: unknown command \"statsu\"; did you mean status?\ncondor_ep -help shows them\n"},
		{"help drian", exitUsage, "", "condor_ep: unknown command \"drian\"; did you mean drain?\ncondor_ep -help shows them\n"},
		{"classads", exitUsage, "", "condor_ep: unknown command \"classads\"; did you mean classad?\ncondor_ep -help shows them\n"},
		{"submit", exitUsage, "", "condor_ep: unknown command \"submit\"; there are run, status, explain, history, drain, vacate, rehome, check, slots, simulate, classad\ncondor_ep -help shows them\n"},
		{"x/a.sub -keep", exitUsage, "", "condor_ep: to run the jobs of a submit file: condor_ep run x/a.sub -keep\n"},
		{"run -kep x", exitUsage, "", "condor_ep run: unknown option -kep; did you mean -keep?\ncondor_ep run -help shows the options\n"},
		{"run", exitUsage, "", "condor_ep run: want one submit file, got 0\n\nUsage: condor_ep run [-config FILE] [-local-name NAME] [-json] [-keep] JOB.sub\ncondor_ep run -help says more\n"},
	} {
		var out, errOut bytes.Buffer
		if status := tool(strings.Fields(tt.args), &out, &errOut); status != tt.status || out.String() != tt.out || errOut.String() != tt.errOut {
			t.Errorf("%q: status %d\n%s%s", tt.args, status, out.String(), errOut.String())
		}
	}
	for _, word := range []string{"version", "-v", "-version", "--version"} {
		var out, errOut bytes.Buffer
		if status := tool([]string{word}, &out, &errOut); status != exitOK || !strings.HasPrefix(out.String(), commands.CondorVersion+"\n$CondorPlatform: ") || errOut.Len() > 0 {
			t.Errorf("%s: status %d\n%s%s", word, status, out.String(), errOut.String())
		}
	}
}

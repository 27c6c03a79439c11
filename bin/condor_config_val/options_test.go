// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

// TestAbbreviations reads each option in its shortest form, and one letter
// shorter where that is not another option.
func TestAbbreviations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		arg string
		ok  func(o *options) bool // nil for what is refused
	}{
		{"-raw", func(o *options) bool { return o.raw }}, {"-ra", nil},
		{"-def", func(o *options) bool { return o.def }}, {"-d", func(o *options) bool { return o.dump }},
		{"-de", func(o *options) bool { return !o.def && !o.dump }}, // -debug
		{"-v", func(o *options) bool { return o.verbose }}, {"-verbose:use", func(o *options) bool { return o.verbose }}, {"-verboses", nil},
		{"-ex", func(o *options) bool { return o.expand }}, {"-ev", func(o *options) bool { return o.evaluate }}, {"-e", nil},
		{"-t", func(o *options) bool { return o.condorHome }}, {"-tr", func(o *options) bool { return o.trace }},
		{"-mi", func(o *options) bool { return true }}, {"-mac", func(o *options) bool { return o.macro && !o.macroPath }}, {"-m", nil},
		{"-macro:path", func(o *options) bool { return o.macroPath }}, {"-macro:pat", func(o *options) bool { return !o.macroPath }},
		{"-us", func(o *options) bool { return o.used && !o.unused }}, {"-unus", func(o *options) bool { return o.unused && !o.used }}, {"-u", nil},
		{"-sum", func(o *options) bool { return o.summary && o.write == "-" }}, {"-summary:det", func(o *options) bool { return o.writeOpts.Detected.Show }},
		{"-co", func(o *options) bool { return o.listSources }}, {"-col", func(o *options) bool { return o.daemon == "collector" }},
		{"-ma", func(o *options) bool { return o.daemon == "master" }}, {"-st", func(o *options) bool { return o.daemon == "startd" }},
		{"--root-config", func(o *options) bool { return o.root == "next" && o.rootGiven }}, {"--raw", nil}, {"-roo", nil},
		{"-lo", func(o *options) bool { return o.localName == "next" }}, {"-sub", func(o *options) bool { return o.subsystem == "next" }}, {"-su", nil},
		{"-wri", func(o *options) bool {
			return o.write == "next" && o.writeOpts.Matching == settings.Kind{Show: true, Comment: true}
		}},
		{"-writeconfig:com,def,env", func(o *options) bool {
			return o.writeOpts.Defaults == settings.Kind{Show: true, Comment: true} && o.writeOpts.Environment.Comment && !o.writeOpts.Matching.Show
		}},
		{"-check-if", func(o *options) bool { return o.hasCondition && o.condition == "next" }}, {"-check", nil},
		{"-", nil}, {"--", nil}, {"-raw:x", nil},
	} {
		o, err := parse([]string{tt.arg, "next"}, func(string) {})
		var wrong *usageError
		switch {
		case tt.ok == nil && (!errors.As(err, &wrong) || !strings.HasPrefix(wrong.message, tt.arg+" is not a valid argument")):
			t.Errorf("%s: %+v, %v", tt.arg, o, err)
		case tt.ok != nil && (err != nil || !tt.ok(o)):
			t.Errorf("%s: %+v, %v", tt.arg, o, err)
		}
	}
}

// TestFactsChange reads the files again when they change what is counted.
func TestFactsChange(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	sys := testSystem(t.TempDir(), []string{"CONDOR_CONFIG=ONLY_ENV", "_CONDOR_COUNT_HYPERTHREAD_CPUS=False"}, &stdout, &stderr)
	asked := 0
	sys.facts = func(snap *config.Snapshot) (map[string]string, bool) {
		asked++
		if snap == nil {
			return map[string]string{"DETECTED_CPUS": "8"}, false
		}
		count, err := snap.Bool("COUNT_HYPERTHREAD_CPUS")
		return map[string]string{"DETECTED_CPUS": "4"}, !count && err == nil
	}
	if exit := tool([]string{"DETECTED_CPUS"}, sys); exit != exitOK || stdout.String() != "4\n" || stderr.Len() > 0 || asked != 2 {
		t.Errorf("exit %d, %q, %q, asked %d times", exit, stdout.String(), stderr.String(), asked)
	}
}

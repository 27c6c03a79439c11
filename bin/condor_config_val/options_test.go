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
		{"-raw", func(o *options) bool { return o.show.Raw }}, {"-ra", nil},
		{"-def", func(o *options) bool { return o.show.Default }}, {"-d", func(o *options) bool { return o.what.dump }},
		{"-de", func(o *options) bool { return !o.show.Default && !o.what.dump }}, // -debug
		{"-v", func(o *options) bool { return o.show.Verbose }}, {"-verbose:use", func(o *options) bool { return o.show.Verbose }}, {"-verboses", nil},
		{"-ex", func(o *options) bool { return o.show.Expand }}, {"-ev", func(o *options) bool { return o.show.Evaluate }}, {"-e", nil},
		{"-t", func(o *options) bool { return o.what.home }}, {"-tr", func(o *options) bool { return o.what.trace }},
		{"-mi", func(o *options) bool { return true }}, {"-mac", func(o *options) bool { return o.what.macro && !o.what.macroPath }}, {"-m", nil},
		{"-macro:path", func(o *options) bool { return o.what.macroPath }}, {"-macro:pat", func(o *options) bool { return !o.what.macroPath }},
		{"-us", func(o *options) bool { return o.show.Used && !o.show.Unused }}, {"-unus", func(o *options) bool { return o.show.Unused && !o.show.Used }}, {"-u", nil},
		{"-sum", func(o *options) bool { return o.write.summary && o.write.file == "-" }}, {"-summary:det", func(o *options) bool { return o.write.how.Detected.Show }},
		{"-co", func(o *options) bool { return o.what.sources }}, {"-col", func(o *options) bool { return o.daemon.kind == "collector" }},
		{"-ma", func(o *options) bool { return o.daemon.kind == "master" }}, {"-st", func(o *options) bool { return o.daemon.kind == "startd" }},
		{"--root-config", func(o *options) bool { return o.read.root == "next" && o.read.rootGiven }}, {"--raw", nil}, {"-roo", nil},
		{"-lo", func(o *options) bool { return o.read.localName == "next" }}, {"-sub", func(o *options) bool { return o.read.subsystem == "next" }}, {"-su", nil},
		{"-wri", func(o *options) bool {
			return o.write.file == "next" && o.write.how.Matching == settings.Kind{Show: true, Comment: true}
		}},
		{"-writeconfig:com,def,env", func(o *options) bool {
			return o.write.how.Defaults == settings.Kind{Show: true, Comment: true} && o.write.how.Environment.Comment && !o.write.how.Matching.Show
		}},
		{"-check-if", func(o *options) bool { return o.what.hasCondition && o.what.condition == "next" }}, {"-check", nil},
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

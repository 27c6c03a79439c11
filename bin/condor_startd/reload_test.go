// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A reload is all or nothing. Whoever reads the configuration may refuse it, the
// engine, what tells collectors, security or the log: then nobody has taken
// anything over, and the log names the setting, its value and what would be right.
func TestReloadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	l := newSite(t, "STARTD_ATTRS = Hall\nHall = \"south\"\nSTARTD_DEBUG = D_ALWAYS\n").live()
	good, err := os.ReadFile(l.path("condor_config"))
	l.must(err)
	refused := func() int { return strings.Count(l.log(), "the configuration was not taken over, the old one stays") }
	taken := func() int { return strings.Count(l.log(), "configuration taken over") }
	reload := func(lines string) {
		l.must(os.WriteFile(l.path("condor_config"), append(good[:len(good):len(good)], lines...), 0o644))
		l.must(l.cmd.Process.Signal(syscall.SIGHUP))
	}
	const more = "Hall = \"north\"\nALLOW_READ = somebody@else\nCOLLECTOR_HOST = 127.0.0.1:2\nSTARTD_DEBUG = D_FULLDEBUG\n"
	for i, bad := range []struct{ who, line, says string }{
		{"the engine", "MAX_PARTITIONABLE_SLOT_CLAIM_TIME = 10000000000", `knob MAX_PARTITIONABLE_SLOT_CLAIM_TIME: is too long a time \(value \\?"10000000000\\?", want a number of seconds\)`},
		{"the engine's policy", "PREEMPT = (", `knob PREEMPT: .*value`},
		{"what tells collectors", "ENABLE_STARTD_DAEMON_AD = perhaps", `ENABLE_STARTD_DAEMON_AD.*perhaps.* true, false (or|nor) auto`},
		{"what tells collectors", "COLLECTOR_HOST = 127.0.0.1:70000", `COLLECTOR_HOST.*127\.0\.0\.1:70000.*want host`},
		{"security", "SEC_READ_ENCRYPTION = MAYBE", `SEC_READ_ENCRYPTION = .*MAYBE.*want REQUIRED, PREFERRED, OPTIONAL or NEVER`},
		{"the log", "MAX_STARTD_LOG = much", `MAX_STARTD_LOG.*much.*want a number and a unit`},
		{"the directories of slots", "SLOT1_EXECUTE = some/where", `SLOT1_EXECUTE: is not an absolute path .*some/where.*want the full path of a directory`},
		{"the network", "IN_LOWPORT = 9000\nIN_HIGHPORT = 8000", `IN_LOWPORT.*9000`},
		{"the network", "ENABLE_IPV4 = False\nENABLE_IPV6 = False", `ENABLE_IPV6.*switches the last protocol off`},
		{"the machine", "DISK = -7", `DISK: is out of range .*-7.*want 0 to`},
		{"whose files count", "CONDOR_IDS = nobody", `CONDOR_IDS.*nobody.*is no uid\.gid`},
		{"every knob's type", "POLLING_INTERVAL = never", `knob POLLING_INTERVAL: .*never.*want`},
	} {
		reload(more + bad.line + "\n")
		eventually(t, bad.who+" refuses "+bad.line, func() error {
			if got := refused(); got != i+1 {
				return errors.New(l.log())
			}
			return nil
		})
		line := l.log()[strings.LastIndex(l.log(), "the configuration was not taken over"):]
		line, _, _ = strings.Cut(line, "\n")
		if !regexp.MustCompile(bad.says).MatchString(line) {
			t.Errorf("%s: the log says %q, want %s", bad.line, line, bad.says)
		}
		if got := taken(); got > 0 {
			t.Fatalf("%s: the configuration was taken over", bad.line)
		}
		// Whoever reads may still ask, so security is as it was; so are the ads and
		// what condor_config_val shows.
		l.shows(`Hall = "south"`)
		if got := l.value("Hall"); got != `"south"` {
			t.Errorf("%s: condor_config_val shows %s", bad.line, got)
		}
		if strings.Contains(l.log(), "slot1: state State=") {
			t.Errorf("%s: the log is as the new configuration says", bad.line)
		}
		if strings.Contains(l.log(), "127.0.0.1:2") {
			t.Errorf("%s: the new collector is told", bad.line)
		}
	}
	reload("Hall = \"north\"\n")
	l.shows(`Hall = "north"`)
	if got := l.value("Hall"); got != `"north"` || taken() != 1 {
		t.Errorf("a configuration without a mistake: Hall = %s, taken over %d times", got, taken())
	}
	l.end()
}

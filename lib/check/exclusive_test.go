// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"
)

// TestMissed checks what people really wrote: each text has this one finding,
// which says what was meant, or none.
//
// row: S0-221
func TestMissed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		code Code // "": nothing is wrong
		says string
	}{
		{"START = KeyboardIdle < 30 && KeyboardIdle > 900", NeverMet, "KeyboardIdle < 30 || KeyboardIdle > 900, or the two numbers exchanged"},
		{"START = KeyboardIdle > 30 && KeyboardIdle < 900", "", ""},
		{"START = ClockMin > 1200 && ClockMin < 360", NeverMet, "ClockMin > 1200 || ClockMin < 360"},
		{"START = ClockMin > 1200 || ClockMin < 360", "", ""},
		{"START = 1200 < ClockMin && LoadAvg < 0.3 && 360 > ClockMin", NeverMet, "1200 < ClockMin || 360 > ClockMin"},
		{"START = ClockMin > 360 || ClockMin < 1200", NeverMet, "true of every number"},
		{"START = ClockDay == 0 && ClockDay == 6", NeverMet, "ClockDay == 0 || ClockDay == 6"},
		{"START = ClockDay != 0 && ClockDay != 6", "", ""},
		{"START = ClockDay != 0 || ClockDay != 6", NeverMet, "ClockDay != 0 && ClockDay != 6"},
		{"START = ClockDay >= 5 && ClockDay <= 5", "", ""},
		{"START = ClockDay > 5 && ClockDay <= 5", NeverMet, "never true together"},
		{"START = (ClockMin < 480 || ClockMin > 1020) && KeyboardIdle > 900", "", ""},
		{"START = ClockMin > 15 * 60 && ClockMin < 6 * 60", NeverMet, "ClockMin > 15 * 60 || ClockMin < 6 * 60"},
		{`START = TARGET.Owner == "alice" && TARGET.Owner == "bob"`, NeverMet, `TARGET.Owner == "alice" || TARGET.Owner == "bob"`},
		{`START = TARGET.Owner == "alice" || TARGET.Owner == "bob"`, "", ""},
		{`START = TARGET.Owner != "alice" && TARGET.Owner != "bob"`, "", ""},
		{"START = MY.Memory > 9000 && TARGET.Memory < 10", "", ""},
		{"START = TARGET.Owner == alice", Unquoted, `TARGET.Owner == "alice"`},
		{`START = "alice" == TARGET.Owner`, "", ""},
		{"START = OpSys == LINUX", Unquoted, `OpSys == "LINUX"`},
		{"START = TARGET.Owner == MY.RemoteOwner", "", ""},
		{"Boss = \"alice\"\nSTARTD_ATTRS = Boss\nSTART = TARGET.Owner == Boss", "", ""},
		{"START = yes", NoCondition, "instead  True"},
		{"PREEMPT = off", NoCondition, "instead  False"},
		{"START = TARGET.Ownr =?= \"x\"", NearAttribute, "Owner"},
		{"EXECUTE = /no/such/directory", ToBeMade, "the daemon makes it"},
		{"SLOT2_EXECUTE = /no/such/directory", NoDirectory, "does not exist"},
		{"SLOT2_EXECUTE = /etc/hostname", NoDirectory, "names a file"},
		{"EXECUTE = /usr/libexec", "", ""},
		{"SINGULARITY = /usr/bin/singularity\nJAVA = /usr/bin/java", "", ""},
		{"SINGULARITY = /opt/bin/singularity", NoSuchFile, "does not exist"},
		{"MEMORY = -5", OutOfRange, "less than nothing"},
		{"RESERVED_DISK = -1", OutOfRange, "less than nothing"},
		{"SLOT_TYPE_1 = cpus=-1\nNUM_SLOTS_TYPE_1 = 1", OutOfRange, "cpus=-1"},
		{"MEMORY = 4GB", WrongType, "4096, in MiB"},
		{"RESERVED_DISK = 1.5 GiB", WrongType, "1536, in MiB"},
		{"POLLING_INTERVAL = 2h", WrongType, "7200, in seconds"},
		{"UPDATE_INTERVAL = 5 min", WrongType, "300, in seconds"},
		{"MAXJOBRETIREMENTTIME = 2h", Unparsable, "7200, in seconds"},
		{"COLLECTOR_HOST = cm.example.org:abc", WrongType, "cm.example.org:9618"},
		{"COLLECTOR_HOST = cm.example.org:96180", WrongType, "96180"},
		{"COLLECTOR_HOST = cm.example.org:9618?sock=collector, [::1]:9618", "", ""},
		{"COLLECTOR_HOST = ::1", "", ""},
		{"SLOT1_TYPE_START = True", NearMiss, "SLOT_TYPE_1_START"},
		{"DAEMON_LIST = MASTER, STRATD", NoDaemon, "STARTD"},
		{"DAEMON_LIST = MASTER STARTD SHARED_PORT", "", ""},
		{"START = True\nSTART = False", SetTwice, "its value of line 1, True, does not count"},
		{"START = True\nSTART = True", "", ""},
		{"START = True\nSTART = $(START) && KeyboardIdle > 60", "", ""},
		{"if defined X\nMEMORY = 1\nelse\nMEMORY = 2\nendif", "", ""},
		{"mine = 1\nmine = 2", "", ""},
	} {
		list := checked(t, c.text+"\n")
		switch {
		case c.code == "" && len(list) > 0:
			t.Errorf("%s: %v", c.text, list)
		case c.code != "" && (len(list) != 1 || list[0].Code != c.code):
			t.Errorf("%s: %v, want one %s", c.text, list, c.code)
		case c.code != "" && !slices.ContainsFunc(list, func(f Finding) bool { return strings.Contains(f.String(), c.says) }):
			t.Errorf("%s: %v, want %q", c.text, list, c.says)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/config"
)

func ExampleParse() {
	s, err := config.Parse("/etc/condor/condor_config", `
use POLICY : Always_Run_Jobs
START = $(START) && $(Daytime)
Daytime = ClockMin > 480
NUM_SLOT = 2
`, config.Options{Subsystem: "STARTD"})
	if err != nil {
		fmt.Println(err)
		return
	}
	start, _ := s.Lookup("START")
	fmt.Println(start.Value, "from", start.Origin)
	fmt.Println("built from", start.Earlier[0], "by way of", start.Origin.Via)
	for _, w := range s.Warnings() {
		fmt.Println(w.Error())
	}
	// Output:
	// True && ClockMin > 480 from /etc/condor/condor_config:3
	// built from use POLICY:ALWAYS_RUN_JOBS (/etc/condor/condor_config:2) by way of [Daytime]
	// /etc/condor/condor_config:5:1: warning: knob NUM_SLOT: is no knob and nothing uses it (want NUM_SLOTS)
}

func ExampleProblems() {
	_, err := config.Parse("/etc/condor/condor_config", "START = True\nif START\nSUSPEND\n", config.Options{})
	fmt.Println(err)
	// Output:
	// /etc/condor/condor_config:2:4: is not a condition (value "START", want true, false, a number, defined NAME or version >= X.Y.Z)
	// /etc/condor/condor_config:2:1: the file ends inside this if (want endif)
}

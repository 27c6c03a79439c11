// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

func snapshot() *config.Snapshot {
	snap, err := config.Parse("/etc/condor/condor_config", "A = 1\nB = $(A) two\nUPDATE_INTERVAL = 300\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		panic(err)
	}
	return snap
}

func Example() {
	snap := snapshot()
	p := settings.Printer{Out: os.Stdout, Err: os.Stdout, Verbose: true}
	fmt.Println(p.Print("b", settings.Look(snap, "b")))
	fmt.Println(p.Print("nope", settings.Look(snap, "nope")))
	// Output:
	// B = 1 two
	//  # at: /etc/condor/condor_config, line 2
	//  # raw: B = $(A) two
	//
	// true
	// Not defined: NOPE
	//
	// false
}

func ExampleLook() {
	a := settings.Look(snapshot(), "UPDATE_INTERVAL")
	fmt.Println(a.Name, a.Value, a.Default, a.At)
	// Output:
	// UPDATE_INTERVAL 300 300 <Default>
}

func ExampleWrite() {
	err := settings.Write(os.Stdout, snapshot(), settings.WriteOptions{Matching: settings.Kind{Show: true, Comment: true}})
	fmt.Println(err)
	// Output:
	// #
	// # from /etc/condor/condor_config
	// #
	// A = 1
	// B = $(A) two
	// #UPDATE_INTERVAL = 300
	// <nil>
}

func ExamplePrinter_Dump() {
	p := settings.Printer{Out: os.Stdout, Err: os.Stderr, Expand: true}
	p.Dump(snapshot(), []string{"^[ab]$"})
	// Output:
	// # Configuration from machine: <unknown hostname>
	//
	// # Parameters with names that match ^[ab]$:
	// A = 1
	// B = 1 two
	// # Contributing configuration file(s):
}

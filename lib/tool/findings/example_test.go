// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"context"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/findings"
)

// A configuration is checked for a machine of which nothing is known.
func Example() {
	list := findings.Machine{}.Of(context.Background(), config.Options{
		Root: "/etc/condor/condor_config", Subsystem: "STARTD",
		ReadFile: func(string) ([]byte, error) { return []byte("LOCAL_DIR = /var\nSTRAT = True\n"), nil },
	})
	_ = findings.Print(os.Stdout, list, false)
	// Output:
	// /etc/condor/condor_config:2:1: warning EP010: STRAT is no knob and nothing uses it
	//     instead  START
}

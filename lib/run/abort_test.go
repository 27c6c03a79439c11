// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// TestDivisionAborts starts with a layout that does not fit the machine: in
// every mode the details are logged, and ABORT keeps the EP from starting.
//
// row: S4-049
func TestDivisionAborts(t *testing.T) {
	t.Parallel()
	for mode, starts := range map[string]bool{"CONTINUE": true, "CLEAR": true, "ABORT": false} {
		snap, err := config.Parse("ep.conf", "STARTD_DETECT_GPUS = false\nSLOT_TYPE_1 = cpus=9\nNUM_SLOTS_TYPE_1 = 1\nSLOT_CONFIG_FAILURE_MODE = "+mode+"\n",
			config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		n := &node{o: Options{
			Config: snap, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Inventory: &machine.Inventory{UsableCores: 4, UsableMemoryMiB: 4000, Execute: machine.Disk{FreeKiB: 90000}},
		}}
		ledger, err := n.divide(t.Context())
		if (err == nil) != starts || (ledger != nil) != starts {
			t.Errorf("%s: %v", mode, err)
		}
		if want := "wants 9 Cpus, 4 of 4 left (ep.conf:2"; !strings.Contains(log.String(), want) || !starts && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, logged\n%s", mode, err, &log)
		}
	}
}

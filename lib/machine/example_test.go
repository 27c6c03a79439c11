// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// A scanner of one's own tells of a machine and of a resource that no other knows.
// The owner's configuration is the last scanner.
func ExampleScan() {
	mine := machine.ScannerFunc("bench", func(inv *machine.Inventory) error {
		inv.DetectedCores, inv.UsableCores, inv.DetectedMemoryMiB = 8, 8, 16384
		inv.Learn("data sheet", "DetectedCores", "UsableCores", "DetectedMemoryMiB")
		inv.AddResource("bench", machine.Resource{Name: "Boards", IDs: []string{"blue", "red"}})
		return nil
	})
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	inv, problems := machine.Scan(context.Background(), now, mine)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	snap, err := config.Parse("example.conf", "RESERVED_MEMORY = 1024\n", config.Options{
		Subsystem: "STARTD", Facts: machine.ConfigFacts(inv),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("problems:", inv.Apply(context.Background(), now, machine.ConfigScanner(snap)))
	fmt.Println(inv.UsableMemoryMiB, "MiB, from", inv.Facts["UsableMemoryMiB"].Source)
	fmt.Println(inv.Resources[0].Name, inv.Resources[0].IDs, "from", inv.Facts["Resources.Boards"].Source)
	// Output:
	// problems: []
	// 15360 MiB, from data sheet, RESERVED_MEMORY example.conf:1
	// Boards [blue red] from bench
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep_test

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// An engine for a machine of eight cores is asked for a claim: events go in, and
// what is to be done comes out.
func ExampleEngine() {
	now := clock.Instant{Wall: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Boot: time.Hour}
	snap, err := config.Parse("example.conf", "NUM_CPUS = 8\nMEMORY = 4096\nDISK = 1000000\nSTART = TARGET.RequestCpus < 3\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		fmt.Println(err)
		return
	}
	inv, _ := machine.Scan(context.Background(), now.Wall, machine.ScannerFunc("example", func(inv *machine.Inventory) error {
		inv.FullHostname = "node.example.org"
		return nil
	}))
	if problems := inv.Apply(context.Background(), now.Wall, machine.ConfigScanner(snap)); len(problems) > 0 {
		fmt.Println(problems)
	}
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger, _ := slot.Build(layout, inv)
	engine, _, err := ep.New(ep.Config{
		Snapshot: snap, Inventory: inv, Ledger: ledger, Address: "<127.0.0.1:9618>", Start: now.Wall.Unix(),
		NewSecret: func() claim.Secret { return "not much of one" },
	}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cpus := range []int64{2, 3} {
		job := classad.NewAd()
		job.SetInt("RequestCpus", cpus)
		job.SetInt("RequestMemory", 1024)
		job.SetInt("RequestDisk", 1000)
		for _, effect := range engine.Step(now, ep.ClaimRequested{Ref: ep.Ref{By: ep.OwnQueue, N: 1}, Slot: slot.ID{N: 1}, Job: job}) {
			switch e := effect.(type) {
			case ep.Transitioned:
				fmt.Println(e.Slot, e.Decision)
			case ep.Reply:
				if e.Err != nil {
					fmt.Println(e.Err)
				} else {
					fmt.Println("granted", e.Granted.Name)
				}
			}
		}
	}
	// Output:
	// slot1_1 Owner/Idle -> Claimed/Idle (5): claiming protocol successful
	// granted slot1_1@node.example.org
	// ep.Claim slot1: denied: START does not accept the job: START = TARGET.RequestCpus < 3 is FALSE [example.conf:4]; TARGET.RequestCpus = 3
}

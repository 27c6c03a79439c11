// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/slots"
)

// divided is a machine of eight cores and two GPUs, divided as lines of
// configuration say.
func divided(lines string) (*slots.Division, error) {
	m, err := slots.ParseMachine("big.json", []byte(`{"name": "big.example.org", "cpus": 8, "memory_mb": 16000, "disk_kb": 1000000, "resources": {"GPUs": ["a", "b"]}}`))
	if err != nil {
		return nil, err
	}
	return slots.Divide(context.Background(), slots.Origin{
		Load: func(inv *machine.Inventory) (*config.Snapshot, error) {
			return config.Parse("config", lines, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
		},
		Scanners: []machine.Scanner{m}, Found: m.Found, Now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Location: time.UTC,
	})
}

func Example() {
	d, err := divided("NUM_SLOTS = 2\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = 50%\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = d.PrintTable(os.Stdout)
	for s, ad := range d.Each {
		gpus, _ := ad.EvalString("AssignedGPUs", nil)
		fmt.Println(s.Name(), gpus)
	}
	// Output:
	// NAME   TYPE    CPUS  MEMORY    DISK        SWAP   GPUS
	// slot1  Static  4     8000 MiB  500000 KiB  0 KiB  1 (a)
	// slot2  Static  4     8000 MiB  500000 KiB  0 KiB  1 (b)
	// slot1 a
	// slot2 b
}

func ExampleDivision_Explain() {
	d, err := divided("START = TARGET.Owner == \"bob\"\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	job, _ := classad.ParseAd("Owner = \"eve\"\nRequestCpus = 1\nRequestMemory = 100\nRequestDisk = 100\nRequirements = true", classad.Old)
	reports, err := d.Explain(slots.Question{Job: job})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range reports {
		fmt.Print(r.Text(d.Now.Wall))
	}
	// Output:
	// this job, if it were submitted now
	//
	//   no slot takes the job now
	//
	//   slot1
	//     START would be TRUE if TARGET.Owner == "bob"; it is "eve" now [config:1]
}

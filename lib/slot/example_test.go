// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot_test

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/slot"
)

// One partitionable slot with all of a machine, of which two boards have names.
func ExampleDivide() {
	led, problems := slot.Divide(
		slot.Layout{
			Types:     []slot.Type{{Count: 1, Partitionable: true}},
			Resources: []slot.Resource{{Name: "Boards", Count: 2, Assets: []string{"blue", "red"}}},
		},
		slot.Capacity{Cpus: 8, MemoryMiB: 16384, DiskKiB: 100 << 20},
	)
	if len(problems) > 0 {
		fmt.Println(problems)
	}
	whole := slot.ID{N: 1}
	d, err := led.Carve(whole, slot.Request{Cpus: 2, MemoryMiB: 2048, DiskKiB: 1 << 20, Custom: []slot.Custom{{Name: "Boards", Count: 1}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.ID, "has", d.Free.Cpus, "cores and", d.Free.Custom[0].Assets)
	p, _ := led.Slot(whole)
	fmt.Println(p.ID, "has", p.Free.Cpus, "cores and", p.Free.Custom[0].Assets)

	_, err = led.Carve(whole, slot.Request{Cpus: 7, MemoryMiB: 1024})
	fmt.Println(err)
	fmt.Println(led.Return(d.ID), led.Check(), p.Free.Cpus)
	// Output:
	// slot1_1 has 2 cores and [blue]
	// slot1 has 6 cores and [red]
	// slot.Carve slot1: exhausted: Cpus 7 > 6
	// <nil> <nil> 8
}

func ExampleParseShares() {
	s, err := slot.ParseShares("cpus=50%, memory=4096, boards=1")
	fmt.Println(s, err)
	// Output:
	// cpus=50%, memory=4096, boards=1 <nil>
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing"
)

// week is a machine of 64 slots under the desktop policy that gets a job a
// minute for a week, somebody at the keyboard every working day.
const week = `
start 2026-03-02 00:00
end 7d
seed 1
machine cpus=64 memory=262144 disk=1000000000
config
    use POLICY : Desktop
job work runs=20m..1h
    request_memory = 1024
at 0s every 1m submit work
at 9h every 1d until 5d type 30m
at 13h every 1d until 5d type 2h
`

// BenchmarkWeek simulates a week of a machine with 64 processors.
func BenchmarkWeek(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sc, err := Parse("week.scn", week)
		if err != nil {
			b.Fatal(err)
		}
		res, err := Run(sc, Node{Machine: sc.Machine, Load: parseText})
		if err != nil {
			b.Fatal(err)
		}
		if res.Total.Completed < 7000 {
			b.Fatalf("%+v", res.Total)
		}
		b.ReportMetric(float64(res.Total.Moves), "moves/op")
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hook runs the programs of an owner that add to what a slot
// advertises: the jobs of STARTD_CRON_*, the benchmarks of BENCHMARKS_* and the
// inventory scripts of MACHINE_RESOURCE_INVENTORY_<name>. It owns their
// settings, when each runs, what their output means and which slots it reaches;
// and the settings of the owner's backfill client and of the hooks of jobs, which are a
// starter's to run, with what these hooks say of their job.
//
// Three parts are values without a clock: a Schedule says what is to start or
// stop at an instant, a Parser turns output into Blocks, and CronAds hold the
// Blocks and say which slot gets what. A Runner is the one edge: it starts a
// program, reads its output within bounds and ends its whole family.
//
// The package must never change a slot's ad itself, believe the amount or the
// form of what a program prints, or leave a process behind.
//
//	cron, problems := hook.CronFrom(snapshot)
//	schedule := hook.NewSchedule(cron)
//	board := hook.NewCronAds(cron)
//	for _, start := range schedule.Due(now, allowed) {
//		run, err := runner.Start(ctx, start.Job, func(b hook.Block) { … board.Put(start.Job.Name, b, now) … })
//	}
//	for _, p := range board.Publish(slots) { engine.Step(now, p) }
package hook

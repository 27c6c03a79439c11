// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package speed measures Execution Points in a pool of real HTCondor daemons,
// the original and ours in the same run. It owns benchmarks only; it must never
// make a test fail for being slow.
//
// Figures are medians of the rounds that -benchtime=Nx asks for, on a machine
// that does nothing else. The environment chooses what a round is:
//
//	EXECPOINT_BENCH_JOBS=300   jobs of a round (100)
//	EXECPOINT_BENCH_MIB=1024   size of the file that is moved (64)
//	EXECPOINT_BENCH_MINUTES=3  how long starters are watched (1)
//	EXECPOINT_BENCH_EP=ours    only one of original and ours
package speed

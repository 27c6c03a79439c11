// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package churn lets an Execution Point live through half a day in a pool of
// real HTCondor daemons, compressed to minutes: jobs of a few seconds, vacates,
// holds, removals, suspensions, shadows that are killed, Execution Points and
// schedds that are restarted. At the end every job must be accounted for, and
// nothing may be left: memory, descriptors, processes, scratch directories,
// claims, slots, sessions. It owns the plan of the disturbances, which a seed
// makes, and the accounting. It must never touch a pool that is there already.
//
// Without a word it takes a few seconds. The environment changes that:
//
//	EXECPOINT_TEST_CHURN=10m      how long the disturbances go on
//	EXECPOINT_TEST_CHURN_SEED=7   another seed than 1, as $RANDOM; each run says which it had
//	EXECPOINT_TEST_CHURN_EP=original   the original in place of ours
//	EXECPOINT_TEST_CHURN_WITHOUT=X,Y   leaves disturbances out, as "kill shadow,
//	                              restart EP"; all others stay as they are
//	EXECPOINT_TEST_KEEP=1         keeps the pool's directory, logs and all
package churn

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// Sets of duties that several rows share. Leaving Suspended always continues
// the job first, so that one that is to end can act on its signal.
const (
	toOwner      = DropWaiting | Offer | Reevaluate
	outOfClaim   = EndClaim | toOwner
	toNextClaim  = EndClaim | BeginClaim | Offer | Reevaluate
	toVacating   = Withhold | SoftKillJob
	toKilling    = Withhold | HardKillJob
	wakeVacating = ContinueJob | toVacating
	wakeKilling  = ContinueJob | toKilling
)

// table is every move that a slot can make, after the documents' numbered
// transitions 1 to 37 and lettered ones A to P and what today's daemon does
// beyond them: the Cleaning activity between a job's end and its starter's,
// claims of slots in Owner (every d-slot begins there), and moves from other
// activities that end the same way. Where two rows share a number they are the
// same transition, brought about differently or by another activity.
var table = []Transition{
	// Owner
	{1, 'A', OwnerIdle, Evaluated, "IS_OWNER is not true", UnclaimedIdle, "IS_OWNER is false", Offer},
	{36, 'N', OwnerIdle, Evaluated, "the slot is to be drained", DrainedRetiring, "entering Drained state (from owner)", Withhold},
	{5, 'D', OwnerIdle, ClaimTaken, "START accepts the job; a new d-slot is always claimed from here", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},

	// Unclaimed
	{2, 'B', UnclaimedIdle, Evaluated, "IS_OWNER is true", OwnerIdle, "IS_OWNER is TRUE", toOwner},
	{2, 'B', UnclaimedBenchmarking, Evaluated, "IS_OWNER is true", OwnerIdle, "IS_OWNER is TRUE", toOwner},
	{3, 0, UnclaimedIdle, Evaluated, "RunBenchmarks is true", UnclaimedBenchmarking, "RunBenchmarks is TRUE", RunBenchmark},
	{4, 0, UnclaimedBenchmarking, BenchmarksOver, "", UnclaimedIdle, "benchmarks completed", Reevaluate},
	{5, 'D', UnclaimedIdle, ClaimTaken, "START accepts the job", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},
	{5, 'D', UnclaimedBenchmarking, ClaimTaken, "START accepts the job", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},
	{6, 'C', UnclaimedIdle, MatchTold, "", MatchedIdle, "match notification protocol successful", Withhold | StartTimer},
	{6, 'C', UnclaimedBenchmarking, MatchTold, "", MatchedIdle, "match notification protocol successful", Withhold | StartTimer},
	{7, 'E', UnclaimedIdle, Evaluated, "START_BACKFILL is true and backfill is configured", BackfillIdle, "START_BACKFILL is TRUE", Offer | SpawnClient},
	{7, 'E', UnclaimedBenchmarking, Evaluated, "START_BACKFILL is true and backfill is configured", BackfillIdle, "START_BACKFILL is TRUE", Offer | SpawnClient},
	{37, 'P', UnclaimedIdle, Evaluated, "the slot is to be drained", DrainedRetiring, "entering Drained state (from unclaimed)", Withhold},
	{37, 'P', UnclaimedBenchmarking, Evaluated, "the slot is to be drained", DrainedRetiring, "entering Drained state (from unclaimed)", Withhold},

	// Matched
	{8, 'F', MatchedIdle, TimedOut, "MATCH_TIMEOUT is over and nobody claimed", OwnerIdle, "match timed out", toOwner},
	{8, 'F', MatchedIdle, Evaluated, "START is false without regard to a job", OwnerIdle, "START is FALSE", toOwner},
	{8, 'F', MatchedIdle, Commanded, "vacate, release, shutdown or a failed claim", OwnerIdle, "received VACATE_CLAIM command", toOwner},
	{9, 'G', MatchedIdle, ClaimTaken, "by the matched client, START accepts the job", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},

	// Claimed/Idle
	{11, 0, ClaimedIdle, Activated, "Requirements accept the job", ClaimedBusy, "claim-activation protocol successful", StartRunning},
	{10, 'H', ClaimedIdle, Evaluated, "IS_OWNER is true, a preempting claim waits, the worklife is over, or the slot is to be drained", PreemptingVacating, "claim retirement ended/expired", toVacating},
	{10, 'H', ClaimedIdle, Commanded, "the claim was deactivated and takes no more jobs, or its slot found no more work to fetch", PreemptingVacating, "Claim deactivated", toVacating},
	{10, 'H', ClaimedIdle, Commanded, "release, the end of the lease, a fast vacate or shutdown", PreemptingKilling, "received RELEASE_CLAIM command", toKilling},
	{0, 0, ClaimedIdle, ClaimTaken, "a data slot that was made of this one has its claim", OwnerIdle, "its claim went to a data slot", toOwner},
	{10, 0, ClaimedIdle, Commanded, "vacate, graceful shutdown or a drain; without a job to wait for the slot leaves Retiring at once", ClaimedRetiring, "received VACATE_CLAIM command", Reevaluate},

	// Claimed/Busy
	{12, 0, ClaimedBusy, JobGone, "", ClaimedCleaning, "job is gone", 0},
	{12, 0, ClaimedBusy, StarterGone, "without a word about the job", ClaimedIdle, "starter exited, was in Claimed/Busy", Reevaluate},
	{13, 0, ClaimedBusy, Evaluated, "WANT_SUSPEND is not true and PREEMPT is, or a preempting claim waits", ClaimedRetiring, "PREEMPT is TRUE", Reevaluate},
	{13, 0, ClaimedBusy, Commanded, "vacate, graceful or peaceful shutdown", ClaimedRetiring, "received VACATE_CLAIM command", Reevaluate},
	{14, 0, ClaimedBusy, Evaluated, "WANT_SUSPEND and SUSPEND are true", ClaimedSuspended, "SUSPEND is TRUE", SuspendJob},
	{14, 0, ClaimedBusy, Commanded, "the client asked", ClaimedSuspended, "received SUSPEND_CLAIM command", SuspendJob},
	{18, 'H', ClaimedBusy, Evaluated, "a preempting claim waits and no retirement is left, or the machine is drained and the job came in meanwhile", PreemptingVacating, "claim retirement ended/expired", toVacating},
	{0, 'H', ClaimedBusy, Commanded, "the claim was deactivated and takes no more jobs, or its slot found no more work to fetch", PreemptingVacating, "Claim deactivated", toVacating},
	{0, 'H', ClaimedBusy, Commanded, "release, the end of the lease, a fast vacate or shutdown", PreemptingKilling, "received RELEASE_CLAIM command", toKilling},

	// Claimed/Suspended
	{12, 0, ClaimedSuspended, JobGone, "", ClaimedCleaning, "job is gone", 0},
	{12, 0, ClaimedSuspended, StarterGone, "without a word about the job", ClaimedIdle, "starter exited, was in Claimed/Suspended", Reevaluate},
	{15, 0, ClaimedSuspended, Evaluated, "CONTINUE is true and the claim is not retiring", ClaimedBusy, "CONTINUE is TRUE", ContinueJob},
	{15, 0, ClaimedSuspended, Commanded, "the client asked and the claim is not retiring", ClaimedBusy, "received CONTINUE_CLAIM command", ContinueJob},
	{16, 0, ClaimedSuspended, Evaluated, "PREEMPT is true, or CONTINUE is true and the claim is retiring", ClaimedRetiring, "PREEMPT is TRUE", ContinueJob | Reevaluate},
	{16, 0, ClaimedSuspended, Commanded, "vacate or graceful shutdown, or the client lets a retiring job go on", ClaimedRetiring, "received VACATE_CLAIM command", ContinueJob | Reevaluate},
	{17, 'H', ClaimedSuspended, Evaluated, "retirement is over", PreemptingVacating, "claim retirement ended/expired", wakeVacating},
	{17, 'H', ClaimedSuspended, Evaluated, "the same, PREEMPT was true and WANT_VACATE is false", PreemptingKilling, "claim retirement ended/expired", wakeKilling},
	{0, 'H', ClaimedSuspended, Commanded, "the claim was deactivated and takes no more jobs, or its slot found no more work to fetch", PreemptingVacating, "Claim deactivated", wakeVacating},
	{0, 'H', ClaimedSuspended, Commanded, "release, the end of the lease, a fast vacate or shutdown", PreemptingKilling, "received RELEASE_CLAIM command", wakeKilling},

	// Claimed/Retiring
	{12, 0, ClaimedRetiring, JobGone, "", ClaimedCleaning, "job is gone", 0},
	{18, 'H', ClaimedRetiring, Evaluated, "retirement is over", PreemptingVacating, "claim retirement ended/expired", toVacating},
	{18, 'H', ClaimedRetiring, Evaluated, "the same, PREEMPT was true and WANT_VACATE is false", PreemptingKilling, "claim retirement ended/expired", toKilling},
	{18, 'H', ClaimedRetiring, StarterGone, "", PreemptingVacating, "starter exited, was in Claimed/Retiring", Withhold},
	{19, 0, ClaimedRetiring, Evaluated, "only a preempting claim was the cause and it went away", ClaimedBusy, "unretiring because no preempting claim exists", 0},
	{20, 0, ClaimedRetiring, Evaluated, "WANT_SUSPEND and SUSPEND are true", ClaimedSuspended, "SUSPEND is TRUE", SuspendJob},
	{20, 0, ClaimedRetiring, Commanded, "the client asked", ClaimedSuspended, "received SUSPEND_CLAIM command", SuspendJob},
	{0, 'H', ClaimedRetiring, Commanded, "the claim was deactivated and takes no more jobs, or its slot found no more work to fetch", PreemptingVacating, "Claim deactivated", toVacating},
	{0, 'H', ClaimedRetiring, Commanded, "release, the end of the lease, a fast vacate or shutdown", PreemptingKilling, "received RELEASE_CLAIM command", toKilling},

	// Claimed/Cleaning: no expression and no order moves the slot before the starter is gone.
	{12, 0, ClaimedCleaning, StarterGone, "", ClaimedIdle, "starter exited, was in Claimed/Cleaning", Reevaluate},
	{0, 'H', ClaimedCleaning, StarterGone, "the claim was released or vacated meanwhile, or a preempting claim waits", PreemptingVacating, "starter exited, was in Claimed/Cleaning", Withhold},

	// Preempting: when the vacate time is over the job is killed, but the activity stays Vacating.
	{21, 0, PreemptingVacating, Evaluated, "KILL is true", PreemptingKilling, "KILL is TRUE", HardKillJob},
	{21, 0, PreemptingVacating, Commanded, "release, a fast vacate or shutdown", PreemptingKilling, "received VACATE_CLAIM_FAST command", HardKillJob},
	{22, 'J', PreemptingVacating, StarterGone, "no preempting claim waits, or START is false for it", OwnerIdle, "No preempting claim, returning to owner", outOfClaim},
	{23, 'I', PreemptingVacating, StarterGone, "a preempting claim waits and START is not false for it", ClaimedIdle, "preempting claim exists - START is true or undefined", toNextClaim},
	{24, 'I', PreemptingKilling, StarterGone, "a preempting claim waits and START is not false for it", ClaimedIdle, "preempting claim exists - START is true or undefined", toNextClaim},
	{25, 'J', PreemptingKilling, StarterGone, "no preempting claim waits, or START is false for it", OwnerIdle, "No preempting claim, returning to owner", outOfClaim},

	// Backfill
	{26, 0, BackfillIdle, BackfillUp, "", BackfillBusy, "backfill client runs", 0},
	{27, 0, BackfillBusy, BackfillGone, "by itself", BackfillIdle, "backfill client exited", SpawnClient},
	{28, 0, BackfillBusy, Evaluated, "EVICT_BACKFILL is true", BackfillKilling, "EVICT_BACKFILL is TRUE", KillClient},
	{28, 0, BackfillBusy, MatchTold, "", BackfillKilling, "match notification protocol successful", KillClient},
	{28, 0, BackfillBusy, ClaimPending, "", BackfillKilling, "claim waits for the end of backfill", KillClient},
	{28, 0, BackfillBusy, Commanded, "vacate or shutdown", BackfillKilling, "received VACATE_CLAIM command", KillClient},
	{29, 0, BackfillKilling, BackfillGone, "", BackfillIdle, "backfill client exited", 0},
	{30, 'K', BackfillIdle, Evaluated, "EVICT_BACKFILL is true", OwnerIdle, "EVICT_BACKFILL is TRUE", toOwner},
	{30, 'K', BackfillIdle, Commanded, "vacate or shutdown", OwnerIdle, "received VACATE_CLAIM command", toOwner},
	{31, 'M', BackfillIdle, ClaimTaken, "START accepts the job", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},
	{32, 'L', BackfillIdle, MatchTold, "", MatchedIdle, "match notification protocol successful", Withhold | StartTimer},

	// Drained
	{33, 0, DrainedRetiring, Evaluated, "every slot is drained", DrainedIdle, "draining is complete", 0},
	{34, 'O', DrainedIdle, Evaluated, "draining is over or was cancelled", OwnerIdle, "slot is no longer draining", toOwner},
	{35, 'O', DrainedRetiring, Evaluated, "draining was cancelled", OwnerIdle, "slot is no longer draining", toOwner},
	{0, 0, DrainedRetiring, ClaimTaken, "the drain admits the job", ClaimedIdle, "claiming protocol successful", BeginClaim | Offer | Reevaluate},
}

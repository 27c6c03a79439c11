// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
)

var noon = clock.Instant{Wall: time.Unix(1_800_000_000, 0).UTC(), Boot: 100 * time.Hour}

// situation is a slot with a policy, as short as a test can say it.
type situation struct {
	config string
	typeID int
	pair   Pair
	slot   string // attributes of the slot
	job    string // attributes of the job; a job runs in every pair that has one
	ran    time.Duration
	with   func(v *View) // what else is special
}

func (s situation) view(t testing.TB) *View {
	t.Helper()
	x := expressions(t, s.config, s.typeID)
	mine := parseAd(t, s.slot)
	mine.SetString("State", s.pair.State.String())
	mine.SetString("Activity", s.pair.Activity.String())
	v := &View{Now: noon, Pair: s.pair, Slot: mine, Exprs: x}
	if s.pair.State == Claimed || s.pair.State == Preempting {
		v.Claim = &claim.Claim{ID: claim.NewID("<a:1>", 1, 1, "s"), Slot: slot.ID{N: 1}, Since: clock.Instant{Wall: noon.Wall.Add(-time.Hour), Boot: noon.Boot - time.Hour}}
		v.Job = parseAd(t, "JobUniverse = 5\n"+s.job)
		if s.pair != ClaimedIdle {
			began := clock.Instant{Wall: noon.Wall.Add(-s.ran), Boot: noon.Boot - s.ran}
			universe, _ := v.Job.EvalInt("JobUniverse", nil)
			a := claim.Start("slot1#1", v.Job, int(universe), 0, began)
			v.Activation, v.Claim.Activations = &a, 1
			a.Pledge = Pledge(v)
			if s.pair == ClaimedSuspended {
				enter(t, &a, claim.Suspended)
			}
		}
	}
	if s.with != nil {
		s.with(v)
	}
	return v
}

func enter(t testing.TB, a *claim.Activation, p claim.Phase) {
	t.Helper()
	if err := a.Enter(p, noon); err != nil {
		t.Fatal(err)
	}
}

func expressions(t testing.TB, text string, typeID int) *Expressions {
	t.Helper()
	snap, err := config.Parse("policy.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := ExpressionsFrom(snap, typeID)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func parseAd(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(strings.ReplaceAll(text, "; ", "\n"), classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func irrevocable(v *View) { v.Activation.Irrevocable = true }
func preempted(v *View)   { v.Activation.Irrevocable, v.Activation.PreemptWasTrue = true, true }
func byRank(v *View)      { v.Waiting = WaitsByRank }
func byPriority(v *View)  { v.Waiting = WaitsByPriority }
func draining(v *View)    { v.Draining = true }

// between is a claim that has had a job.
func between(v *View) { v.Job, v.Claim.Activations = nil, 1 }

const desktopPolicy = "use POLICY : Desktop\n"

// The documents' example: a keyboard that was used 34 seconds ago.
const (
	andPolicy = "START = KeyboardIdle > 15 * 60 && Owner == \"coltrane\"\nIS_OWNER = START =?= False\n"
	orPolicy  = "START = KeyboardIdle > 15 * 60 || Owner == \"coltrane\"\nIS_OWNER = START =?= False\n"
)

var decisions = []struct {
	name string
	situation
	want   string // the decision, "" to stay
	code   int
	traced string // what the last entries of the trace say, joined by " | "
}{
	// row: S0-125, S0-102
	{name: "IS_OWNER false", situation: situation{config: "IS_OWNER = False", pair: OwnerIdle},
		want: "Owner/Idle -> Unclaimed/Idle (1): IS_OWNER is false", traced: "IS_OWNER = false is FALSE [policy.conf:1]"},
	// row: S0-126
	{name: "no policy at all", situation: situation{pair: OwnerIdle},
		want: "Owner/Idle -> Unclaimed/Idle (1): IS_OWNER is false", traced: "IS_OWNER = false is FALSE [<default>]"},
	{name: "IS_OWNER true", situation: situation{config: "IS_OWNER = KeyboardIdle < 60", pair: OwnerIdle, slot: "KeyboardIdle = 3"}},
	// row: S0-127
	{name: "false and undefined", situation: situation{config: andPolicy, pair: OwnerIdle, slot: "KeyboardIdle = 34"}},
	{name: "false and undefined, unclaimed", situation: situation{config: andPolicy, pair: UnclaimedIdle, slot: "KeyboardIdle = 34"},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE"},
	// row: S0-128, S0-094
	{name: "false or undefined", situation: situation{config: orPolicy, pair: OwnerIdle, slot: "KeyboardIdle = 34"},
		want:   "Owner/Idle -> Unclaimed/Idle (1): IS_OWNER is false",
		traced: "IS_OWNER = START =?= false is FALSE [policy.conf:2]; MY.KeyboardIdle = 34, Owner = undefined, MY.Start = undefined"},
	// row: S0-133, S0-104
	{name: "desktop in use", situation: situation{config: desktopPolicy, pair: UnclaimedIdle, slot: "KeyboardIdle = 3; ConsoleIdle = 3; LoadAvg = 0.0; CondorLoadAvg = 0.0"},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE"},
	{name: "desktop left alone", situation: situation{config: desktopPolicy, pair: OwnerIdle, slot: "KeyboardIdle = 3000; ConsoleIdle = 3000; LoadAvg = 0.0; CondorLoadAvg = 0.0"},
		want: "Owner/Idle -> Unclaimed/Idle (1): IS_OWNER is false"},
	{name: "IS_OWNER undefined keeps Owner", situation: situation{config: "IS_OWNER = NoSuch", pair: OwnerIdle}},
	{name: "IS_OWNER undefined goes to Owner", situation: situation{config: "IS_OWNER = NoSuch", pair: UnclaimedIdle},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE", traced: "IS_OWNER = NoSuch is undefined, taken as TRUE [policy.conf:1]; NoSuch = undefined"},
	{name: "IS_OWNER is no condition", situation: situation{config: "IS_OWNER = \"yes\"", pair: UnclaimedIdle},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE"},
	// A claim whose first job has not begun: the job is that of the request.
	{name: "IS_OWNER for the job of the claim", situation: situation{config: "IS_OWNER = TARGET.Prio =?= 1", pair: ClaimedIdle, job: "Prio = 1"},
		want: "Claimed/Idle -> Preempting/Vacating (10): IS_OWNER is true", traced: "IS_OWNER = TARGET.Prio =?= 1 is TRUE [policy.conf:1]; TARGET.Prio = 1"},
	{name: "IS_OWNER but for the job of the claim", situation: situation{config: "IS_OWNER = TARGET.Prio =!= 1", pair: ClaimedIdle, job: "Prio = 1"}},
	{name: "IS_OWNER by START for the job of the claim", situation: situation{config: "START = TARGET.Prio =?= 1\nIS_OWNER = START =?= False", pair: ClaimedIdle, job: "Prio = 1"}},
	// After its first job it has none.
	{name: "IS_OWNER between the jobs of a claim", situation: situation{config: "IS_OWNER = TARGET.Prio =!= 1", pair: ClaimedIdle, with: between},
		want: "Claimed/Idle -> Preempting/Vacating (10): IS_OWNER is true", traced: "IS_OWNER = TARGET.Prio =!= 1 is TRUE [policy.conf:1]; TARGET = undefined"},
	{name: "IS_OWNER by START between the jobs of a claim", situation: situation{config: "START = TARGET.Prio =?= 1\nIS_OWNER = START =?= False", pair: ClaimedIdle, with: between},
		want: "Claimed/Idle -> Preempting/Vacating (10): IS_OWNER is true"},
	{name: "IS_OWNER by START that is undefined between the jobs of a claim", situation: situation{config: "START = TARGET.Prio == 1\nIS_OWNER = START =?= False\nCLAIM_WORKLIFE = -1", pair: ClaimedIdle, with: between}},
	{name: "IS_OWNER that looks at the job, in Owner", situation: situation{config: "IS_OWNER = TARGET.Prio =!= 1", pair: OwnerIdle}},
	{name: "IS_OWNER that looks at the job, in Unclaimed", situation: situation{config: "IS_OWNER = TARGET.Prio =!= 1", pair: UnclaimedIdle},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE"},
	{name: "IS_OWNER does not touch the job", situation: situation{config: "IS_OWNER = TARGET.Prio =?= 1", pair: ClaimedBusy, job: "Prio = 1"}},
	{name: "IS_OWNER as a number", situation: situation{config: "IS_OWNER = 2", pair: UnclaimedIdle},
		want: "Unclaimed/Idle -> Owner/Idle (2): IS_OWNER is TRUE"},
	// row: S0-129
	{name: "no benchmarks in Owner", situation: situation{config: "IS_OWNER = True\nRunBenchmarks = True", pair: OwnerIdle, with: func(v *View) { v.CanBenchmark = true }}},
	{name: "benchmarks", situation: situation{config: "RunBenchmarks = (time() - LastBenchmark) >= 4 * 3600", pair: UnclaimedIdle, slot: "LastBenchmark = 0", with: func(v *View) { v.CanBenchmark = true }},
		want: "Unclaimed/Idle -> Unclaimed/Benchmarking (3): RunBenchmarks is TRUE"},
	{name: "backfill", situation: situation{config: "START_BACKFILL = True", pair: UnclaimedIdle, with: func(v *View) { v.CanBackfill = true }},
		want: "Unclaimed/Idle -> Backfill/Idle (7): START_BACKFILL is TRUE"},
	{name: "evict backfill", situation: situation{config: "EVICT_BACKFILL = KeyboardIdle < 5", pair: BackfillBusy, slot: "KeyboardIdle = 1"},
		want: "Backfill/Busy -> Backfill/Killing (28): EVICT_BACKFILL is TRUE"},
	{name: "evict idle backfill", situation: situation{config: "EVICT_BACKFILL = True", pair: BackfillIdle},
		want: "Backfill/Idle -> Owner/Idle (30): EVICT_BACKFILL is TRUE"},
	{name: "Matched ignores IS_OWNER", situation: situation{config: "IS_OWNER = True", pair: MatchedIdle}},
	{name: "drain from Owner", situation: situation{config: "IS_OWNER = True", pair: OwnerIdle, with: draining},
		want: "Owner/Idle -> Drained/Retiring (36): entering Drained state (from owner)"},
	{name: "drain from Unclaimed", situation: situation{pair: UnclaimedIdle, with: draining},
		want: "Unclaimed/Idle -> Drained/Retiring (37): entering Drained state (from unclaimed)"},
	{name: "drained", situation: situation{pair: DrainedRetiring, with: func(v *View) { v.Draining, v.AllDrained = true, true }},
		want: "Drained/Retiring -> Drained/Idle (33): draining is complete"},
	{name: "drain over", situation: situation{pair: DrainedIdle}, want: "Drained/Idle -> Owner/Idle (34): slot is no longer draining"},
	{name: "drain cancelled", situation: situation{pair: DrainedRetiring}, want: "Drained/Retiring -> Owner/Idle (35): slot is no longer draining"},
	{name: "drain waits", situation: situation{pair: DrainedRetiring, with: draining}},

	// Claimed/Idle
	{name: "owner returns to an idle claim", situation: situation{config: "IS_OWNER = KeyboardIdle < 60", pair: ClaimedIdle, slot: "KeyboardIdle = 1"},
		want: "Claimed/Idle -> Preempting/Vacating (10): IS_OWNER is true"},
	{name: "PREEMPT does not end an idle claim", situation: situation{config: "PREEMPT = True", pair: ClaimedIdle}},
	{name: "START false does not end an idle claim", situation: situation{config: "START = False", pair: ClaimedIdle}},
	{name: "preempted idle claim", situation: situation{pair: ClaimedIdle, with: byRank},
		want: "Claimed/Idle -> Preempting/Vacating (10): claim retirement ended/expired", code: 1018},
	{name: "worklife over", situation: situation{config: "CLAIM_WORKLIFE = 60", pair: ClaimedIdle, with: func(v *View) { v.Claim.Activations = 1 }},
		want:   "Claimed/Idle -> Preempting/Vacating (10): idle claim shutting down due to CLAIM_WORKLIFE",
		traced: "IS_OWNER = false is FALSE [<default>] | CLAIM_WORKLIFE = 60 is 1m0s [policy.conf:1]"},
	{name: "worklife over before the first job", situation: situation{config: "CLAIM_WORKLIFE = 60", pair: ClaimedIdle}},
	{name: "worklife without limit", situation: situation{config: "CLAIM_WORKLIFE = -1", pair: ClaimedIdle, with: func(v *View) { v.Claim.Activations = 1 }}},
	{name: "worklife undefined is 1200 s", situation: situation{config: "CLAIM_WORKLIFE = TARGET.Life", pair: ClaimedIdle, job: "Life = -1", with: func(v *View) { v.Claim.Activations = 1 }},
		want: "Claimed/Idle -> Preempting/Vacating (10): idle claim shutting down due to CLAIM_WORKLIFE"},
	{name: "drain ends an idle claim", situation: situation{pair: ClaimedIdle, with: draining},
		want: "Claimed/Idle -> Preempting/Vacating (10): idle claim shutting down due to draining of this slot", code: 1014},

	// Claimed/Busy
	// row: S0-131
	{name: "owner returns to a busy slot", situation: situation{config: "IS_OWNER = True", pair: ClaimedBusy}},
	{name: "START false while busy", situation: situation{config: "START = False\nIS_OWNER = START =?= False", pair: ClaimedBusy}},
	// row: S0-152
	{name: "PREEMPT", situation: situation{config: "WANT_SUSPEND = False\nPREEMPT = KeyboardIdle < 60", pair: ClaimedBusy, slot: "KeyboardIdle = 1"},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011,
		traced: "WANT_SUSPEND = false is FALSE [policy.conf:1] | PREEMPT = KeyboardIdle < 60 is TRUE [policy.conf:2]; MY.KeyboardIdle = 1"},
	// row: S0-155
	{name: "WANT_SUSPEND undefined", situation: situation{config: "WANT_SUSPEND = NoSuch\nSUSPEND = True\nPREEMPT = True", pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011},
	{name: "WANT_SUSPEND a string", situation: situation{config: "WANT_SUSPEND = \"x\"\nSUSPEND = True\nPREEMPT = True", pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011},
	{name: "WANT_SUSPEND error", situation: situation{config: "WANT_SUSPEND = 1/0\nSUSPEND = True\nPREEMPT = True", pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011},
	// row: S0-156
	{name: "SUSPEND", situation: situation{config: "WANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 60", pair: ClaimedBusy, slot: "KeyboardIdle = 1"},
		want: "Claimed/Busy -> Claimed/Suspended (14): SUSPEND is TRUE"},
	{name: "SUSPEND without WANT_SUSPEND", situation: situation{config: "WANT_SUSPEND = False\nSUSPEND = True", pair: ClaimedBusy}},
	{name: "PREEMPT is not asked with WANT_SUSPEND", situation: situation{config: "WANT_SUSPEND = True\nSUSPEND = False\nPREEMPT = True", pair: ClaimedBusy}},
	{name: "PREEMPT undefined", situation: situation{config: "WANT_SUSPEND = False\nPREEMPT = NoSuch", pair: ClaimedBusy}},
	{name: "SUSPEND undefined", situation: situation{config: "WANT_SUSPEND = True\nSUSPEND = NoSuch", pair: ClaimedBusy}},
	// row: S0-146
	{name: "PREEMPT_VANILLA", situation: situation{config: "PREEMPT = False\nPREEMPT_VANILLA = True", pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011, traced: "WANT_SUSPEND = false is FALSE [<default>] | PREEMPT_VANILLA = true is TRUE [policy.conf:2]"},
	{name: "PREEMPT_VANILLA false", situation: situation{config: "PREEMPT = True\nPREEMPT_VANILLA = False", pair: ClaimedBusy}},
	{name: "PREEMPT_VANILLA undefined", situation: situation{config: "PREEMPT = True\nPREEMPT_VANILLA = NoSuch", pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011,
		traced: "WANT_SUSPEND = false is FALSE [<default>] | PREEMPT_VANILLA = NoSuch is undefined, PREEMPT is asked [policy.conf:2]; NoSuch = undefined | PREEMPT = true is TRUE [policy.conf:1]"},
	{name: "PREEMPT_VANILLA in another universe", situation: situation{config: "PREEMPT_VANILLA = True", pair: ClaimedBusy, job: "JobUniverse = 10"}},
	{name: "PREEMPT_VM", situation: situation{config: "PREEMPT_VM = True\nPREEMPT_VANILLA = False", pair: ClaimedBusy, job: "JobUniverse = 13"},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011},
	{name: "preempting claim, retirement left", situation: situation{config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedBusy, ran: time.Minute, with: byRank},
		want: "Claimed/Busy -> Claimed/Retiring (13): retiring due to preempting claim", code: 1018},
	{name: "preempting claim, no retirement", situation: situation{pair: ClaimedBusy, ran: time.Minute, with: byPriority},
		want: "Claimed/Busy -> Preempting/Vacating (18): claim retirement ended/expired", code: 1019},
	{name: "draining without retirement", situation: situation{pair: ClaimedBusy, with: draining},
		want: "Claimed/Busy -> Preempting/Vacating (18): claim retirement ended/expired", code: 1014},
	{name: "draining with retirement", situation: situation{config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedBusy, with: draining},
		want: "Claimed/Busy -> Claimed/Retiring (13): retiring due to draining", code: 1014},

	// Claimed/Suspended
	// row: S0-157
	{name: "CONTINUE", situation: situation{config: "CONTINUE = True", pair: ClaimedSuspended}, want: "Claimed/Suspended -> Claimed/Busy (15): CONTINUE is TRUE"},
	{name: "CONTINUE undefined", situation: situation{config: "CONTINUE = NoSuch", pair: ClaimedSuspended}},
	{name: "suspended by command", situation: situation{config: "CONTINUE = True", pair: ClaimedSuspended, with: func(v *View) { v.Commanded = true }}},
	// row: S0-158
	{name: "CONTINUE in retirement", situation: situation{config: "CONTINUE = True\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedSuspended, with: preempted},
		want: "Claimed/Suspended -> Claimed/Retiring (16): CONTINUE is TRUE"},
	{name: "PREEMPT before CONTINUE", situation: situation{config: "CONTINUE = True\nPREEMPT = True\nWANT_SUSPEND = True", pair: ClaimedSuspended},
		want: "Claimed/Suspended -> Claimed/Retiring (16): PREEMPT is TRUE", code: 1011},
	// row: S0-159
	{name: "retirement ends while suspended", situation: situation{config: "CONTINUE = False\nMAXJOBRETIREMENTTIME = 10", pair: ClaimedSuspended, ran: time.Minute, with: irrevocable},
		want: "Claimed/Suspended -> Preempting/Vacating (17): claim retirement ended/expired"},
	{name: "retirement ends while suspended, no vacating", situation: situation{config: "WANT_VACATE = False\nCONTINUE = False\nMAXJOBRETIREMENTTIME = 10", pair: ClaimedSuspended, ran: time.Minute, with: preempted},
		want: "Claimed/Suspended -> Preempting/Killing (17): claim retirement ended/expired"},

	// Claimed/Retiring
	{name: "retirement left", situation: situation{config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedRetiring, ran: time.Minute, with: preempted}},
	// row: S0-160
	{name: "retirement over", situation: situation{config: "MAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 0", pair: ClaimedRetiring, ran: time.Minute, with: irrevocable},
		want:   "Claimed/Retiring -> Preempting/Vacating (18): claim retirement ended/expired",
		traced: "MAXJOBRETIREMENTTIME = 60 is 1m0s [policy.conf:1] | retirement left: 0s"},
	// row: S0-165
	{name: "WANT_VACATE true", situation: situation{config: "WANT_VACATE = True", pair: ClaimedRetiring, with: preempted},
		want: "Claimed/Retiring -> Preempting/Vacating (18): claim retirement ended/expired"},
	{name: "WANT_VACATE false", situation: situation{config: "WANT_VACATE = False", pair: ClaimedRetiring, with: preempted},
		want: "Claimed/Retiring -> Preempting/Killing (18): claim retirement ended/expired"},
	{name: "WANT_VACATE undefined lets the job leave gently", situation: situation{config: "WANT_VACATE = NoSuch", pair: ClaimedRetiring, with: preempted},
		want:   "Claimed/Retiring -> Preempting/Vacating (18): claim retirement ended/expired",
		traced: "retirement left: 0s | WANT_VACATE = NoSuch is undefined, taken as TRUE [policy.conf:1]; NoSuch = undefined"},
	{name: "WANT_VACATE_VANILLA", situation: situation{config: "WANT_VACATE = True\nWANT_VACATE_VANILLA = False", pair: ClaimedRetiring, with: preempted},
		want: "Claimed/Retiring -> Preempting/Killing (18): claim retirement ended/expired"},
	{name: "WANT_VACATE is asked only after PREEMPT", situation: situation{config: "WANT_VACATE = False", pair: ClaimedRetiring, with: irrevocable},
		want: "Claimed/Retiring -> Preempting/Vacating (18): claim retirement ended/expired"},
	// row: S0-163
	{name: "unretirement", situation: situation{pair: ClaimedRetiring},
		want: "Claimed/Retiring -> Claimed/Busy (19): unretiring because no preempting claim exists"},
	{name: "no unretirement after PREEMPT", situation: situation{config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedRetiring, with: preempted}},
	{name: "no unretirement while draining", situation: situation{config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedRetiring, with: draining}},
	// row: S0-164
	{name: "suspension in retirement", situation: situation{config: "WANT_SUSPEND = True\nSUSPEND = True\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedRetiring, with: preempted},
		want: "Claimed/Retiring -> Claimed/Suspended (20): SUSPEND is TRUE"},
	{name: "nothing left to retire", situation: situation{pair: ClaimedRetiring, with: func(v *View) { v.Activation = nil }},
		want: "Claimed/Retiring -> Preempting/Vacating (18): claim retirement ended/expired"},
	{name: "Cleaning waits for the starter", situation: situation{config: "PREEMPT = True\nIS_OWNER = True", pair: ClaimedCleaning, with: byRank}},

	// Preempting
	// row: S0-167
	{name: "KILL", situation: situation{config: "KILL = Activity == \"Vacating\"", pair: PreemptingVacating},
		want: "Preempting/Vacating -> Preempting/Killing (21): KILL is TRUE"},
	{name: "KILL undefined", situation: situation{config: "KILL = NoSuch", pair: PreemptingVacating}},
	{name: "KILL_VANILLA", situation: situation{config: "KILL = False\nKILL_VANILLA = True", pair: PreemptingVacating},
		want: "Preempting/Vacating -> Preempting/Killing (21): KILL is TRUE"},
	{name: "Killing is asked nothing", situation: situation{config: "KILL = True", pair: PreemptingKilling}},

	// Slot types
	{name: "SLOT_TYPE_1_PREEMPT", situation: situation{config: "PREEMPT = False\nSLOT_TYPE_1_PREEMPT = True", typeID: 1, pair: ClaimedBusy},
		want: "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE", code: 1011,
		traced: "SLOT_TYPE_1_PREEMPT = true is TRUE [policy.conf:2]"},
	{name: "SLOT_TYPE_1_PREEMPT elsewhere", situation: situation{config: "PREEMPT = False\nSLOT_TYPE_1_PREEMPT = True", typeID: 2, pair: ClaimedBusy}},
	{name: "SLOT_TYPE_1_IS_OWNER does not exist", situation: situation{config: "SLOT_TYPE_1_IS_OWNER = True", typeID: 1, pair: UnclaimedIdle}},
	{name: "empty is the default", situation: situation{config: "PREEMPT =\nIS_OWNER =\nSTART =", pair: UnclaimedIdle}},
	{name: "an expression names another", situation: situation{config: "WANT_SUSPEND = True\nSUSPEND = False\nCONTINUE = SUSPEND =!= True", pair: ClaimedSuspended},
		want: "Claimed/Suspended -> Claimed/Busy (15): CONTINUE is TRUE"},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range decisions {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := tt.view(t)
			d := Decide(v)
			got := ""
			if d.Moves() {
				got = d.String()
			}
			if got != tt.want || d.Moves() && d.Code != tt.code {
				t.Errorf("got  %q code %d\nwant %q code %d", got, d.Code, tt.want, tt.code)
			}
			var lines []string
			for _, tr := range d.Trace {
				lines = append(lines, tr.String())
			}
			if s := strings.Join(lines, " | "); !strings.HasSuffix(s, tt.traced) {
				t.Errorf("trace %q\nwant %q", s, tt.traced)
			}
			if d.Moves() && len(d.Trace) == 0 && d.Cause != ByDraining && d.Cause != ByDrainingOver && d.Cause != ByDrainComplete &&
				d.Cause != ByUnretirement && v.Activation != nil {
				t.Error("a decision without a trace")
			}
			if again := Explain(v); again.To != d.To || again.Reason != d.Reason {
				t.Errorf("Explain says %v", again)
			}
		})
	}
}

// TestPreemptWhileRetiring makes retirement irrevocable that was not.
func TestPreemptWhileRetiring(t *testing.T) {
	t.Parallel()
	v := situation{config: "PREEMPT = True\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", pair: ClaimedRetiring, with: byRank}.view(t)
	if d := Decide(v); d.Moves() || d.Cause != ByPreempt || d.Code != 1011 {
		t.Errorf("got %v cause %v code %d", d, d.Cause, d.Code)
	}
}

func TestUnparsable(t *testing.T) {
	t.Parallel()
	snap, err := config.Parse("policy.conf", "START = (\nPREEMPT = a b\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := ExpressionsFrom(snap, 1)
	if err == nil || !strings.Contains(err.Error(), "policy.conf:1") || !strings.Contains(err.Error(), "policy.conf:2") {
		t.Fatalf("error %v, want both places", err)
	}
	v := situation{pair: ClaimedBusy}.view(t)
	v.Exprs = x
	if d := Decide(v); d.Moves() {
		t.Errorf("an unparsable PREEMPT decides %v", d)
	}
	if verdict := Starts(v); verdict.OK || !verdict.Value.IsUndefined() {
		t.Errorf("an unparsable START lets the job in: %v", verdict)
	}
}

// What does not parse for a slot type leaves the machine's expression as it is,
// and a policy with a mistake in one expression keeps the others.
func TestUnparsableForType(t *testing.T) {
	t.Parallel()
	snap, err := config.Parse("policy.conf", "START = TARGET.Owner == \"alice\"\nSLOT_TYPE_1_START = (\nIS_OWNER = ((\nWANT_HOLD_REASON = \"\"too big\"\"\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := ExpressionsFrom(snap, 1)
	var got []string
	for _, u := range x.Unparsed() {
		got = append(got, u.Name+" "+u.Instead)
	}
	if want := []string{"SLOT_TYPE_1_START START", "IS_OWNER ", "WANT_HOLD_REASON "}; !slices.Equal(got, want) {
		t.Errorf("%q does not parse, want %q", got, want)
	}
	if e := x.Get(Start); e.Name != "START" || e.Bad || e.Expr.String() != "TARGET.Owner == \"alice\"" {
		t.Errorf("START is %+v", e)
	}
	if e := x.Get(IsOwner); !e.Bad || !e.Expr.Eval(nil).IsUndefined() {
		t.Errorf("IS_OWNER is %+v", e)
	}
}

// TestDecideAllocates shows that a policy which leaves things as they are
// costs no memory.
func TestDecideAllocates(t *testing.T) {
	if underRace {
		t.Skip("allocations are counted in builds without the race detector")
	}
	for _, pair := range []Pair{OwnerIdle, ClaimedBusy, ClaimedSuspended, ClaimedRetiring, PreemptingVacating} {
		cfg := desktopPolicy + "IS_OWNER = START =?= False\nCONTINUE = False\nMAXJOBRETIREMENTTIME = 100000\nMachineMaxVacateTime = 10\nSUSPEND = False\nPREEMPT = False\n"
		v := situation{config: cfg, pair: pair, ran: time.Minute, slot: "KeyboardIdle = 3; ConsoleIdle = 3; LoadAvg = 0.5; CondorLoadAvg = 0.0; EnteredCurrentActivity = 1", job: "ImageSize = 3; JobMaxVacateTime = 20",
			with: func(v *View) {
				if v.Activation != nil && pair != ClaimedBusy {
					irrevocable(v)
				}
			}}.view(t)
		if d := Decide(v); d.Moves() {
			t.Fatalf("%v moves: %v", pair, d)
		}
		if n := testing.AllocsPerRun(100, func() { Decide(v) }); n != 0 {
			t.Errorf("%v: %v allocations", pair, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, pair := range []Pair{UnclaimedIdle, ClaimedBusy, ClaimedSuspended} {
		b.Run(pair.String(), func(b *testing.B) {
			v := situation{config: desktopPolicy + "CONTINUE = False\n", pair: pair, ran: time.Minute,
				slot: "KeyboardIdle = 3000; ConsoleIdle = 3000; LoadAvg = 0.1; CondorLoadAvg = 0.0; EnteredCurrentActivity = 1799999999"}.view(b)
			b.ReportAllocs()
			for b.Loop() {
				if d := Decide(v); d.Moves() {
					b.Fatal(d)
				}
			}
		})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	snap, err := config.Parse("policy.conf", "UPDATE_OFFSET = 7\nSTARTD_NOCLAIM_SHUTDOWN = 600\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := TimesFrom(snap)
	if err != nil {
		t.Fatal(err)
	}
	want := Times{Polling: 5 * time.Second, Update: 5 * time.Minute, Killing: 30 * time.Second, Match: 2 * time.Minute,
		Alive: 5 * time.Minute, AlivesMissed: 6, DrainActivation: 20 * time.Second,
		ShutdownGraceful: 30 * time.Minute, ShutdownFast: 5 * time.Minute, Offset: 7 * time.Second, NoClaim: 10 * time.Minute}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	bad, err := config.Parse("policy.conf", "POLLING_INTERVAL = often\nUPDATE_INTERVAL = 0\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	got, err = TimesFrom(bad)
	if err == nil || !strings.Contains(err.Error(), "POLLING_INTERVAL") || !strings.Contains(err.Error(), "UPDATE_INTERVAL") {
		t.Errorf("error %v, want both knobs", err)
	}
	if got.Polling < time.Second || got.Update < time.Second {
		t.Errorf("a loop without end: %+v", got)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	x := expressions(t, "START = TARGET.Department =?= \"physics\"\nRANK = ImageSize\n", 0)
	for name, want := range map[string]bool{"department": true, "ImageSize": true, "Physics": false, "KeyboardIdle": false} {
		if got := x.Mentions(name); got != want {
			t.Errorf("Mentions(%q) = %v", name, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for k := range numKeys {
		if keyed[k].knob == "" {
			t.Errorf("key %d has no name", k)
		}
		if _, ok := config.LookupKnob(keyed[k].knob); !ok {
			t.Errorf("%v is no knob", k)
		}
	}
	for _, s := range []fmt.Stringer{State(99), Activity(99), Key(99), Class(99), Cause(99)} {
		if !strings.Contains(s.String(), "99") {
			t.Errorf("%q hides what it is", s)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/rapidtest"
	"github.com/execpoint/execpoint/lib/slot"
)

// chaos is a machine with a partitionable and two static slots whose policy
// hangs on knobs that the test turns.
const chaos = `
NUM_CPUS = 8
MEMORY = 8192
POLLING_INTERVAL = 1
UPDATE_INTERVAL = 5
KILLING_TIMEOUT = 3
SHUTDOWN_GRACEFUL_TIMEOUT = 40
SLOT_TYPE_1 = cpus=4, mem=4096, disk=50%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = cpus=2, mem=2048, disk=25%
SLOT_TYPE_2_PARTITIONABLE = false
NUM_SLOTS_TYPE_2 = 2
SLOT_TYPE_3 = cpus=2, mem=4096, disk=25%
SLOT_TYPE_3_PARTITIONABLE = true
SLOT_TYPE_3_BACKFILL = true
NUM_SLOTS_TYPE_3 = 1
MACHINE_RESOURCE_Bolts = b1 b2 b3 b4 b5 b6
MACHINE_RESOURCE_Cogs = 5
ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true
MAX_PARTITIONABLE_SLOT_CLAIM_TIME = 20
START = KStart
IS_OWNER = KOwner
SUSPEND = KSuspend
CONTINUE = KContinue
PREEMPT = KPreempt
KILL = KKill
WANT_SUSPEND = KWantSuspend
WANT_VACATE = KWantVacate
WANT_HOLD = KWantHold
RANK = TARGET.Prio
MAXJOBRETIREMENTTIME = KRetire
MachineMaxVacateTime = KVacate
CLAIM_WORKLIFE = KWorklife
RunBenchmarks = KBench
ENABLE_BACKFILL = true
BACKFILL_SYSTEM = BOINC
BOINC_Executable = /usr/bin/boinc
BOINC_InitialDir = /var/lib/boinc
BOINC_Universe = vanilla
START_BACKFILL = KBackfill
EVICT_BACKFILL = KEvict
MATCH_TIMEOUT = 10
MAX_DRAINING_ACTIVATION_DELAY = 3
STARTD_JOB_HOOK_KEYWORD = FOO
FOO_HOOK_FETCH_WORK = /hooks/fetch
FetchWorkDelay = 2
`

// life is what the outside knows of an activation.
type life struct {
	claim    claim.ID
	slot     slot.ID
	soft     bool
	hard     bool
	finished bool
}

// model is what the effects have told so far.
type model struct {
	rt      *rapid.T
	eng     *Engine
	now     clock.Instant
	ref     uint64
	pairs   map[string]policy.Pair
	claims  map[string]claim.ID // open ones, by public id
	stale   []claim.ID
	lives   map[claim.ActivationID]*life
	refs    map[uint64]int // 1 asked, 2 answered
	waiting map[uint64]bool
	wake    clock.Instant
	stamps  map[slot.ID][4]string // State, Activity and when they were entered, as the ads had it
	steps   int
	configs []*config.Snapshot
	bench   string // "running" or "stopped" while benchmarks run
	benched slot.ID
	ended   map[claim.ActivationID]bool // told as over
	ending  *Manner                     // of the shutdown, nil before
	client  string                      // "starting", "running" or "ending" while there is a backfill client
	asking  map[slot.ID]bool            // slots whose hook was asked for work
	fetched map[*classad.Ad]bool        // jobs that were accepted, true until their claim was told as over
}

var trit = []string{"true", "false", "undefined", "error", `"x"`, "1", "0"}

// knobs draws a policy: mostly plain values, sometimes ones that make no
// sense.
func (m *model) knobs() *classad.Ad {
	ad := classad.NewAd()
	draws := map[string][]string{
		"KStart": {"true", "true", "true", "true", "true", "false"}, "KOwner": {"false", "false", "false", "false", "false", "false", "true"}, "KSuspend": {"false", "true"},
		"KContinue": {"true", "false"}, "KPreempt": {"false", "false", "true"}, "KKill": {"false", "true"},
		"KWantSuspend": {"true", "false"}, "KWantVacate": {"true", "false"}, "KWantHold": {"false", "true"},
		"KRetire": {"0", "3", "20", "200", "900", "-1"}, "KVacate": {"0", "2", "2", "10", "600"}, "KWorklife": {"-1", "0", "15"},
		"KBench":    {"LastBenchmark == 0", "false", "true"},
		"KBackfill": {"false", "false", "true"}, "KEvict": {"false", "false", "true"},
	}
	for _, name := range slices.Sorted(maps.Keys(draws)) {
		text := rapid.SampledFrom(draws[name]).Draw(m.rt, name)
		if rapid.IntRange(0, 39).Draw(m.rt, "odd") == 7 {
			text = rapid.SampledFrom(trit).Draw(m.rt, name+" odd")
		}
		if err := ad.SetText(name, text); err != nil {
			m.rt.Fatal(err)
		}
	}
	return ad
}

func (m *model) job() *classad.Ad {
	ad := classad.NewAd()
	ad.SetInt("JobUniverse", 5)
	ad.SetInt("RequestCpus", rapid.Int64Range(1, 3).Draw(m.rt, "cpus"))
	ad.SetInt("RequestMemory", rapid.SampledFrom([]int64{64, 1000, 3000}).Draw(m.rt, "memory"))
	ad.SetInt("RequestDisk", 1024)
	ad.SetInt("RequestBolts", rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 1, 2}).Draw(m.rt, "bolts"))
	ad.SetInt("RequestCogs", rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 1}).Draw(m.rt, "cogs"))
	ad.SetInt("Prio", rapid.Int64Range(0, 3).Draw(m.rt, "prio"))
	switch rapid.IntRange(0, 5).Draw(m.rt, "extra") {
	case 0:
		ad.SetInt("JobMaxVacateTime", rapid.Int64Range(-1, 30).Draw(m.rt, "vacate"))
	case 1:
		ad.SetInt("MaxJobRetirementTime", rapid.Int64Range(-1, 30).Draw(m.rt, "retire"))
	case 2:
		ad.SetInt("JobLeaseDuration", rapid.Int64Range(0, 60).Draw(m.rt, "lease"))
	case 3:
		ad.SetBool("StarterHandlesAlives", false)
	}
	return ad
}

func (m *model) anySlot() slot.ID {
	var ids []slot.ID
	for v := range m.eng.Views() {
		ids = append(ids, v.ID)
	}
	if rapid.IntRange(0, 9).Draw(m.rt, "wrong") == 5 {
		ids = append(ids, slot.ID{N: 9}, slot.ID{N: 1, Sub: 99})
	}
	return rapid.SampledFrom(ids).Draw(m.rt, "slot")
}

func (m *model) anyClaim() claim.ID {
	var ids []claim.ID
	for _, k := range slices.Sorted(maps.Keys(m.claims)) {
		ids = append(ids, m.claims[k])
	}
	if len(ids) == 0 || rapid.IntRange(0, 9).Draw(m.rt, "wrong") == 5 {
		for _, id := range ids[:min(1, len(ids))] {
			ids = append(ids, claim.ID{Public: id.Public, Secret: "guessed"})
		}
		ids = append(ids, m.stale...)
		ids = append(ids, claim.ID{}, claim.ID{Public: "<x>#1#1", Secret: "y"})
	}
	return rapid.SampledFrom(ids).Draw(m.rt, "claim")
}

func (m *model) anyLife() claim.ActivationID {
	ids := slices.Sorted(maps.Keys(m.lives))
	if len(ids) == 0 || rapid.IntRange(0, 9).Draw(m.rt, "wrong") == 5 {
		ids = append(ids, "slot1_1#9999", "")
	}
	return rapid.SampledFrom(ids).Draw(m.rt, "activation")
}

func (m *model) nextRef() uint64 {
	m.ref++
	m.refs[m.ref] = 1
	return m.ref
}

// event draws what happens next.
func (m *model) event() Event {
	kinds := []string{
		"tick", "tick", "sample", "knobs", "claim", "claim", "claim", "activate", "activate", "activate", "activate", "activate",
		"running", "running", "ended", "failed", "reconfig", "exited", "exited", "deactivate", "release", "suspend", "renew", "vacate", "rare", "benched",
		"match", "match", "backfill", "backfill", "fetched", "fetched", "fetched", "drain", "drained", "drained", "coalesce", "coalesce", "data", "data", "split", "split",
	}
	switch kind := rapid.SampledFrom(kinds).Draw(m.rt, "event"); kind {
	case "sample":
		return Sampled{Sample: machine.Sample{At: m.now, KeyboardIdle: time.Minute, LoadAvg: 1, Fresh: machine.AllReadings}}
	case "knobs":
		return Published{Source: "knobs", Attrs: m.knobs()}
	case "claim":
		ref := m.nextRef()
		m.waiting[ref] = true
		ev := ClaimRequested{
			Ref: asked(ref), Slot: m.anySlot(), Job: m.job(), Client: claim.Client{User: "u@x", Schedd: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(m.rt, "schedd")},
			Lease: time.Duration(rapid.IntRange(0, 900).Draw(m.rt, "lease")) * time.Second, Priority: rapid.Bool().Draw(m.rt, "priority"),
			Leftovers: rapid.Bool().Draw(m.rt, "leftovers"),
		}
		switch rapid.IntRange(0, 19).Draw(m.rt, "way") {
		case 0:
			ev.DynamicSlots = rapid.IntRange(-1, 3).Draw(m.rt, "parts")
		case 1:
			ev.Whole, ev.WholeTime = true, time.Duration(rapid.IntRange(0, 30).Draw(m.rt, "term"))*time.Second
		case 2:
			ev.Evict = []claim.ID{m.anyClaim(), m.anyClaim()}
		case 3, 4:
			if v, ok := m.eng.SlotView(ev.Slot); ok {
				ev.Slot, ev.Capability = slot.ID{}, rapid.SampledFrom(append([]claim.ID{v.NextClaim}, v.FurtherClaims...)).Draw(m.rt, "capability")
			}
		case 5:
			ev.Slot, ev.Capability = slot.ID{}, m.anyClaim()
		}
		return ev
	case "activate":
		ev := ActivateRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim(), Job: m.job()}
		if rapid.IntRange(0, 3).Draw(m.rt, "good") > 0 {
			// One that the slot would take, if any waits for a job.
			for v := range m.eng.Views() {
				if v.Pair == policy.ClaimedIdle && v.Kind != slot.Partitionable {
					ev.Claim = v.Claim
				}
			}
			for _, name := range []string{"RequestBolts", "RequestCogs"} {
				ev.Job.SetInt(name, 0)
			}
			ev.Job.SetInt("RequestCpus", 1)
			ev.Job.SetInt("RequestMemory", 64)
		}
		return ev
	case "running":
		return JobRunning{Activation: m.anyLife()}
	case "ended":
		id := m.anyLife()
		if l := m.lives[id]; l != nil {
			l.finished = true
		}
		exit := Exit{Status: host.ExitStatus{Exited: true}}
		if rapid.IntRange(0, 40).Draw(m.rt, "broken") == 5 {
			exit.Broken = &slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "Could not clean up after job"}
		}
		return JobEnded{Activation: id, Exit: exit}
	case "exited":
		id := m.anyLife()
		if l := m.lives[id]; l != nil && !l.finished && rapid.Bool().Draw(m.rt, "first the job") {
			l.finished = true
			return JobEnded{Activation: id}
		}
		return StarterExited{Activation: id, ClientLost: rapid.IntRange(0, 9).Draw(m.rt, "lost") == 5}
	case "failed":
		id := m.anyLife()
		if rapid.Bool().Draw(m.rt, "usage") {
			return JobUsage{Activation: id, Usage: host.Usage{UserCPU: time.Duration(m.steps) * time.Second}}
		}
		return StarterFailed{Activation: id}
	case "reconfig":
		return Reconfigured{Snapshot: m.configs[rapid.IntRange(0, len(m.configs)-1).Draw(m.rt, "config")]}
	case "deactivate":
		return DeactivateRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim(), How: Deactivation(rapid.IntRange(0, 2).Draw(m.rt, "how"))}
	case "release":
		if rapid.IntRange(0, 4).Draw(m.rt, "work ended") == 0 {
			return WorkEnded{Ref: asked(m.nextRef()), Claim: m.anyClaim()}
		}
		return ReleaseRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim()}
	case "suspend":
		if rapid.Bool().Draw(m.rt, "suspend") {
			return SuspendRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim()}
		}
		return ContinueRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim()}
	case "coalesce":
		ev := CoalesceRequested{Ref: asked(m.nextRef()), Claims: []claim.ID{m.anyClaim()}, Job: m.job()}
		for v := range m.eng.Views() {
			if v.Kind == slot.Dynamic && v.Pair == policy.ClaimedIdle && rapid.IntRange(0, 4).Draw(m.rt, "one") > 0 {
				ev.Claims = append(ev.Claims, v.Claim)
			}
		}
		if rapid.IntRange(0, 3).Draw(m.rt, "good") > 0 && len(ev.Claims) > 1 {
			ev.Claims = ev.Claims[1:]
		}
		return ev
	case "data":
		ev := DataSlotRequested{Ref: asked(m.nextRef()), Claim: m.anyClaim(), Job: m.job(), Prefix: rapid.SampledFrom([]string{"data", "data", "", "1/"}).Draw(m.rt, "prefix")}
		for v := range m.eng.Views() {
			if v.Kind == slot.Dynamic && v.Pair == policy.ClaimedIdle && rapid.IntRange(0, 4).Draw(m.rt, "good") > 0 {
				ev.Claim = v.Claim
				ev.Job.SetInt("RequestCpus", 1)
				ev.Job.SetInt("RequestMemory", 64)
			}
		}
		return ev
	case "split":
		ref := m.nextRef()
		m.waiting[ref] = true
		ev := ClaimRequested{
			Ref: asked(ref), Capability: m.anyClaim(), Job: m.job(), Client: claim.Client{User: "u@x", Schedd: "a"}, Leftovers: rapid.Bool().Draw(m.rt, "leftovers"),
			DynamicSlots: rapid.IntRange(0, 2).Draw(m.rt, "parts"),
		}
		for v := range m.eng.Views() {
			if id := m.eng.slots.byID[v.ID].ids.split; !id.IsZero() {
				ev.Capability = id
			}
		}
		return ev
	case "match":
		return MatchTold{Ref: asked(m.nextRef()), Slot: m.anySlot()}
	case "fetched":
		ev := WorkFetched{Slot: m.anySlot()}
		for id := range m.asking {
			if id.Compare(ev.Slot) < 0 || !m.asking[ev.Slot] {
				ev.Slot = id
			}
		}
		if rapid.IntRange(0, 3).Draw(m.rt, "work") > 0 {
			ev.Job = m.job()
		}
		if rapid.IntRange(0, 9).Draw(m.rt, "unfit") == 5 {
			ev.Unfit = errors.New("unfit")
		}
		return ev
	case "backfill":
		if rapid.IntRange(0, 3).Draw(m.rt, "gone") > 0 {
			return BackfillRunning{}
		}
		return BackfillExited{}
	case "drain":
		ev := DrainRequested{
			Ref: asked(m.nextRef()), How: Haste(rapid.IntRange(0, 2).Draw(m.rt, "haste")), By: "u@x",
			Then: rapid.SampledFrom([]Completion{ThenStay, ThenResume, ThenReconfigure, ThenResume, ThenExit}).Draw(m.rt, "then"),
		}
		if rapid.Bool().Draw(m.rt, "start") {
			ev.Start = classad.MustParseExpr("TARGET.Prio > 0")
		}
		if rapid.IntRange(0, 4).Draw(m.rt, "check") == 0 {
			ev.Check = classad.MustParseExpr(rapid.SampledFrom([]string{"Cpus > 0", "true", "Memory"}).Draw(m.rt, "what"))
		}
		return ev
	case "drained":
		return DrainCancelled{Ref: asked(m.nextRef()), ID: rapid.SampledFrom([]string{"", "", "1", "77"}).Draw(m.rt, "id")}
	case "benched":
		return BenchmarksDone{Complete: rapid.Bool().Draw(m.rt, "complete")}
	case "renew":
		return LeaseRenewed{Claim: m.anyClaim()}
	case "vacate":
		return VacateRequested{Ref: asked(m.nextRef()), Slot: m.anySlot(), Manner: Manner(rapid.IntRange(0, 2).Draw(m.rt, "manner"))}
	case "rare":
		if rapid.IntRange(0, 20).Draw(m.rt, "down") == 5 {
			return ShutdownRequested{Manner: Manner(rapid.IntRange(0, 2).Draw(m.rt, "manner"))}
		}
		if rapid.IntRange(0, 20).Draw(m.rt, "rehome") == 5 {
			return Rehomed{}
		}
		if len(m.waiting) > 0 {
			refs := slices.Sorted(maps.Keys(m.waiting))
			ref := rapid.SampledFrom(refs).Draw(m.rt, "withdraw")
			m.refs[ref] = 2
			delete(m.waiting, ref)
			return ClaimWithdrawn{Ref: asked(ref)}
		}
	}
	return Tick{}
}

// step lets time pass, and then one thing happen. What the passing of time does
// is done first, so that what is seen afterwards is the event's work.
func (m *model) step() {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 200, 1000, 1000, 2500, 7000}).Draw(m.rt, "ms")) * time.Millisecond)
	m.perform(Tick{})
	before := m.fingerprint()
	ev := m.event()
	known := m.knows(ev)
	refused := m.perform(ev) && asks(ev)
	delete(m.lives, endOf(ev))
	switch c, ok := ev.(ClaimRequested); {
	case ok && len(c.Evict) > 0:
		return // who had to go is gone, also when it was of no use
	case ok && strings.Contains(before, policy.MatchedIdle.String()):
		return // a match ends with the claim that it was for
	}
	if after := m.fingerprint(); (refused || !known) && after != before {
		m.rt.Fatalf("%#v was refused and yet changed\n%s\nto\n%s", ev, before, after)
	}
}

// endOf returns the activation that ends with an event, "" if none does.
func endOf(ev Event) claim.ActivationID {
	switch ev := ev.(type) {
	case StarterExited:
		return ev.Activation
	case StarterFailed:
		return ev.Activation
	}
	return ""
}

// asks reports whether an event is one that is answered.
func asks(ev Event) bool {
	switch ev.(type) {
	case ClaimRequested, ActivateRequested, DeactivateRequested, ReleaseRequested, WorkEnded, SuspendRequested, ContinueRequested, VacateRequested,
		MatchTold, DrainRequested, DrainCancelled, CoalesceRequested:
		return true
	}
	return false
}

// knows reports whether an event is about something that there is.
func (m *model) knows(ev Event) bool {
	held := func(id claim.ID) bool { return m.claims[id.Public] == id && !id.IsZero() }
	switch ev := ev.(type) {
	case JobRunning:
		return m.lives[ev.Activation] != nil
	case JobEnded:
		return m.lives[ev.Activation] != nil
	case StarterExited:
		return m.lives[ev.Activation] != nil
	case StarterFailed:
		return m.lives[ev.Activation] != nil
	case ActivateRequested:
		return held(ev.Claim)
	case DeactivateRequested:
		return held(ev.Claim)
	case ReleaseRequested:
		return held(ev.Claim)
	case WorkEnded:
		return held(ev.Claim)
	case SuspendRequested:
		return held(ev.Claim)
	case ContinueRequested:
		return held(ev.Claim)
	case LeaseRenewed:
		return held(ev.Claim)
	case BenchmarksDone:
		return m.bench != ""
	case WorkFetched:
		return m.asking[ev.Slot]
	case BackfillRunning:
		return m.client == "starting"
	case BackfillExited:
		return m.client != ""
	}
	return true
}

// perform passes an event, checks the effects against what is known and the
// state against what must always hold, and reports a refusal.
func (m *model) perform(ev Event) (refused bool) {
	m.steps++
	gone := endOf(ev)
	if _, ok := ev.(BenchmarksDone); ok {
		m.bench = ""
	}
	switch ev := ev.(type) {
	case WorkFetched:
		delete(m.asking, ev.Slot)
	case BackfillRunning:
		if m.client == "starting" {
			m.client = "running"
		}
	case BackfillExited:
		m.client = ""
	}
	changed := map[string]bool{}
	for _, eff := range slices.Clone(m.eng.Step(m.now, ev)) {
		switch eff := eff.(type) {
		case Reply:
			refused = refused || eff.Err != nil && eff.Ref == asked(m.ref)
			m.reply(eff)
		case Transitioned:
			m.moved(eff)
			changed[eff.Name+" activity"] = changed[eff.Name+" activity"] || eff.From != eff.To
			changed[eff.Name+" state"] = changed[eff.Name+" state"] || eff.From.State != eff.To.State
		case StartStarter:
			for id, l := range m.lives {
				if l.slot == eff.Slot && id != gone {
					m.rt.Fatalf("%s is started beside %s", eff.Activation, id)
				}
			}
			if m.claims[eff.Claim.Public] != eff.Claim {
				m.rt.Fatalf("%s is started without a claim", eff.Activation)
			}
			m.lives[eff.Activation] = &life{claim: eff.Claim, slot: eff.Slot}
		case OrderStarter:
			m.order(eff)
		case KillStarter:
			if l := m.lives[eff.Activation]; l == nil || !l.hard && !l.finished {
				m.rt.Fatalf("%s is ended by force: %+v", eff.Activation, l)
			}
		case ClaimEnded:
			if m.claims[eff.Claim.Public] != eff.Claim {
				m.rt.Fatalf("%v ended and was not there", eff.Claim)
			}
			delete(m.claims, eff.Claim.Public)
			m.stale = append(m.stale[max(0, len(m.stale)-5):], eff.Claim)
		case ClaimMoved: // and is granted anew
			if m.claims[eff.Claim.Public] != eff.Claim || eff.From == eff.To {
				m.rt.Fatalf("%v moved and was not there", eff.Claim)
			}
			delete(m.claims, eff.Claim.Public)
		case AdWithdrawn:
			if p := m.pairs[eff.Name]; p != policy.OwnerIdle && p != policy.UnclaimedIdle {
				m.rt.Fatalf("%s is withdrawn while %v", eff.Name, p)
			}
			delete(m.pairs, eff.Name)
			delete(m.asking, eff.Slot)
			delete(m.stamps, eff.Slot)
		case RunBenchmarks:
			if v, ok := m.eng.SlotView(eff.Slot); !ok || m.bench != "" || v.Kind == slot.Dynamic {
				m.rt.Fatalf("benchmarks begin for %v (%v), others are %q", eff.Slot, ok, m.bench)
			}
			m.bench, m.benched = "running", eff.Slot
		case StopBenchmarks:
			if m.bench != "running" || m.benched != eff.Slot {
				m.rt.Fatalf("benchmarks end for %v, they are %q for %v", eff.Slot, m.bench, m.benched)
			}
			m.bench = "stopped"
		case FetchWork:
			if v, ok := m.eng.SlotView(eff.Slot); !ok || m.asking[eff.Slot] || m.ending != nil || v.Pair == policy.ClaimedSuspended {
				m.rt.Fatalf("work is fetched for %s, asked already: %v", eff.Name, m.asking[eff.Slot])
			}
			m.asking[eff.Slot] = true
		case WorkDecided:
			if w, ok := ev.(WorkFetched); !ok || w.Job != eff.Job || eff.Err != nil && !eff.Claim.IsZero() {
				m.rt.Fatalf("%T: decided about %+v", ev, eff)
			}
			if eff.Err == nil {
				m.fetched[eff.Job] = true
			}
		case WorkEvicted:
			if !m.fetched[eff.Job] {
				m.rt.Fatalf("the claim of work is over that nobody was promised: %+v", eff)
			}
			m.fetched[eff.Job] = false
		case StartBackfill:
			if m.client != "" {
				m.rt.Fatalf("a second backfill client, the first is %s", m.client)
			}
			m.client = "starting"
		case StopBackfill:
			if m.client != "starting" && m.client != "running" {
				m.rt.Fatalf("the backfill client is to end, it is %q", m.client)
			}
			m.client = "ending"
		case WakeAt:
			if eff.At.Boot < m.now.Boot {
				m.rt.Fatalf("wants to be woken %v ago", m.now.Sub(eff.At))
			}
			m.wake = eff.At
		case ActivationEnded:
			if eff.Activation != gone || m.lives[gone] == nil || m.ended[gone] {
				m.rt.Fatalf("%s is told as over, %q is; before: %v", eff.Activation, gone, m.ended[eff.Activation])
			}
			m.ended[gone] = true
		case ShutdownBegun:
			if m.ending != nil && eff.Manner <= *m.ending || eff.Why == "" {
				m.rt.Fatalf("a shutdown begins: %+v, one was under way: %v", eff, m.ending)
			}
			m.ending = &eff.Manner
		case PolicyWarning:
			if eff.Trace.Name == "" || eff.Trace.Taken == "" || eff.Trace.Text == "" {
				m.rt.Fatalf("what is odd? %+v", eff)
			}
		case ShutdownComplete:
			if m.ending == nil {
				m.rt.Fatal("shutdown is complete and was never begun")
			}
			if m.bench != "" || m.client != "" {
				m.rt.Fatalf("shutdown is complete, but benchmarks are %q and the backfill client is %q", m.bench, m.client)
			}
			for id := range m.lives {
				if id != gone {
					m.rt.Fatalf("shutdown is complete, but there is %s", id)
				}
			}
		}
	}
	if m.wake.Boot < m.now.Boot {
		m.rt.Fatalf("nothing wakes the engine any more: last %v ago", m.now.Sub(m.wake))
	}
	m.check(changed)
	return refused
}

func (m *model) reply(r Reply) {
	if r.Ref.By != Fetcher {
		if m.refs[r.Ref.N] != 1 {
			m.rt.Fatalf("reply to %d, which is %d", r.Ref, m.refs[r.Ref.N])
		}
		m.refs[r.Ref.N] = 2
		delete(m.waiting, r.Ref.N)
	}
	if r.Err != nil && errs.KindOf(r.Err) == errs.Internal {
		m.rt.Fatal(r.Err)
	}
	if r.Granted == nil {
		return
	}
	for _, g := range append([]Grant{*r.Granted}, r.Granted.More...) {
		if _, dup := m.claims[g.Claim.Public]; dup {
			m.rt.Fatalf("%v was granted twice", g.Claim)
		}
		m.claims[g.Claim.Public] = g.Claim
	}
	if rest := r.Granted.Leftovers; rest != nil {
		if sl := m.eng.slots.byOffer[rest.Claim.Public]; (sl == nil || sl.s.ID != rest.Slot) && m.claims[rest.Claim.Public] != rest.Claim {
			m.rt.Fatalf("leftovers %v, which nobody can claim", rest.Claim)
		}
	}
}

func (m *model) moved(t Transitioned) {
	if was := m.pairs[t.Name]; was != t.From {
		m.rt.Fatalf("%s goes from %v, but was in %v", t.Name, t.From, was)
	}
	if !policy.Legal(t.To) || t.Decision.From != t.From || t.Decision.To != t.To {
		m.rt.Fatalf("%s: %+v", t.Name, t)
	}
	listed := false
	for _, row := range policy.Table() {
		listed = listed || row.From == t.From && row.To == t.To && row.Number == t.Number
	}
	if !listed || t.Decision.Reason == "" {
		m.rt.Fatalf("%s: %v is not in the table or has no reason", t.Name, t.Decision)
	}
	m.pairs[t.Name] = t.To
}

func (m *model) order(o OrderStarter) {
	l := m.lives[o.Activation]
	switch {
	case l == nil:
		m.rt.Fatalf("%v for %q, which is not there", o.Op, o.Activation)
	case l.hard, l.soft && o.Op != HardKill:
		m.rt.Fatalf("%v for %s after %+v", o.Op, o.Activation, *l)
	}
	switch o.Op {
	case SoftKill:
		l.soft = true
	case HardKill:
		l.hard = true
	}
	if o.Hold && (o.Code != 21 || o.Reason == "") {
		m.rt.Fatalf("hold without code or reason: %+v", o)
	}
}

// check is what must hold after every step.
func (m *model) check(changed map[string]bool) {
	e := m.eng
	if err := e.ledger.Check(); err != nil {
		m.rt.Fatal(err)
	}
	polled, offered, owners := 0, 0, map[string]string{}
	n := 0
	for v := range e.Views() {
		n++
		sl := e.slots.byID[v.ID]
		if was := m.pairs[v.Name]; was != v.Pair {
			m.rt.Fatalf("%s is %v, told was %v", v.Name, v.Pair, was)
		}
		claimed := v.Pair.State == policy.Claimed || v.Pair.State == policy.Preempting
		if v.Pair.State == policy.Backfill {
			polled++
		}
		if claimed {
			polled++
		}
		if v.Claimed != claimed || claimed == (sl.cur == nil) {
			m.rt.Fatalf("%s is %v, claim %v", v.Name, v.Pair, v.Claim)
		}
		if v.ID == m.benched && m.bench == "running" && v.Pair != policy.UnclaimedBenchmarking {
			m.rt.Fatalf("benchmarks go on for %s, which is %v", v.Name, v.Pair)
		}
		if v.NextClaim.IsZero() || e.slots.byOffer[v.NextClaim.Public] != sl || m.claims[v.NextClaim.Public] == v.NextClaim {
			m.rt.Fatalf("%s is to be claimed by %v, which is known for %v", v.Name, v.NextClaim, e.slots.byOffer[v.NextClaim.Public])
		}
		if want := sl.ad.Claims(); len(v.FurtherClaims) != want || v.Kind != slot.Partitionable && want != 0 {
			m.rt.Fatalf("%s has %d further ids for %d claims", v.Name, len(v.FurtherClaims), want)
		}
		for _, id := range v.FurtherClaims {
			if id.IsZero() || e.slots.byOffer[id.Public] != sl || m.claims[id.Public] == id || id == v.NextClaim {
				m.rt.Fatalf("%s is to be claimed by %v as well, which is known for %v", v.Name, id, e.slots.byOffer[id.Public])
			}
		}
		offered += 1 + len(v.FurtherClaims)
		if id := sl.ids.split; !id.IsZero() {
			if offered++; v.Kind != slot.Dynamic || sl.s.Part || e.slots.byOffer[id.Public] != sl || m.claims[id.Public] == id || id == v.NextClaim {
				m.rt.Fatalf("a part of %s is to be claimed by %v, which is known for %v", v.Name, id, e.slots.byOffer[id.Public])
			}
		}
		if v.Kind == slot.Partitionable && claimed && (!sl.cur.Fixed || active(v)) || v.Kind == slot.Dynamic && !claimed {
			m.rt.Fatalf("a %v slot is %v", v.Kind, v.Pair)
		}
		if claimed {
			if other, dup := owners[v.Claim.Public]; dup {
				m.rt.Fatalf("%v holds %s and %s", v.Claim, other, v.Name)
			}
			owners[v.Claim.Public] = v.Name
			if m.claims[v.Claim.Public] != v.Claim || e.slots.byClaim[v.Claim.Public] != sl {
				m.rt.Fatalf("%s is held by %v, which nobody was granted", v.Name, v.Claim)
			}
		}
		active := active(v)
		if active && (!claimed || e.slots.byActivation[v.Activation] != sl || m.lives[v.Activation] == nil) {
			m.rt.Fatalf("%s runs %s in %v", v.Name, v.Activation, v.Pair)
		}
		switch v.Pair {
		case policy.UnclaimedBenchmarking:
			if m.bench == "" || m.benched != v.ID {
				m.rt.Fatalf("%s is %v, benchmarks are %q for %v", v.Name, v.Pair, m.bench, m.benched)
			}
		case policy.BackfillBusy:
			if m.client != "running" && m.client != "ending" {
				m.rt.Fatalf("%s is %v, the client is %q", v.Name, v.Pair, m.client)
			}
		case policy.BackfillKilling:
			if m.client != "ending" {
				m.rt.Fatalf("%s is %v, the client is %q", v.Name, v.Pair, m.client)
			}
		case policy.DrainedIdle, policy.DrainedRetiring:
			if !e.drain.on {
				m.rt.Fatalf("%s is %v, nothing is drained", v.Name, v.Pair)
			}
		case policy.ClaimedIdle:
			if active {
				m.rt.Fatalf("%s is idle with %s", v.Name, v.Activation)
			}
		case policy.ClaimedBusy, policy.ClaimedSuspended, policy.ClaimedRetiring, policy.ClaimedCleaning, policy.PreemptingVacating, policy.PreemptingKilling:
			if !active {
				m.rt.Fatalf("%s is %v without a starter", v.Name, v.Pair)
			}
		}
		if sl.waiting != nil && v.Pair.State != policy.Claimed && v.Pair.State != policy.Preempting {
			m.rt.Fatalf("somebody waits for %s, which is %v", v.Name, v.Pair)
		}
		m.stamp(v, changed)
	}
	if len(e.slots.byOffer) != offered {
		m.rt.Fatalf("%d slots offer %d ids, %d are known", n, offered, len(e.slots.byOffer))
	}
	if n != e.ledger.Len() || len(owners) != len(m.claims) || len(e.slots.byClaim) != len(m.claims) || polled != e.schedule.polled {
		m.rt.Fatalf("%d slots, ledger %d; %d claims held, %d granted, %d known; %d polled, %d counted",
			n, e.ledger.Len(), len(owners), len(m.claims), len(e.slots.byClaim), polled, e.schedule.polled)
	}
}

func active(v SlotView) bool { return v.Activation != "" }

// stamp proves that the ad tells state and activity, that the times of their
// entry change with them and never otherwise, and that a slot which cannot be
// matched says so.
func (m *model) stamp(v SlotView, changed map[string]bool) {
	ad := m.eng.SlotAd(v.ID)
	get := func(name string) string { return ad.Eval(name, nil).String() }
	now := [4]string{get("State"), get("Activity"), get("EnteredCurrentState"), get("EnteredCurrentActivity")}
	if want := fmt.Sprintf("%q/%q", v.Pair.State, v.Pair.Activity); now[0]+"/"+now[1] != want {
		m.rt.Fatalf("the ad of %s says %s/%s, it is %v", v.Name, now[0], now[1], v.Pair)
	}
	was, seen := m.stamps[v.ID]
	unix := fmt.Sprint(m.now.Wall.Unix())
	if seen && !changed[v.Name+" state"] && now[2] != was[2] || changed[v.Name+" state"] && now[2] != unix {
		m.rt.Fatalf("%s: EnteredCurrentState %s to %s at %s, state changed: %v", v.Name, was[2], now[2], unix, changed[v.Name+" state"])
	}
	if seen && !changed[v.Name+" activity"] && now[3] != was[3] || changed[v.Name+" activity"] && now[3] != unix {
		m.rt.Fatalf("%s: EnteredCurrentActivity %s to %s at %s, activity changed: %v", v.Name, was[3], now[3], unix, changed[v.Name+" activity"])
	}
	m.stamps[v.ID] = now
	shut := v.Pair.State == policy.Preempting || v.Pair.State == policy.Matched || v.Pair.State == policy.Drained
	if m.eng.drain.on {
		shut = m.eng.drain.start == nil
	}
	if shut && m.eng.slots.byID[v.ID].s.Broken == nil {
		if req, _ := ad.Lookup("Requirements"); req == nil || req.String() != "false" {
			m.rt.Fatalf("%s is %v and its Requirements are %v", v.Name, v.Pair, req)
		}
	}
}

// fingerprint is all that can be seen of the engine, but for the clock.
func (m *model) fingerprint() string {
	out := ""
	for v := range m.eng.Views() {
		out += fmt.Sprintf("%s %v %v %v %v %s %v %v %v\n", v.Name, v.Pair, v.Free, v.Claim, v.Client, v.Activation, v.Phase, v.Entered, v.Began)
		if w := m.eng.slots.byID[v.ID].waiting; w != nil {
			out += fmt.Sprintf("  waiting %d\n", w.ref)
		}
	}
	return out
}

// TestRandomEvents drives the engine through whatever may come and proves
// after every step that nothing is lost, doubled or left behind.
// row: S0-123, S0-124, S0-166
func TestRandomEvents(t *testing.T) {
	t.Parallel()
	steps := 0
	visited := map[string]int{}
	inv, snap := inventory(t, 8, chaos)
	configs := []*config.Snapshot{snap, parse(t, inv, chaos+"KILLING_TIMEOUT = 0\nPOLLING_INTERVAL = 3\nPREEMPT = False\n"), nil,
		parse(t, inv, chaos+"OFFLINE_MACHINE_RESOURCE_Bolts = b1 b4\nOFFLINE_MACHINE_RESOURCE_Cogs = 2\n"), parse(t, inv, chaos+"OFFLINE_MACHINE_RESOURCE_Bolts = b2 b9\n")}
	const consuming = "CONSUMPTION_POLICY = true\n"
	priced := []*config.Snapshot{parse(t, inv, chaos+consuming+"NUM_CLAIMS = 3\n"), parse(t, inv, chaos+consuming+"NUM_CLAIMS = 1\n"), configs[0]}
	rapidtest.Check(t, func(rt *rapid.T) {
		text, configs := chaos, configs
		if rapid.IntRange(0, 3).Draw(rt, "priced") == 0 {
			text, configs = chaos+consuming+"NUM_CLAIMS = 2\n", priced
		}
		s := newStage(t, 8, text)
		s.eng.cfg.Benchmarks, s.eng.bench.configured = true, true
		s.eng.cfg.Backfill, s.eng.back.configured = true, true
		s.eng.cfg.Fetches = true
		m := &model{
			ended: make(map[claim.ActivationID]bool),
			rt:    rt, eng: s.eng, now: s.now, pairs: map[string]policy.Pair{}, claims: map[string]claim.ID{},
			asking: map[slot.ID]bool{}, fetched: map[*classad.Ad]bool{}, lives: map[claim.ActivationID]*life{}, refs: map[uint64]int{}, waiting: map[uint64]bool{}, wake: s.wake,
			stamps: map[slot.ID][4]string{}, configs: configs,
		}
		for v := range s.eng.Views() {
			m.pairs[v.Name] = v.Pair
		}
		m.perform(Published{Source: "knobs", Attrs: m.knobs()})
		for range rapid.IntRange(40, 160).Draw(rt, "steps") {
			m.step()
			for v := range s.eng.Views() {
				visited[v.Pair.String()]++
				if v.Kind == slot.Partitionable && v.Claimed {
					visited["whole"]++
				}
			}
		}
		steps += m.steps
		for _, open := range m.fetched {
			visited["fetched work"]++
			if !open {
				visited["fetched work evicted"]++
			}
		}
	})
	t.Logf("%d steps, %v", steps, visited)
	if visited["fetched work"] == 0 || visited["fetched work evicted"] == 0 {
		t.Error("no fetched work was ever accepted and evicted")
	}
	if visited["whole"] == 0 {
		t.Error("no partitionable slot was ever claimed as a whole")
	}
	for _, p := range []policy.Pair{
		policy.OwnerIdle, policy.UnclaimedIdle, policy.UnclaimedBenchmarking, policy.ClaimedIdle, policy.ClaimedBusy, policy.ClaimedSuspended,
		policy.ClaimedRetiring, policy.ClaimedCleaning, policy.PreemptingVacating, policy.PreemptingKilling,
		policy.MatchedIdle, policy.BackfillIdle, policy.BackfillBusy, policy.BackfillKilling, policy.DrainedIdle, policy.DrainedRetiring,
	} {
		if visited[p.String()] == 0 {
			t.Errorf("%v was never reached: the test tests nothing", p)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Source is what ads are made from. Nothing in it is changed.
type Source struct {
	Config    *config.Snapshot
	Inventory *machine.Inventory
	Ledger    *slot.Ledger
	// Policy has the expressions of each slot type. A type without an entry
	// shows those that HTCondor has by default.
	Policy map[int]*policy.Expressions
	// Unparsed says which of the owner's expressions do not parse.
	Unparsed []error
	// Location is the machine's time zone for ClockMin and ClockDay; nil is UTC.
	Location *time.Location
}

// Machine is the shared part of all slot ads and the way to each of them. It
// and its Slots are owned by one goroutine.
type Machine struct {
	src     Source
	set     settings
	started clock.Instant
	// configured is when the settings were last taken over.
	configured clock.Instant

	ad    *classad.Ad
	types map[int]*typeLayer
	own   map[int][]owner // by the number of a slot
	slots []*Slot         // ascending by ID
	byID  map[slot.ID]*Slot

	published   map[slot.ID][]published // by the slot it is about, zero: all
	drain       Drain
	benchmarked time.Time // when benchmarks were last complete
	sample      machine.Sample
	condorLoad  float64 // made by jobs, of all slots

	away                        int64          // seconds that slots without a keyboard have been idle
	mixedKeyboard, mixedConsole bool           // some slots are connected and some are not
	names                       *classad.Names // of the slots' ads
	refreshing                  classad.Env    // of Refresh, used again

	// taken are the custom resources that slots in use have had, by whether
	// the slot was a backfill slot.
	taken       map[bool]map[string]bool
	transferred transfers
	stats       statistics
	breakages   []Breakage // in the order of their time
}

// typeLayer is what all slots of a type show.
type typeLayer struct {
	ad      *classad.Ad
	own     []owner // of STARTD_ATTRS, for what the slot would otherwise say itself
	latches []latched
	busy    *classad.Expr // CPUBusy, nil unless an expression reads how long
	// offered is what Requirements is while the slot can be matched, one for
	// each kind of slot.
	offered [3]*classad.Expr
}

// New returns the ads of all slots in the ledger, in Owner/Idle since now. The
// error names every setting about ads that cannot be read.
func New(src Source, now clock.Instant) (*Machine, error) {
	m := &Machine{started: now, configured: now, byID: make(map[slot.ID]*Slot), taken: make(map[bool]map[string]bool), published: make(map[slot.ID][]published), names: &classad.Names{}}
	if err := m.configure(src); err != nil {
		return nil, err
	}
	for s := range src.Ledger.Slots() {
		m.Add(s, now)
	}
	m.Refresh(machine.Sample{At: now}, now)
	return m, nil
}

// Reconfigure takes new settings, inventory and policy over; all slots stay as
// they are. On an error nothing changes.
func (m *Machine) Reconfigure(src Source, now clock.Instant) error {
	next := *m
	if err := next.configure(src); err != nil {
		return err
	}
	*m = next
	m.configured = now
	for _, a := range m.slots {
		a.m = m
		a.dress()
	}
	m.Refresh(m.sample, now)
	return nil
}

// Learn takes another inventory of the same machine over; nothing else changes.
func (m *Machine) Learn(inv *machine.Inventory, now clock.Instant) {
	configured := m.configured
	m.src.Inventory = inv
	_ = m.Reconfigure(m.src, now) // the settings are those in force
	m.configured = configured
}

func (m *Machine) configure(src Source) error {
	set, err := settingsFrom(src.Config, src.Inventory.FullHostname)
	if err != nil {
		return err
	}
	m.src, m.set = src, set
	m.types, m.own = make(map[int]*typeLayer), make(map[int][]owner)
	m.publishStatic()
	return nil
}

// Ad returns the shared layer: the parent of every slot ad. It is live and
// must not be changed by others.
func (m *Machine) Ad() *classad.Ad { return m.ad }

// Name returns what slot names have behind the first @.
func (m *Machine) Name() string { return m.set.name }

// Slot returns the ad of a slot.
func (m *Machine) Slot(id slot.ID) (*Slot, bool) {
	a, ok := m.byID[id]
	return a, ok
}

// publishStatic begins the shared layer with what only a restart or reconfig
// changes.
func (m *Machine) publishStatic() {
	inv := m.src.Inventory
	ad := classad.NewAd()
	if inv.Attrs != nil {
		ad.Update(inv.Attrs)
	}
	ad.SetString("MyType", "Machine")
	ad.SetString("TargetType", "Job")
	if m.set.hasDaemon {
		ad.SetBool("HasStartDaemonAd", true)
	}
	ad.SetBool("IsLocalStartd", m.set.local)
	if m.set.attached != "" {
		ad.SetString("IsDirectAttach", m.set.attached)
	}
	ad.SetString(attrScratch, scratchWord)
	m.set.publishHealth(ad)
	for attr, knob := range map[string]string{"UidDomain": "UID_DOMAIN", "FileSystemDomain": "FILESYSTEM_DOMAIN"} {
		if v := m.set.cfg.String(knob); v != "" {
			ad.SetString(attr, v)
		}
	}
	ad.SetReal("TotalCpus", float64(inv.UsableCores))
	ad.SetInt("TotalMemory", inv.UsableMemoryMiB)
	ad.SetInt("TotalVirtualMemory", inv.SwapKiB)
	ad.SetBool(attrAdmitted, false)
	for _, name := range [...]string{
		attrLastBenchmark, attrFetchCompleted, attrFetchSpawned, attrNumPids, attrRetirementRemaining,
	} {
		ad.SetInt(name, 0)
	}
	if !m.benchmarked.IsZero() {
		ad.SetInt(attrLastBenchmark, m.benchmarked.Unix())
	}
	ad.SetInt(attrFetchDelay, -1)
	if s, ok := m.set.cfg.Lookup(attrFetchWorkDelay); ok && !s.IsDefault {
		if e, err := m.set.cfg.Expr(attrFetchWorkDelay); err == nil && e != nil {
			ad.Set(attrFetchWorkDelay, e)
		}
	}
	ad.SetReal(attrCurrentRank, 0)
	for _, r := range m.src.Ledger.Unlisted() {
		ad.Update(r.Attrs)
	}
	resources := []string{"Cpus", "Memory", "Disk", "Swap"}
	for _, r := range m.src.Ledger.Resources() {
		resources = append(resources, r.Name)
		for _, prefix := range [...]string{"Detected", "Total"} {
			if r.Count == math.Trunc(r.Count) {
				ad.SetInt(prefix+r.Name, int64(r.Count))
			} else {
				ad.SetReal(prefix+r.Name, r.Count)
			}
		}
		if r.Attrs != nil {
			ad.Update(r.Attrs)
		}
		if len(r.Offline) > 0 {
			ad.SetString("Offline"+r.Name, strings.Join(r.Offline, ","))
		}
	}
	ad.SetString("MachineResources", strings.Join(resources, " "))
	m.ad = ad
	m.publishDrain()
}

// layer returns what slots of a type share, made when it is first wanted.
func (m *Machine) layer(typeID int) *typeLayer {
	if l, ok := m.types[typeID]; ok {
		return l
	}
	l := &typeLayer{ad: classad.NewAd(), own: m.set.ownAttrs(typeID)}
	l.ad.SetParent(m.ad)
	for _, o := range l.own {
		if !isShared(o.name) {
			l.ad.Set(o.name, o.expr)
		}
	}
	l.publishPolicy(m, typeID)
	for _, n := range names(m.set.cfg, "STARTD_LATCH_EXPRS") {
		l.latches = append(l.latches, latched{name: n, value: n + "Value", time: n + "Time", computes: l.computes(n)})
	}
	l.busy = l.timesBusy(m, typeID)
	m.types[typeID] = l
	return l
}

// isShared reports whether Refresh keeps an attribute in the machine's layer:
// STARTD_ATTRS does not replace it.
func isShared(name string) bool {
	for _, n := range [...]string{
		attrMyCurrentTime, attrLoadAvg, attrCondorLoadAvg, attrTotalLoadAvg, attrTotalCondorLoadAvg,
		attrKeyboardIdle, attrConsoleIdle, "ClockMin", "ClockDay", attrTotalSlots,
	} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// publishPolicy puts the owner's expressions in as they are configured.
func (l *typeLayer) publishPolicy(m *Machine, typeID int) {
	get := func(policy.Key) *classad.Expr { return nil }
	if exprs := m.src.Policy[typeID]; exprs != nil {
		// What does not parse is shown as HTCondor shows it: START as error, the
		// others as if they were not set.
		get = func(k policy.Key) *classad.Expr {
			switch e := exprs.Get(k); {
			case !e.Bad:
				return e.Expr
			case k == policy.Start:
				return classad.Literal(classad.ErrorValue())
			}
			return nil
		}
	}
	put := func(name string, e *classad.Expr, otherwise string) {
		if e == nil {
			e = classad.MustParseExpr(otherwise)
		}
		l.ad.Set(name, e)
	}
	put(attrStart, get(policy.Start), "true")
	put(attrRank, get(policy.Rank), "0.0")
	put(attrMaxJobRetirementTime, get(policy.MaxJobRetirementTime), "0")
	put(attrMachineMaxVacateTime, get(policy.MachineMaxVacateTime), "10 * 60")
	// The table's default for CpuBusy is that of the desktop policies.
	var busy *classad.Expr
	if set, ok := m.set.cfg.Lookup(attrCpuBusy); ok && !set.IsDefault {
		busy = m.set.expr(typeID, attrCpuBusy)
	}
	put(attrCpuBusy, busy, "false")
	put(attrSlotWeight, m.set.expr(typeID, "SLOT_WEIGHT", "SlotWeight"), "Cpus")
	put(attrUnhibernate, m.set.expr(typeID, "UNHIBERNATE", "Unhibernate"), "MY.MachineLastMatchTime =!= undefined")

	within := m.set.expr(typeID, "WithinResourceLimits")
	if within == nil {
		text := m.set.withinText
		if m.maps() {
			text = strings.ReplaceAll(text, newElvis, oldElvis)
		}
		for _, r := range m.src.Ledger.Resources() {
			text += fmt.Sprintf(" && (TARGET.Request%[1]s is UNDEFINED || MY.%[1]s >= TARGET.Request%[1]s)", r.Name)
		}
		if m.offline() {
			text += " && " + withoutNetwork
		}
		if e, err := classad.ParseExpr(text, classad.Old); err == nil {
			within = e
		} else {
			within = classad.Literal(classad.ErrorValue())
		}
	}
	l.ad.Set(attrWithinLimits, within)
	for kind := range l.offered {
		l.offered[kind] = l.requirements(m, typeID, slot.Kind(kind))
	}
}

// A negotiator of 23.9 takes ?: for weaker than !=, one of 25.14 for stronger. So the
// default of CATALOG_SPACE is an error there once a slot says how it maps files, and
// with it Requirements: no job would match. What stands for it here means the same to both.
const (
	newElvis = `MappingMethod ?: "" != "Copy"`
	oldElvis = `MappingMethod =!= "Copy"`
)

// maps reports whether the slots say how files that jobs share are mapped.
func (m *Machine) maps() bool {
	attrs := m.src.Inventory.Attrs
	if attrs == nil {
		return false
	}
	_, said := attrs.Lookup("MappingMethod")
	return said
}

// withoutNetwork is true for jobs that say that they do without a network: one that says
// nothing may want it.
const withoutNetwork = "TARGET.WantJobNetworking =?= false"

// offline reports whether jobs have no network here (NO_JOB_NETWORKING).
func (m *Machine) offline() bool {
	attrs := m.src.Inventory.Attrs
	if attrs == nil {
		return false
	}
	has, said := attrs.EvalBool("HasJobNetworking", nil)
	return said && !has
}

// requirements joins START, WithinResourceLimits and the clauses that the
// owner names for slots of a kind. A clause without a value is left out, one
// whose value does not parse is error in Requirements.
func (l *typeLayer) requirements(m *Machine, typeID int, kind slot.Kind) *classad.Expr {
	plain := classad.MustParseExpr(attrStart + " && " + attrWithinLimits)
	ofKind := "PSLOT_REQUIREMENTS_CLAUSES"
	if kind == slot.Dynamic {
		ofKind = "DSLOT_REQUIREMENTS_CLAUSES"
	}
	valueOf := func(knob string) []string {
		text, _ := m.set.value(knob, "", typeID)
		return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	}
	front, back := valueOf("SLOT_REQUIREMENTS_CLAUSES"), valueOf(ofKind)
	if len(front)+len(back) == 0 && m.set.health == nil {
		return plain
	}
	var clauses []string
	if m.set.health != nil {
		clauses = append(clauses, attrHealthy)
	}
	add := func(name string) {
		standard := strings.EqualFold(name, attrStart) || strings.EqualFold(name, attrWithinLimits)
		text, ok := m.set.value(name, "", typeID)
		if !isName(name) || standard || !ok || slices.ContainsFunc(clauses, func(c string) bool { return strings.EqualFold(c, name) }) {
			return
		}
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			e = classad.Literal(classad.ErrorValue())
		}
		l.ad.Set(name, e)
		clauses = append(clauses, name)
	}
	for _, c := range front {
		add(c)
	}
	clauses = append(clauses, "START", attrWithinLimits)
	for _, c := range back {
		add(c)
	}
	return classad.MustParseExpr(strings.Join(clauses, " && "))
}

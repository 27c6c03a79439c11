// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// Key names one of the expressions of a policy.
type Key uint8

// The expressions. Those that a job's universe can replace come first, so
// that a variant is found by position.
const (
	WantSuspend Key = iota
	SuspendExpr
	ContinueExpr
	PreemptExpr
	WantVacate
	KillExpr
	numReplaceable

	Start Key = iota + 2*numReplaceable - 1
	IsOwner
	Rank
	WantHold
	WantHoldReason
	WantHoldSubcode
	MaxJobRetirementTime
	MachineMaxVacateTime
	ClaimWorklife
	RunBenchmarks
	StartBackfill
	EvictBackfill
	PeriodicCheckpoint
	numKeys
)

// Where the variants for a universe begin.
const (
	vanillaVariants = numReplaceable
	vmVariants      = 2 * numReplaceable
)

// The universes that have variants, and the one that is gone.
const (
	UniverseStandard = 1
	UniverseVanilla  = 5
	UniverseVM       = 13
)

// keyed is how an expression is called in the configuration and in an ad.
var keyed = [numKeys]struct{ knob, attr string }{
	WantSuspend:  {"WANT_SUSPEND", ""},
	SuspendExpr:  {"SUSPEND", ""},
	ContinueExpr: {"CONTINUE", ""},
	PreemptExpr:  {"PREEMPT", ""},
	WantVacate:   {"WANT_VACATE", ""},
	KillExpr:     {"KILL", ""},

	vanillaVariants + WantSuspend:  {"WANT_SUSPEND_VANILLA", ""},
	vanillaVariants + SuspendExpr:  {"SUSPEND_VANILLA", ""},
	vanillaVariants + ContinueExpr: {"CONTINUE_VANILLA", ""},
	vanillaVariants + PreemptExpr:  {"PREEMPT_VANILLA", ""},
	vanillaVariants + WantVacate:   {"WANT_VACATE_VANILLA", ""},
	vanillaVariants + KillExpr:     {"KILL_VANILLA", ""},

	vmVariants + WantSuspend:  {"WANT_SUSPEND_VM", ""},
	vmVariants + SuspendExpr:  {"SUSPEND_VM", ""},
	vmVariants + ContinueExpr: {"CONTINUE_VM", ""},
	vmVariants + PreemptExpr:  {"PREEMPT_VM", ""},
	vmVariants + WantVacate:   {"WANT_VACATE_VM", ""},
	vmVariants + KillExpr:     {"KILL_VM", ""},

	Start:                {"START", "Start"},
	IsOwner:              {"IS_OWNER", "IsOwner"},
	Rank:                 {"RANK", "Rank"},
	WantHold:             {"WANT_HOLD", ""},
	WantHoldReason:       {"WANT_HOLD_REASON", ""},
	WantHoldSubcode:      {"WANT_HOLD_SUBCODE", ""},
	MaxJobRetirementTime: {"MAXJOBRETIREMENTTIME", "MaxJobRetirementTime"},
	MachineMaxVacateTime: {"MachineMaxVacateTime", "MachineMaxVacateTime"},
	ClaimWorklife:        {"CLAIM_WORKLIFE", ""},
	RunBenchmarks:        {"RunBenchmarks", "RunBenchmarks"},
	StartBackfill:        {"START_BACKFILL", ""},
	EvictBackfill:        {"EVICT_BACKFILL", ""},
	PeriodicCheckpoint:   {"PERIODIC_CHECKPOINT", ""},
}

// String returns the name in the configuration.
func (k Key) String() string {
	if k < numKeys {
		return keyed[k].knob
	}
	return fmt.Sprintf("Key(%d)", uint8(k))
}

// attrName returns the name under which other expressions refer to k.
func (k Key) attrName() string {
	if a := keyed[k].attr; a != "" {
		return a
	}
	return keyed[k].knob
}

// Expression is one expression as configured.
type Expression struct {
	Name   string        // of the setting that won: "PREEMPT" or "SLOT_TYPE_1_PREEMPT"
	Expr   *classad.Expr // nil if it is not set and has no default
	Origin config.Origin
	Bad    bool // what is set does not parse; Expr is undefined
}

// Unparsed is a setting of the policy that is no expression.
type Unparsed struct {
	Name    string // "PREEMPT" or "SLOT_TYPE_1_PREEMPT"
	Text    string // after expansion
	Instead string // the setting that counts for it, "" if the expression is undefined
	Err     error  // with the place, a config.Problem as a rule
}

// Error says what is wrong and what counts meanwhile.
func (u Unparsed) Error() string {
	if u.Instead != "" {
		return u.Err.Error() + ": " + u.Instead + " counts instead"
	}
	return u.Err.Error() + ": undefined until it is corrected"
}

// Unwrap returns what the configuration has wrong.
func (u Unparsed) Unwrap() error { return u.Err }

// Expressions are the policy of one slot type. They refer to one another by
// name, as attributes of the slot. An Expressions is used by one goroutine.
type Expressions struct {
	list  [numKeys]Expression
	scope *classad.Ad // all of list by name; its parent is the slot's ad at hand

	constant [numKeys]bool // the expression asks for nothing
	value    [numKeys]classad.Value

	unparsed []Unparsed
}

// Unparsed returns what of the policy is set and no expression.
func (x *Expressions) Unparsed() []Unparsed { return x.unparsed }

// Get returns the expression for k.
func (x *Expressions) Get(k Key) Expression { return x.list[k] }

// Mentions reports whether some expression asks for an attribute of that name,
// whichever ad it would find it in.
func (x *Expressions) Mentions(attr string) bool {
	same := func(name string) bool { return strings.EqualFold(name, attr) }
	for i := range x.list {
		e := x.list[i].Expr
		if e == nil {
			continue
		}
		refs, ok := e.Refs(classad.NewAd())
		if !ok || slices.ContainsFunc(refs.External, same) || slices.ContainsFunc(refs.Internal, same) {
			return true
		}
	}
	return false
}

// ExpressionsFrom reads the policy of slots of the type with that number.
// SLOT_TYPE_<n>_X replaces X, except for IS_OWNER, which is the machine's. What
// is empty has its default. What does not parse is undefined, or in the case of
// SLOT_TYPE_<n>_X leaves X as it is, as in HTCondor, which logs it and goes on;
// Unparsed and the error tell about it, and the result can be used all the same.
func ExpressionsFrom(s *config.Snapshot, slotType int) (*Expressions, error) {
	x := &Expressions{scope: classad.NewAd()}
	var bad []error
	for k := range numKeys {
		if keyed[k].knob == "" {
			continue
		}
		e := expression(s, k, slotType, &x.unparsed)
		x.list[k] = e
		if e.Expr != nil {
			x.scope.Set(k.attrName(), e.Expr)
			x.value[k], x.constant[k] = constant(e.Expr)
		}
	}
	for _, u := range x.unparsed {
		bad = append(bad, u)
	}
	return x, errors.Join(bad...)
}

// constant returns the value of an expression that has the same one always.
// Most policies are made of these, and are asked every few seconds.
func constant(e *classad.Expr) (classad.Value, bool) {
	if v, ok := e.LiteralValue(); ok {
		return v, true
	}
	refs, ok := e.Refs(classad.NewAd())
	if !ok || len(refs.External) > 0 || len(refs.Internal) > 0 || strings.ContainsAny(e.String(), "([{") {
		return classad.Value{}, false
	}
	return e.Eval(nil), true
}

func expression(s *config.Snapshot, k Key, slotType int, bad *[]Unparsed) Expression {
	name := keyed[k].knob
	if k == IsOwner {
		slotType = -1
		// The attribute's own name is asked for first, as HTCondor does.
		if set, ok := s.Lookup(keyed[k].attr); ok && !set.IsDefault && (set.Value != "" || set.Err != nil) {
			e, _ := parsed(s, set, bad)
			return e
		}
	}
	set, ok := s.ForSlot(name, 0, slotType)
	if !ok || set.Value == "" && set.Err == nil {
		return defaultExpression(s, name, bad)
	}
	e, ok := parsed(s, set, bad)
	if own := config.SlotNames(name, 0, slotType)[0]; !ok && slotType >= 0 && strings.EqualFold(set.Name[strings.LastIndexByte(set.Name, '.')+1:], own) {
		(*bad)[len(*bad)-1].Instead = name
		return expression(s, k, -1, bad)
	}
	return e
}

func undefined() *classad.Expr { return classad.Literal(classad.Undefined()) }

func parsed(s *config.Snapshot, set config.Setting, bad *[]Unparsed) (Expression, bool) {
	e, err := s.Expr(set.Name)
	if err == nil && e == nil {
		err = set.Err
	}
	if err != nil || e == nil {
		*bad = append(*bad, Unparsed{Name: set.Name, Text: set.Value, Err: err})
		return Expression{Name: set.Name, Expr: undefined(), Origin: set.Origin, Bad: true}, false
	}
	return Expression{Name: set.Name, Expr: e, Origin: set.Origin}, true
}

// defaultExpression is what an expression that is set to nothing falls back to.
func defaultExpression(s *config.Snapshot, name string, bad *[]Unparsed) Expression {
	knob, ok := config.LookupKnob(name)
	if !ok || knob.Default == "" {
		return Expression{Name: name}
	}
	text, err := s.Expand(knob.Default)
	var e *classad.Expr
	if err == nil {
		e, err = classad.ParseExpr(text, classad.Old)
	}
	if err != nil {
		*bad = append(*bad, Unparsed{Name: name, Text: text, Err: fmt.Errorf("%s, whose default is %s: %w", name, knob.Default, err)})
		return Expression{Name: name, Expr: undefined(), Bad: true}
	}
	return Expression{Name: name, Expr: e, Origin: config.Origin{Kind: config.Default}}
}

// Times are the intervals and timeouts that go with a policy. They are the
// same for every slot.
type Times struct {
	Polling          time.Duration // POLLING_INTERVAL: while any slot is claimed
	Update           time.Duration // UPDATE_INTERVAL: otherwise
	Killing          time.Duration // KILLING_TIMEOUT: from a hard kill to the end of the starter by force
	Match            time.Duration // MATCH_TIMEOUT
	Alive            time.Duration // ALIVE_INTERVAL, when a client does not say
	AlivesMissed     int           // MAX_CLAIM_ALIVES_MISSED
	DrainActivation  time.Duration // MAX_DRAINING_ACTIVATION_DELAY: how long a claim may idle while draining
	ShutdownGraceful time.Duration // SHUTDOWN_GRACEFUL_TIMEOUT: then a graceful shutdown becomes a fast one
	ShutdownFast     time.Duration // SHUTDOWN_FAST_TIMEOUT: from a fast shutdown until condor_master kills this daemon
	Offset           time.Duration // UPDATE_OFFSET: until the first update
	NoClaim          time.Duration // STARTD_NOCLAIM_SHUTDOWN: without any claim until the EP ends, 0: never
}

// TimesFrom reads the times. The error is what the configuration has wrong.
func TimesFrom(s *config.Snapshot) (Times, error) {
	var t Times
	var bad []error
	for _, f := range []struct {
		knob string
		to   *time.Duration
	}{
		{"POLLING_INTERVAL", &t.Polling}, {"UPDATE_INTERVAL", &t.Update}, {"KILLING_TIMEOUT", &t.Killing},
		{"MATCH_TIMEOUT", &t.Match}, {"ALIVE_INTERVAL", &t.Alive}, {"SHUTDOWN_GRACEFUL_TIMEOUT", &t.ShutdownGraceful},
		{"SHUTDOWN_FAST_TIMEOUT", &t.ShutdownFast},
		{"MAX_DRAINING_ACTIVATION_DELAY", &t.DrainActivation}, {"UPDATE_OFFSET", &t.Offset}, {"STARTD_NOCLAIM_SHUTDOWN", &t.NoClaim},
	} {
		d, err := s.Duration(f.knob)
		if err != nil {
			bad = append(bad, err)
		}
		*f.to = d
	}
	missed, err := s.Int("MAX_CLAIM_ALIVES_MISSED")
	if err != nil {
		bad = append(bad, err)
	}
	t.AlivesMissed = int(missed)
	// An interval of nothing would be a loop without end.
	t.Polling = max(t.Polling, time.Second)
	t.Update = max(t.Update, time.Second)
	return t, errors.Join(bad...)
}

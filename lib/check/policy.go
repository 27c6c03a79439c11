// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// policyKnobs are the expressions that decide about jobs, with the names under
// which other expressions see those that are called differently in an ad.
var policyKnobs = [...]struct{ knob, attr string }{
	{"START", ""}, {"IS_OWNER", "IsOwner"}, {"RANK", ""}, {"SUSPEND", ""}, {"CONTINUE", ""}, {"PREEMPT", ""}, {"KILL", ""},
	{"WANT_SUSPEND", ""}, {"WANT_VACATE", ""}, {"WANT_HOLD", ""}, {"WANT_HOLD_REASON", ""}, {"WANT_HOLD_SUBCODE", ""},
	{"MAXJOBRETIREMENTTIME", ""}, {"MachineMaxVacateTime", ""}, {"CLAIM_WORKLIFE", ""}, {"RunBenchmarks", ""},
}

// variants are the endings of expressions for one universe.
var variants = [...]string{"", "_VANILLA", "_VM"}

// isPolicy reports whether name is one of the expressions, for all jobs or
// for one universe.
func isPolicy(name string) bool {
	for _, v := range variants {
		if stem := len(name) - len(v); stem > 0 && strings.EqualFold(name[stem:], v) {
			if slices.ContainsFunc(policyKnobs[:], func(k struct{ knob, attr string }) bool { return strings.EqualFold(k.knob, name[:stem]) }) {
				return true
			}
		}
	}
	return false
}

// typeKnob is a setting of one slot type.
var typeKnob = pattern(`(?i)^SLOT_TYPE_([0-9]+)_(\w+)$`)

// slotTypeKnob splits the name of a setting into slot type and knob; without
// one the type is "".
func slotTypeKnob(name string) (slotType, knob string) {
	if m := typeKnob().FindStringSubmatch(name); m != nil {
		return m[1], m[2]
	}
	return "", name
}

// ruleset is the policy of one slot type.
type ruleset struct {
	c        *checker
	slotType int
	meaning  meaning // as a slot with a job sees it
}

// lookup returns the setting that counts for a knob and its tree.
func (r *ruleset) lookup(knob string) (config.Setting, *node) {
	for _, name := range []string{"SLOT_TYPE_" + strconv.Itoa(r.slotType) + "_" + knob, knob} {
		if s, ok := r.c.setting(name); ok && (name == knob || knob != "IS_OWNER") {
			return s, parse(s)
		}
	}
	s, _ := r.c.Config.Lookup(knob)
	if k, ok := config.LookupKnob(knob); ok && strings.TrimSpace(s.Value) == "" {
		s.Name, s.Value, s.Origin = knob, k.Default, config.Origin{}
		s.Value, _ = r.c.Config.Expand(k.Default)
	}
	return s, parse(s)
}

// ruleset gathers what the slots of a type go by.
func (c *checker) ruleset(slotType int) *ruleset {
	r := &ruleset{c: c, slotType: slotType}
	defs := map[string]*node{}
	for _, k := range policyKnobs {
		_, n := r.lookup(k.knob)
		defs[strings.ToLower(k.knob)] = n
		if k.attr != "" {
			defs[strings.ToLower(k.attr)] = n
		}
	}
	for _, attr := range c.attrs {
		values := c.valuesOf(attr)
		var n *node
		if len(values) == 1 && strings.EqualFold(bare(values[0].Name), attr) {
			n = parse(values[0])
		}
		defs[strings.ToLower(attr)] = n
	}
	r.meaning = meaning{names: c.names, defs: defs, job: true}
	return r
}

// slotTypes returns the numbers of the slot types that make slots.
func (c *checker) slotTypes() []int {
	var types []int
	for _, s := range c.set {
		if m := countKnob().FindStringSubmatch(bare(s.Name)); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				if many, err := c.Config.Int(s.Name); err == nil && many > 0 {
					types = append(types, n)
				}
			}
		}
	}
	if len(types) == 0 {
		return []int{0}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// policies looks at how the expressions of a policy go together. A finding
// about a setting counts only if it holds for every slot type and universe
// that the setting is for.
func (c *checker) policies() {
	v := votes{cast: map[string]int{}, against: map[Finding]int{}}
	for _, t := range c.slotTypes() {
		r := c.ruleset(t)
		r.owner()
		r.start(&v)
		for _, variant := range variants {
			r.running(&v, variant)
		}
	}
	for _, f := range v.order {
		if v.against[f] == v.cast[string(f.Code)+" "+f.Knob] {
			c.add(f)
		}
	}
}

// votes count for how many slot types and universes something is wrong.
type votes struct {
	cast    map[string]int
	against map[Finding]int
	order   []Finding
}

// vote says whether a rule finds something wrong with a setting.
func (v *votes) vote(wrong bool, code Code, s config.Setting, message, instead string) {
	if s.Origin.Kind == config.Default || s.Origin.Kind == config.Detected {
		return // nobody wrote it
	}
	f := found(code, s, message, instead)
	v.cast[string(code)+" "+f.Knob]++
	if !wrong {
		return
	}
	if v.against[f] == 0 {
		v.order = append(v.order, f)
	}
	v.against[f]++
}

// mayHold reports whether a condition can be met.
func (r *ruleset) mayHold(n *node) bool {
	if n == nil {
		return true
	}
	o := r.meaning.outcome(n)
	if o == isNumber && n.isConstant() {
		return n.value().IsTrue()
	}
	return o.mayHold()
}

// always reports whether a condition is always met.
func (r *ruleset) always(n *node) bool {
	if n == nil {
		return false
	}
	o := r.meaning.outcome(n)
	return o == isTrue || o == isNumber && n.isConstant() && n.value().IsTrue()
}

// says tells what an expression is and where that was set.
func says(s config.Setting) string {
	if s.Origin.Kind == config.Default {
		return s.Name + " is " + oneLine(s.Value) + " by default"
	}
	return s.Name + " is " + oneLine(s.Value) + " (" + s.Origin.String() + ")"
}

// running looks at what happens to a job that runs.
func (r *ruleset) running(v *votes, variant string) {
	get := func(knob string) (config.Setting, *node) {
		if variant != "" {
			if s, ok := r.c.setting(knob + variant); ok {
				return s, parse(s)
			}
		}
		return r.lookup(knob)
	}
	wantS, wantN := get("WANT_SUSPEND")
	suspS, suspN := get("SUSPEND")
	contS, contN := get("CONTINUE")
	preeS, preeN := get("PREEMPT")
	killS, killN := get("KILL")
	vacaS, vacaN := get("WANT_VACATE")
	suspends := r.mayHold(wantN) && r.mayHold(suspN)

	v.vote(suspN != nil && r.mayHold(suspN) && !r.mayHold(wantN) && !r.mentions(preeN, "SUSPEND"),
		NeverSuspends, suspS, "is never looked at, because "+says(wantS), "WANT_SUSPEND = True")
	v.vote(suspends && suspN != nil && contN != nil && !r.mayHold(contN),
		NeverContinues, contS, "can never be true, so that a suspended job never goes on", "a condition that comes true again, as "+oneLine("("+suspS.Value+") != True"))
	v.vote(preeN != nil && r.mayHold(preeN) && r.always(wantN) && !r.mayHold(suspN),
		PreemptUnasked, preeS, "is never looked at, because "+says(wantS)+" and "+says(suspS), "WANT_SUSPEND = False")
	v.vote(killN != nil && r.mayHold(killN) && preeN != nil && r.mayHold(preeN) && !r.mayHold(vacaN),
		KillUnasked, killS, "does not count when PREEMPT ends a job, because "+says(vacaS), "WANT_VACATE = True")
	r.vacate(v, vacaS, vacaN)
	for _, x := range []struct {
		s config.Setting
		n *node
	}{{wantS, wantN}, {suspS, suspN}, {contS, contN}, {preeS, preeN}, {killS, killN}} {
		v.vote(x.n != nil && !r.meaning.outcome(x.n).may(boolean|isNumber), NoCondition, x.s, "is neither true nor false, which counts as false", "True, False or a comparison")
	}
}

// mentions reports whether an expression asks for an attribute by itself.
func (r *ruleset) mentions(n *node, name string) bool {
	if n == nil {
		return false
	}
	return !n.all(func(m *node) bool { return !m.isAttr(name) })
}

// vacate looks at WANT_VACATE, which must be true or false when it is asked.
func (r *ruleset) vacate(v *votes, s config.Setting, n *node) {
	if n == nil {
		return
	}
	m := r.meaning
	m.present, m.active = true, nil
	o := m.outcome(n)
	switch {
	case !o.may(boolean | isNumber):
		v.vote(true, VacateUndefined, s, "is never true or false", "True, False or a comparison")
	default:
		v.vote(o.may(isUndefined), VacateUndefined, s, "may be undefined", "("+oneLine(s.Value)+") =?= True")
	}
}

// start looks at START.
func (r *ruleset) start(v *votes) {
	s, n := r.lookup("START")
	if n == nil {
		return
	}
	plain := n.op == opLiteral && r.meaning.outcome(n) == isFalse
	v.vote(!plain && !r.mayHold(n), NeverStarts, s, "can never be true", "a condition that can be met, or START = False to close the machine")
}

// owner looks at IS_OWNER, which is asked without a job and must be true or
// false.
func (r *ruleset) owner() {
	s, n := r.lookup("IS_OWNER")
	if n == nil || s.Origin.Kind == config.Default || r.slotType != r.c.slotTypes()[0] {
		return
	}
	var state, job string
	n.all(func(m *node) bool {
		key := strings.ToLower(m.name)
		_, slot := r.c.names.slot[key]
		_, ofJob := r.c.names.job[key]
		_, own := r.meaning.defs[key]
		switch {
		case m.op != opAttr:
		case m.isAttr("State") || m.isAttr("Activity"):
			state = m.name
		case m.scope == "TARGET" || ofJob && !slot && !own:
			job = m.written()
		}
		return true
	})
	m := r.meaning
	m.job, m.active = false, nil
	o := m.outcome(n)
	switch {
	case state != "":
		r.c.add(found(OwnerByState, s, "looks at "+state+", which it decides itself", "a condition on the machine: KeyboardIdle, LoadAvg, ClockMin"))
	case o.only(boolean | isNumber):
	case job != "":
		r.c.add(found(OwnerOfJob, s, "asks for "+job+", and mostly there is no job to ask", "=?= or =!= in place of == and !=, or START for what depends on the job"))
	case !o.may(boolean | isNumber):
		r.c.add(found(OwnerUndefined, s, "is never true or false", "True, False or a comparison"))
	default:
		r.c.add(found(OwnerUndefined, s, "may be undefined", "("+oneLine(s.Value)+") =?= True"))
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "slices"

// Matcher matches one ad against many, such as a job against slots. It
// allocates nothing per ad. A Matcher is for one goroutine; several may have
// the same ad.
type Matcher struct {
	my  *Ad
	env Env
	ev  evaluator

	// reads is where the values stand, in ads of a layout, that a match of
	// them reads.
	reads map[*layout][]int
	sum   uint64
}

// NewMatcher returns a Matcher of my. env gives clock, random source and
// limits, which hold for each evaluation by itself; its ads are not looked
// at, and it may be nil.
func NewMatcher(my *Ad, env *Env) *Matcher {
	if my == nil {
		my = NewAd()
	}
	m := &Matcher{my: my, reads: map[*layout][]int{}}
	if env != nil {
		m.env = *env
	}
	return m
}

// Matches reports whether both ads accept each other: whether the
// Requirements of each, with the other as TARGET, is the boolean true or a
// number other than zero. Undefined, error, a missing Requirements and one
// that cannot be evaluated do not accept. The second ad is not asked if the
// first does not accept.
func (m *Matcher) Matches(other *Ad) bool {
	m.touch(other)
	return m.Accepts(other) && m.eval(&attrRequirements, other, m.my).IsTrue()
}

// Accepts reports whether the Requirements of the Matcher's ad accept other.
func (m *Matcher) Accepts(other *Ad) bool {
	return m.eval(&attrRequirements, m.my, other).IsTrue()
}

// Rank returns the Rank that the Matcher's ad gives other, 0 if it is no
// number or boolean.
func (m *Matcher) Rank(other *Ad) float64 {
	f, _ := m.eval(&attrRank, m.my, other).AsNumber()
	return f
}

// RankOf returns the Rank that other gives the Matcher's ad, 0 if it is no
// number or boolean.
func (m *Matcher) RankOf(other *Ad) float64 {
	f, _ := m.eval(&attrRank, other, m.my).AsNumber()
	return f
}

// touch loads the values that a match will want. They are far apart in an ad
// that nobody looked at lately, and loading them together takes hardly longer
// than waiting for the first alone.
func (m *Matcher) touch(other *Ad) {
	if len(other.vals) < minTouched {
		return
	}
	reads, ok := m.reads[other.layout]
	if !ok && len(m.reads) < maxTouched {
		reads = m.learn(other)
		m.reads[other.layout] = reads
	}
	sum := uint64(0)
	for _, p := range reads {
		if p < len(other.vals) {
			sum += other.vals[p].num
		}
	}
	m.sum = sum // or the loads would be left out
}

// From how many attributes on an ad is touched, for how many layouts, and how
// many values of one.
const (
	minTouched = 32
	maxTouched = 64
	maxReads   = 128
)

// learn returns where a match reads an ad like other.
func (m *Matcher) learn(other *Ad) (reads []int) {
	scope := ""
	env := m.env
	env.OnDebug = nil
	env.OnRead = func(r Read) {
		p := other.layout.find(r.Name, hashName(r.Name))
		if r.Scope == scope && p >= 0 && len(reads) < maxReads && !slices.Contains(reads, p) {
			reads = append(reads, p)
		}
	}
	scope = "TARGET"
	m.my.tryEval(&attrRequirements, &env, other)
	scope = "MY"
	other.tryEval(&attrRequirements, &env, m.my)
	if p := other.layout.find(attrRequirements.text, attrRequirements.hash); p >= 0 {
		reads = append(reads, p)
	}
	return reads
}

// eval evaluates an attribute of a with b as TARGET.
func (m *Matcher) eval(nm *attrName, a, b *Ad) Value {
	at := a.lookup(nm.text, nm.hash)
	if at == nil {
		return Undefined()
	}
	if at.kind != kindExpr {
		return *at
	}
	ev := &m.ev
	ev.context, ev.pending, ev.failed, ev.active = nil, nil, false, 0
	ev.start(&m.env, a, b)
	v := ev.attribute(at, a)
	if !ev.end() {
		return ErrorValue()
	}
	return v
}

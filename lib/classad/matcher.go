// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Matcher matches one ad against many, such as a job against slots. It
// allocates nothing per ad. A Matcher is for one goroutine; several may have
// the same ad.
type Matcher struct {
	my  *Ad
	env Env
	ev  evaluator
}

// NewMatcher returns a Matcher of my. env gives clock, random source and
// limits, which hold for each evaluation by itself; its ads are not looked
// at, and it may be nil.
func NewMatcher(my *Ad, env *Env) *Matcher {
	if my == nil {
		my = NewAd()
	}
	m := &Matcher{my: my}
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
	return m.Accepts(other) && m.eval(&nameRequirements, other, m.my).IsTrue()
}

// Accepts reports whether the Requirements of the Matcher's ad accept other.
func (m *Matcher) Accepts(other *Ad) bool {
	return m.eval(&nameRequirements, m.my, other).IsTrue()
}

// Rank returns the Rank that the Matcher's ad gives other, 0 if it is no
// number or boolean.
func (m *Matcher) Rank(other *Ad) float64 {
	f, _ := m.eval(&nameRank, m.my, other).AsNumber()
	return f
}

// RankOf returns the Rank that other gives the Matcher's ad, 0 if it is no
// number or boolean.
func (m *Matcher) RankOf(other *Ad) float64 {
	f, _ := m.eval(&nameRank, other, m.my).AsNumber()
	return f
}

// eval evaluates an attribute of a with b as TARGET.
func (m *Matcher) eval(nm *name, a, b *Ad) Value {
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
	if ev.failed || ev.steps < 0 {
		return ErrorValue()
	}
	return v
}

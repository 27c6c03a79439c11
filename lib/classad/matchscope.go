// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Around the two ads of a match stand ads that hardly any expression sees: one
// context for each side, where TARGET and its kin are defined, and around both
// the match itself. They are made when asked for.

// matchAttrs is the text of the ad around a match.
const matchAttrs = `[ symmetricMatch = RIGHT.requirements && LEFT.requirements;
	leftMatchesRight = RIGHT.requirements; rightMatchesLeft = LEFT.requirements;
	leftRankValue = LEFT.rank; rightRankValue = RIGHT.rank ]`

// What it takes to make one of them, about as long as so many steps.
const (
	contextSteps = 20
	matchSteps   = 200
)

// contextAd returns the ad around one side of the match.
func (ev *evaluator) contextAd(side *Ad) *Ad {
	ev.spend(64 * contextSteps)
	mine, other := ".LEFT", ".RIGHT"
	if side == ev.right {
		mine, other = other, mine
	}
	a := NewAd()
	a.setNode("ad", &attrRef{name: newName(mine[1:]), absolute: true})
	a.setNode("my", &attrRef{name: newName(mine[1:]), absolute: true})
	a.setNode("other", &attrRef{name: newName(other[1:]), absolute: true})
	a.setNode("target", &attrRef{name: newName(other[1:]), absolute: true})
	return a
}

// matchAd returns the ad around both sides.
func (ev *evaluator) matchAd() *Ad {
	ev.spend(64 * matchSteps)
	a, err := ParseAd(matchAttrs, New)
	if err != nil {
		return NewAd()
	}
	a.SetValue("LEFT", AdValue(ev.left))
	a.SetValue("RIGHT", AdValue(ev.right))
	a.SetValue("lCtx", AdValue(ev.contextAd(ev.left)))
	a.SetValue("rCtx", AdValue(ev.contextAd(ev.right)))
	return a
}

// matchName resolves a name of the ad around both sides.
func (ev *evaluator) matchName(r role) found {
	switch r {
	case roleLeft:
		return ev.ad(ev.left)
	case roleRight:
		return ev.ad(ev.right)
	case roleLeftContext:
		return ev.ad(ev.contextAd(ev.left))
	case roleRightContext:
		return ev.ad(ev.contextAd(ev.right))
	case roleSymmetricMatch:
		right, left := ev.side(ev.right, &attrRequirements), ev.side(ev.left, &attrRequirements)
		return found{v: applyBinary(opAnd, right, left), ok: true}
	case roleLeftMatchesRight:
		return found{v: ev.side(ev.right, &attrRequirements), ok: true}
	case roleRightMatchesLeft:
		return found{v: ev.side(ev.left, &attrRequirements), ok: true}
	case roleLeftRank:
		return found{v: ev.side(ev.left, &attrRank), ok: true}
	case roleRightRank:
		return found{v: ev.side(ev.right, &attrRank), ok: true}
	}
	return found{}
}

var (
	attrRequirements = attrName{"Requirements", hashName("Requirements")}
	attrRank         = attrName{"Rank", hashName("Rank")}
)

// side evaluates an attribute of one side.
func (ev *evaluator) side(a *Ad, nm *attrName) Value {
	at := a.lookup(nm.text, nm.hash)
	if at == nil {
		return Undefined()
	}
	return ev.attribute(at, a)
}

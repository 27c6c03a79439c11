// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// MatchResult is what two ads make of each other.
type MatchResult struct {
	LeftOK, RightOK   bool  // whether each side's Requirements accept the other
	LeftReq, RightReq Value // what they evaluated to
	// The ranks each side gives the other, as the negotiator reads them: a
	// Rank that is no number or boolean counts as 0.
	LeftRank, RightRank float64
}

// OK reports whether both sides accept.
func (r MatchResult) OK() bool { return r.LeftOK && r.RightOK }

// Match evaluates Requirements and Rank of each ad with the other as TARGET.
// env gives clock, random source and limits; its ads are not looked at, and
// it may be nil. A missing Requirements is undefined and does not accept.
func Match(left, right *Ad, env *Env) MatchResult {
	if env == nil {
		env = &noEnv
	}
	var r MatchResult
	r.LeftReq, _ = left.tryEval(&attrRequirements, env, right)
	r.RightReq, _ = right.tryEval(&attrRequirements, env, left)
	r.LeftOK, r.RightOK = r.LeftReq.IsTrue(), r.RightReq.IsTrue()
	v, _ := left.tryEval(&attrRank, env, right)
	r.LeftRank, _ = v.AsNumber()
	v, _ = right.tryEval(&attrRank, env, left)
	r.RightRank, _ = v.AsNumber()
	return r
}

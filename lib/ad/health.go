// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

const healthKnob = "STARTD_HEALTH_EXPRS"

// healthOf reads the owner's checks of the machine's health, with or without
// the braces of a list. The result is nil if the owner has none to say, and
// empty if the list is.
func healthOf(cfg *config.Snapshot) ([]*classad.Expr, error) {
	set, ok := cfg.Lookup(healthKnob)
	text := strings.TrimSpace(set.Value)
	if !ok || text == "" {
		return nil, nil
	}
	list, err := classad.ParseExpr("{"+text+"}", classad.Old)
	if strings.HasPrefix(text, "{") || err != nil {
		list, err = classad.ParseExpr(text, classad.Old)
	}
	if err == nil {
		if checks, ok := list.Eval(nil).AsList(); ok {
			return append([]*classad.Expr{}, checks...), nil
		}
		err = fmt.Errorf("it is no list")
	}
	return nil, config.Problems{{
		File: set.Origin.File, Line: set.Origin.Line, Knob: healthKnob, Value: text, Message: err.Error(),
		Want: "expressions with commas between them",
	}}
}

// publishHealth shows the checks, the share of them that holds, and whether
// all do. A check that is undefined does not count.
func (s *settings) publishHealth(ad *classad.Ad) {
	if s.health == nil {
		return
	}
	if len(s.health) == 0 {
		ad.SetBool(attrHealthy, true)
		return
	}
	// As text, so that the names in it mean the ad they stand in. What was
	// parsed once parses again.
	_ = ad.SetText("HealthExprs", classad.Literal(classad.List(s.health...)).String())
	_ = ad.SetText("HealthFactor", fmt.Sprintf("sum(HealthExprs) / %d.0", len(s.health)))
	all := classad.Literal(classad.List(append(slices.Clone(s.health), classad.Literal(classad.Int(1)))...))
	_ = ad.SetText(attrHealthy, "min("+all.String()+")")
}

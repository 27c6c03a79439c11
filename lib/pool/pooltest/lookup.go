// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// AnswerLookup answers a query for daemons of a kind as a collector does: no
// more of the ads than LimitResults.
func AnswerLookup(t testing.TB, c *cedar.Conn, kind string, ads ...*classad.Ad) {
	defer c.Close()
	query, err := c.Ad(cedar.AdOptions{})
	if err == nil {
		err = c.EndOfMessage()
	}
	if err != nil {
		t.Error(err)
		return
	}
	if got, _ := query.EvalString("TargetType", nil); got != kind {
		t.Errorf("asked for ads of %q by the command for %q", got, kind)
	}
	limit, _ := query.EvalInt("LimitResults", nil)
	matcher := classad.NewMatcher(query, &classad.Env{})
	for _, ad := range ads {
		if is, _ := ad.EvalString("MyType", nil); is == kind && limit > 0 && matcher.Accepts(ad) {
			limit--
			c.PutInt(1)
			c.PutAd(ad, cedar.AdOptions{})
		}
	}
	c.PutInt(0)
	_ = c.EndMessage() // who asked may have hung up on an answer that is too long
}

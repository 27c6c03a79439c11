// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// NO_JOB_NETWORKING takes one ability out of a machine's ad, and Withdraw takes out all.
//
// row: S4-083
func TestWithoutNetwork(t *testing.T) {
	t.Parallel()
	ad := classad.NewAd()
	ad.SetString(attrAbilities, "HasJava")
	Advertise(ad)
	if has, _ := ad.EvalBool("HasJobNetworking", nil); !has {
		t.Error("it is not there before")
	}
	WithoutNetwork(ad)
	has, said := ad.EvalBool("HasJobNetworking", nil)
	if list, _ := ad.EvalString(attrAbilities, nil); has || !said || list != "HasFileTransfer,HasJava" {
		t.Errorf("%v, %v, %q", has, said, list)
	}
	Withdraw(ad)
	if _, said := ad.EvalBool("HasJobNetworking", nil); said {
		t.Error("it is there afterwards")
	}
}

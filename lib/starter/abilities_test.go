// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/protocol"
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

// How files that jobs share are mapped is told where they are, and only there.
func TestAdvertiseCommonFiles(t *testing.T) {
	t.Parallel()
	for _, mapping := range []protocol.Mapping{protocol.MapHardlink, protocol.MapCopy, ""} {
		ad := classad.NewAd()
		AdvertiseForPool(ad, nil, mapping)
		version, _ := ad.EvalInt("HasCommonFilesTransfer", nil)
		how, _ := ad.EvalString("MappingMethod", nil)
		list, _ := ad.EvalString(attrAbilities, nil)
		if offered := mapping != ""; (version == 2) != offered || how != string(mapping) || strings.Contains(list, "HasCommonFilesTransfer") != offered {
			t.Errorf("%q: version %d, %q, %s", mapping, version, how, list)
		}
		Withdraw(ad)
		if ad.Len() != 0 {
			t.Errorf("%q: %s is left", mapping, ad.Text(classad.Old))
		}
	}
}

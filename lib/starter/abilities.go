// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// abilities are the attributes by which jobs ask for what a starter can do.
// Only what this one really does stands here.
var abilities = [...]string{"HasFileTransfer", "HasJobNetworking"}

// Advertise adds to a machine's ad what its starters can do: an attribute that
// is true for each ability, and StarterAbilityList, before what the machine's
// scanners put there.
func Advertise(ad *classad.Ad) {
	list := abilities[:]
	for _, name := range abilities {
		ad.SetBool(name, true)
	}
	if found, ok := ad.EvalString("StarterAbilityList", nil); ok {
		for _, name := range strings.Split(found, ",") {
			if !slices.Contains(list, name) {
				list = append(list[:len(list):len(list)], name)
			}
		}
	}
	ad.SetString("StarterAbilityList", strings.Join(list, ","))
}

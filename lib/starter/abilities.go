// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// abilities are the attributes by which jobs ask for what a starter can do.
// Only what this one really does stands here.
var abilities = [...]string{"HasFileTransfer", "HasJobNetworking"}

// Advertise adds to a machine's ad what its starters can do: an attribute that
// is true for each ability, and StarterAbilityList.
func Advertise(ad *classad.Ad) {
	for _, name := range abilities {
		ad.SetBool(name, true)
	}
	ad.SetString("StarterAbilityList", strings.Join(abilities[:], ","))
}

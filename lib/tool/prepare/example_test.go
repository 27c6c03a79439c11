// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare_test

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/prepare"
)

func ExampleWantsPrograms() {
	snap, _ := config.Parse("c", "", config.Options{Subsystem: "STARTD"})
	job, _ := classad.ParseAd("Requirements = TARGET.HasJava", classad.Old)
	fmt.Println(prepare.WantsPrograms(nil, snap), prepare.WantsPrograms([]*classad.Ad{job}, snap))
	// Output:
	// false true
}

// Who has no rights of others runs jobs as itself.
func ExampleSubmitterOf() {
	s, err := prepare.SubmitterOf(prepare.Users{}, nil, "job.sub", false)
	fmt.Println(s.User == nil, s.Env([]string{"HOME=/home/ann"}), err)
	// Output:
	// true [HOME=/home/ann] <nil>
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/match"
)

func Example() {
	slot, _ := classad.ParseAd("Cpus = 2\nRequirements = TARGET.RequestCpus <= MY.Cpus && TARGET.Owner != \"eve\"", classad.Old)
	job, _ := classad.ParseAd("RequestCpus = 4\nOwner = \"bob\"\nRequirements = true", classad.Old)
	report := match.Ads([2]*classad.Ad{slot, job}, [2]string{"slot", "job"}, &classad.Env{})
	fmt.Print(report.Text())
	// Output:
	// no match
	// slot does not accept job: Requirements is false, rank 0.0
	//   TARGET.RequestCpus <= MY.Cpus is false
	//     TARGET.RequestCpus is 4
	//     MY.Cpus is 2
	// job accepts slot: Requirements is true, rank 0.0
}

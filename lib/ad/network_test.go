// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// Where jobs have no network a job fits that says it does without, and no other; so it is
// in slots with a consumption policy.
//
// row: S4-083
func TestWithoutNetwork(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "CONSUMPTION_POLICY = true\n"} {
		m, _ := machineWith(t, text)
		for _, offline := range []bool{false, true} {
			inv := *m.src.Inventory
			inv.Attrs = classad.NewAd()
			inv.Attrs.SetBool("HasJobNetworking", !offline)
			src := m.src
			src.Inventory = &inv
			with, err := New(src, goldenStart)
			if err != nil {
				t.Fatal(err)
			}
			for wish, fits := range map[string]bool{"": !offline, "true": !offline, "undefined": !offline, "false": true} {
				job, err := classad.ParseAd("RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\n", classad.Old)
				if err != nil {
					t.Fatal(err)
				}
				if wish != "" {
					job.Set("WantJobNetworking", classad.MustParseExpr(wish))
				}
				if got := with.slots[0].Ad().Eval("WithinResourceLimits", &classad.Env{Target: job}).IsTrue(); got != fits {
					t.Errorf("%q, offline %v, WantJobNetworking = %s: %v", text, offline, wish, got)
				}
			}
		}
	}
}

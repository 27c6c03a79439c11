// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// Slots that say how files are mapped have limits that older negotiators read as we do:
// without ?: beside a comparison.
func TestLimitsForOldNegotiators(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "")
	for method, want := range map[string]int64{"": 100, "Hardlink": 100, "Copy": 400} {
		inv := *m.src.Inventory
		inv.Attrs = classad.NewAd()
		if method != "" {
			inv.Attrs.SetString("MappingMethod", method)
		}
		src := m.src
		src.Inventory = &inv
		with, err := New(src, goldenStart)
		if err != nil {
			t.Fatal(err)
		}
		slot := classad.NewAd()
		slot.SetParent(with.slots[0].Ad())
		limits, _ := slot.Lookup("WithinResourceLimits")
		if old := strings.Contains(limits.Text(classad.Old), "?:"); old != (method == "") {
			t.Errorf("%q: %s", method, limits.Text(classad.Old))
		}
		slot.Set("catalogs", classad.MustParseExpr(`{ [ CatalogID = "a"; CatalogSize = 300 ] }`))
		job, err := classad.ParseAd("RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 400\nRequestedCatalogs = 1\nRequestedCatalogIDs = { \"a\" }\n", classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		for disk, fits := range map[int64]bool{want: true, want - 1: false} {
			slot.SetInt("Disk", disk)
			if got := slot.Eval("WithinResourceLimits", &classad.Env{Target: job}).IsTrue(); got != fits {
				t.Errorf("%q: with %d KiB %v, want %v", method, disk, got, fits)
			}
		}
	}
}

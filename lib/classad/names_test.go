// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

// TestJoin shares names and keeps the values apart, whatever becomes of one of
// the ads.
func TestJoin(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(rt *rapid.T) {
		var names Names
		joined, plain := make([]*Ad, 4), make([]*Ad, 4)
		for i := range joined {
			joined[i], plain[i] = NewAd(), NewAd()
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, 3).Draw(rt, "ad")
			name := fmt.Sprintf("A%d", rapid.IntRange(0, 12).Draw(rt, "name"))
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				joined[i].Delete(name)
				plain[i].Delete(name)
			case 1:
				joined[i] = joined[i].Clone()
			case 2, 3:
				for _, a := range joined {
					names.Join(a)
				}
			default:
				v := rapid.Int64().Draw(rt, "value")
				joined[i].SetInt(name, v)
				plain[i].SetInt(name, v)
			}
			for i := range joined {
				if got, want := joined[i].Text(Old), plain[i].Text(Old); got != want {
					rt.Fatalf("ad %d is\n%s\nwant\n%s", i, got, want)
				}
			}
		}
	})
}

// TestJoinShares counts allocations and so runs alone.
func TestJoinShares(t *testing.T) {
	var names Names
	ads := make([]*Ad, 3)
	for i := range ads {
		ads[i] = NewAd()
		ads[i].SetInt("Cpus", int64(i))
		ads[i].SetString("Name", fmt.Sprint(i))
		names.Join(ads[i])
	}
	if ads[0].layout != ads[1].layout || ads[1].layout != ads[2].layout {
		t.Error("the same names are not shared")
	}
	ads[1].SetInt("More", 1)
	names.Join(ads[1])
	if ads[0].layout == ads[1].layout || ads[0].Len() != 2 {
		t.Error("other names are shared")
	}
	if n := testing.AllocsPerRun(10, func() { names.Join(ads[0]); names.Join(ads[1]) }); n != 0 {
		t.Errorf("%v allocations for ads that have joined", n)
	}
}

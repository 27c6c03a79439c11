// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// retained returns how many bytes what make returns keeps in memory.
func retained(make func() any) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(x)
	if after.HeapAlloc < before.HeapAlloc {
		return 0
	}
	return after.HeapAlloc - before.HeapAlloc
}

// TestMemoryOfAds bounds the memory of a parsed ad by a multiple of its text:
// a small one for ads as they are, a fixed one for the worst texts.
func TestMemoryOfAds(t *testing.T) {
	slot, _ := readAd(t, "testdata/slot.ad")
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var lines strings.Builder
	for i := 0; lines.Len() < size; i++ {
		for n := i; ; n /= 26 {
			lines.WriteByte(byte('a' + n%26))
			if n < 26 {
				break
			}
		}
		lines.WriteString("=1\n")
	}
	for name, c := range map[string]struct {
		text  string
		bound int
	}{
		"slot":       {slot, 6},
		"short":      {lines.String(), 24},
		"list":       {"A={" + fill("1,") + "1}", 48},
		"sum":        {"A=" + strings.Repeat("1+", 50_000) + "1", 64},
		"calls":      {"A={" + fill("f(),") + "1}", 64},
		"ads":        {"A={" + fill("[],") + "1}", 64},
		"names":      {"A={" + fill("a.b,") + "1}", 64},
		"duplicates": {fill("a=1\n"), 2},
	} {
		ads := max(1, size/len(c.text))
		got := retained(func() any {
			all := make([]*Ad, ads)
			for i := range all {
				a, err := ParseAd(strings.Clone(c.text), Old)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				all[i] = a
			}
			return all
		})
		times := float64(got) / float64(ads*len(c.text))
		t.Logf("%s: %.1f times its text", name, times)
		if times > float64(c.bound) {
			t.Errorf("%s: %.1f times its text, want at most %d", name, times, c.bound)
		}
	}
}

// TestManyAdsShare: ads that a Reader reads need little more than their
// values.
func TestManyAdsShare(t *testing.T) {
	const n = 500
	text := manySlots(t, n)
	got := retained(func() any {
		var all []*Ad
		for a, err := range NewReader(strings.NewReader(text), FormOld).All() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		return all
	})
	if per := got / n; per > 12<<10 {
		t.Errorf("%d bytes an ad", per)
	} else {
		t.Logf("%d bytes an ad of %d bytes text", per, len(text)/n)
	}
}

// TestConcurrentUse evaluates, copies, prints and looks up the same ads and
// expressions from several goroutines; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	_, slot := readAd(t, "testdata/slot.ad")
	_, job := readAd(t, "testdata/job.ad")
	layered := NewAd()
	layered.SetParent(slot)
	layered.SetInt("KeyboardIdle", 5000)
	e := MustParseExpr(`START && regexp("^slot", Name) && TARGET.RequestCpus <= MY.Cpus`)
	want := slot.Text(Old)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for i := range 200 {
				env := &Env{My: slot, Target: job, Now: time.Unix(1700000000, 0)}
				if i%2 == 0 {
					env.My = layered
				}
				if !e.Eval(env).IsTrue() {
					t.Error("not true")
				}
				c := slot.Clone()
				c.SetInt("Cpus", 7)
				c.SetInt("Extra", 1)
				if _, ok := slot.Lookup("Cpus"); !ok || slot.Text(Old) != want {
					t.Error("changed")
				}
				if !NewMatcher(job, env).Matches(slot) {
					t.Error("no match")
				}
			}
		})
	}
	wg.Wait()
}

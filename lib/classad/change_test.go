// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

func TestChangesSince(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "A = 1\nB = A + 1\nC = \"x\"\nD = { 1,2 }\n")
	snapshot := a.Clone()
	if got := a.ChangesSince(snapshot); !got.None() {
		t.Errorf("untouched: %v", got)
	}
	if err := a.SetText("B", "A+1"); err != nil {
		t.Fatal(err)
	}
	a.SetString("c", "x")
	if got := a.ChangesSince(snapshot); !got.None() {
		t.Errorf("set to the same: %v", got)
	}
	a.SetInt("A", 2)
	if got := a.ChangesSince(snapshot); !cmp.Equal(got, Changes{Set: []string{"A"}}) {
		t.Errorf("one changed: %v", got)
	}
	a.Delete("D")
	a.SetBool("New", true)
	if got := a.ChangesSince(snapshot); !cmp.Equal(got, Changes{Set: []string{"A", "New"}, Removed: []string{"D"}}) {
		t.Errorf("changed, added, removed: %v", got)
	}
	if got := a.ChangesSince(nil); len(got.Set) != 4 {
		t.Errorf("since nothing: %v", got)
	}
	below := mustAd(t, "P = 1\nQ = 2\n")
	a.SetParent(below)
	snapshot = a.Clone()
	a.SetInt("P", 1)
	if got := a.ChangesSince(snapshot); !got.None() {
		t.Errorf("the same as below: %v", got)
	}
	a.SetInt("Q", 3)
	if got := a.ChangesSince(snapshot); !cmp.Equal(got, Changes{Set: []string{"Q"}}) {
		t.Errorf("over the layer below: %v", got)
	}
	a.SetParent(mustAd(t, "Z = 1\n"))
	if got := a.ChangesSince(snapshot); !cmp.Equal(got, Changes{Set: []string{"Q", "Z"}}) {
		t.Errorf("another layer below: %v", got)
	}
}

// TestChangesAndClones changes ads that share what they can at random and
// holds them against plain maps.
func TestChangesAndClones(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		type pair struct {
			ad    *Ad
			model map[string]int64
		}
		all := []pair{{NewAd(), map[string]int64{}}}
		name := rapid.StringMatching("[a-e]{1,2}")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p := all[rapid.IntRange(0, len(all)-1).Draw(t, "ad")]
			n := name.Draw(t, "name")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				m := map[string]int64{}
				for k, v := range p.model {
					m[k] = v
				}
				all = append(all, pair{p.ad.Clone(), m})
			case 1:
				if _, ok := p.model[n]; ok != p.ad.Delete(n) {
					t.Fatalf("delete %s", n)
				}
				delete(p.model, n)
			default:
				v := rapid.Int64Range(0, 3).Draw(t, "value")
				p.ad.SetInt(n, v)
				p.model[n] = v
			}
		}
		for _, p := range all {
			if p.ad.Len() != len(p.model) {
				t.Fatalf("%d attributes, want %d", p.ad.Len(), len(p.model))
			}
			for k, v := range p.model {
				e, ok := p.ad.Lookup(strings.ToUpper(k))
				if !ok || !e.Eval(nil).Equal(Int(v)) || !p.ad.Eval(k, nil).Equal(Int(v)) {
					t.Fatalf("%s is %v, want %d", k, e, v)
				}
			}
			for _, q := range all {
				c := p.ad.ChangesSince(q.ad)
				for k, v := range p.model {
					old, ok := q.model[k]
					if has := contains(c.Set, k); has == (ok && old == v) {
						t.Fatalf("%s: %v of %v to %v", k, c, q.model, p.model)
					}
				}
				for k := range q.model {
					if _, ok := p.model[k]; ok == contains(c.Removed, k) {
						t.Fatalf("%s removed: %v", k, c)
					}
				}
			}
		}
	})
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if equalNames(n, name) {
			return true
		}
	}
	return false
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func cpuSets() map[string][]int {
	return map[string][]int{
		"0-3\n":                {0, 1, 2, 3},
		"0-1,8,10-11":          {0, 1, 8, 10, 11},
		"5":                    {5},
		"63-65\n":              {63, 64, 65},
		"\n":                   nil,
		"":                     nil,
		"3,1":                  {1, 3},
		"2,2,2":                {2},
		" 7 , 9 ":              {7, 9},
		"0-4294967295":         {-1}, // an error: nobody has so many
		"0-":                   {-1},
		"-3":                   {-1},
		"3-1":                  {-1},
		"1,,2":                 {-1},
		"1,":                   {-1},
		"a":                    {-1},
		"18446744073709551616": {-1},
		"0-65535":              {-2}, // legal, all of them
		"0-65536":              {-1},
	}
}

func TestParseCPUSet(t *testing.T) {
	t.Parallel()
	for text, want := range cpuSets() {
		got, err := ParseCPUSet([]byte(text))
		switch {
		case len(want) == 1 && want[0] == -1:
			if err == nil {
				t.Errorf("ParseCPUSet(%q) has %d members, want an error", text, got.Len())
			}
		case len(want) == 1 && want[0] == -2:
			if err != nil || got.Len() != maxCPU {
				t.Errorf("ParseCPUSet(%q) has %d members, %v", text, got.Len(), err)
			}
		default:
			if members := slices.Collect(got.All()); err != nil || !slices.Equal(members, want) || got.Len() != len(want) {
				t.Errorf("ParseCPUSet(%q) = %v, %v, want %v", text, members, err, want)
			}
		}
	}
}

func TestCPUSetOperations(t *testing.T) {
	t.Parallel()
	set := func(s string) CPUSet {
		c, err := ParseCPUSet([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got := slices.Collect(set("0-70").And(set("60-200")).All()); !slices.Equal(got, []int{60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70}) {
		t.Errorf("And = %v", got)
	}
	if got := set("0-3").And(CPUSet{}).Len(); got != 0 {
		t.Errorf("And with nothing has %d members", got)
	}
	if got := set("66,9").Min(); got != 9 {
		t.Errorf("Min = %d", got)
	}
	if got := set("66").Min(); got != 66 {
		t.Errorf("Min = %d", got)
	}
	if got := (CPUSet{}).Min(); got != -1 {
		t.Errorf("Min of nothing = %d", got)
	}
	if s := set("3"); !s.Has(3) || s.Has(2) || s.Has(-1) || s.Has(1<<20) {
		t.Error("Has")
	}
}

// What was read, written as a list and read again is the same set.
func FuzzParseCPUSet(f *testing.F) {
	for text := range cpuSets() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseCPUSet([]byte(text))
		if err != nil {
			return
		}
		var b strings.Builder
		for n := range set.All() {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(n))
		}
		again, err := ParseCPUSet([]byte(b.String()))
		if err != nil || again.Len() != set.Len() || again.And(set).Len() != set.Len() {
			t.Errorf("%q printed as %q: %v", text, b.String(), err)
		}
	})
}

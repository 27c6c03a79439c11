// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

func TestMatched(t *testing.T) {
	t.Parallel()
	slotAd := classad.NewAd()
	for name, text := range map[string]string{
		"OpSys": `"LINUX"`, "OpSysAndVer": `"CentOS8"`, "Memory": "2048", "Half": "Memory / 2", "Wanted": "TARGET.Want",
		"Sly": `"$$(OpSys)"`, "Bad": "1 / 0",
	} {
		if err := slotAd.SetText(name, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ text, want, bad string }{
		// row: S0-219
		{"run.$$(OpSysAndVer).$$(OpSys)", "run.CentOS8.LINUX", ""},
		{"-m $$(Memory) $$(Half)", "-m 2048 1024", ""},
		{"$$(Wanted)", "7", ""},
		{"$$(GPUs:none) $$(Memory:1)", "none 2048", ""},
		{"$$(GPUs:)", "", ""},
		{"$$([Memory * 2]) $$([MY.Memory])", "", "[MY.Memory]"},
		{"$$([TARGET.Memory - Want])", "2041", ""},
		{"$$(Sly)", "$$(OpSys)", ""},
		{"cost $$5 $(x) $$(", "cost $$5 $(x) $$(", ""},
		{"$$(NoSuchThing)", "", "NoSuchThing"},
		{"$$(Bad)", "", "Bad"},
		{"$$([1 +])", "", "[1 +]"},
	} {
		job := classad.NewAd()
		job.SetString("Arguments", tt.text)
		job.SetString("MATCH_Old", "$$(OpSys)")
		job.SetInt("Want", 7)
		got, err := matched(job, slotAd, &classad.Env{})
		if tt.bad != "" {
			if err == nil || err.Error() != "Cannot expand $$ expression ("+tt.bad+")." {
				t.Errorf("%s: %v", tt.text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if s, _ := got.EvalString("Arguments", nil); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, s, tt.want)
		}
		if s, _ := got.EvalString("MATCH_Old", nil); s != "$$(OpSys)" {
			t.Errorf("an attribute of an earlier match became %q", s)
		}
		if s, _ := job.EvalString("Arguments", nil); s != tt.text {
			t.Errorf("the job itself was changed to %q", s)
		}
	}
}

func FuzzMatched(f *testing.F) {
	for _, s := range []string{"$$(A)", "$$([A+B])", "$$(A:b)$$(", "$$([", "$$()", "$$(A:$$(B))"} {
		f.Add(s)
	}
	slotAd := classad.NewAd()
	slotAd.SetString("A", strings.Repeat("x", 1000))
	slotAd.SetInt("B", 3)
	f.Fuzz(func(t *testing.T, text string) {
		job := classad.NewAd()
		job.SetString("Arguments", text)
		got, err := matched(job, slotAd, &classad.Env{})
		if err == nil && got.Len() == 0 {
			t.Error("an empty job")
		}
	})
}

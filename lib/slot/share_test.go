// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"strings"
	"testing"
)

func TestParseShares(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"auto", "[auto]"},
		{"Automatic", "[auto]"},
		{"1/4", "[0.25*]"},
		{"25%", "[0.25*]"},
		{"0", "[0]"},
		{"0%", "[0*]"},
		{"minimal", "[0.0078125*]"},
		{"cpus=2, ram=128, swap=25%, disk=1/2", "cpus=2 ram=128 swap=0.25* disk=0.5*"},
		{"cpus=1, disk=auto, 50%", "cpus=1 disk=auto [0.5*]"},
		{"cpus=1 mem=64 50%", "cpus=1 mem=64 [0.5*]"},
		{"cpus=1, mem=64 50%", "cpus=1 mem=0.64*"}, // behind a comma white space does not separate
		{" cpus = 1\n  mem = 25%\n  50%\n", "cpus=1 mem=0.25* [0.5*]"},
		{"cpus = 1, mem=25%\n", "cpus=0.01*"},
		{"mem=1G", "mem=1K3"},
		{"mem=1024 k, cpus=1", "mem=1024K1 cpus=1"},
		{"cpus=-1", "cpus=1*"},
		{"cpus=abc", "cpus=0"},
		{"cpus=1/0", "cpus=0!"},
		{"gpus=1 : Capability > 7, 50%", "gpus=1:Capability > 7 [0.5*]"},
		{"=2", "=2"},
	} {
		s, err := ParseShares(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := s.describe(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func (s Shares) describe() string {
	var parts []string
	for _, w := range s.wishes {
		v := "auto"
		switch w.kind {
		case shareFraction:
			v = formatCpus(w.value) + "*"
		case shareAmount:
			v = formatCpus(w.value)
			if w.scale > 0 {
				v += "K" + formatCpus(float64(w.scale))
			}
			if w.malformed {
				v += "!"
			}
		}
		if w.constraint != "" {
			v += ":" + w.constraint
		}
		if w.blanket {
			parts = append(parts, "["+v+"]")
		} else {
			parts = append(parts, w.name+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

func TestParseSharesErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, say string }{
		{"1", `"1" is not a share`},
		{"0.5", `"0.5" is not a share`},
		{"200%", `"200%" is not a share`},
		{"-50%", `"-50%" is not a share`},
		{"3/2", `"3/2" is not a share`},
		{"cpus=, mem=64", `"cpus=" has no value`},
		{"cpus=:x", `"cpus=:x" has no value`},
		{"gpus=1 : Capability > 7", `"7" is not a share`},
	} {
		if _, err := ParseShares(c.text); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.say)
		}
	}
}

func FuzzParseShares(f *testing.F) {
	for _, s := range []string{
		"", "auto", "1/4", "25%", "cpus=2, ram=128, swap=25%, disk=1/2", "cpus=1 mem=64 50%", "cpus=1\nmem=1/0\n",
		"mem=1e308G", "minimal,cpus=.5", "=", ":", "cogs=3,25%", "cpus=-1,d=1p", "gpus=1:x>1,1/3",
	} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		s, err := ParseShares(text)
		led, _ := Divide(Layout{
			Types:     []Type{{Number: 1, Count: 1 + max(count, -count)%9, Shares: s, Err: err, Partitionable: count%2 == 0}},
			Resources: []Resource{{Name: "Cogs", Count: 2.5}, {Name: "gpus", Assets: []string{"a", "b", "c"}}},
		}, Capacity{Cpus: 7, MemoryMiB: 1001, DiskKiB: 1000003, SwapKiB: 3000001})
		if err := led.Check(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// A value of several lines is cut at line ends only: constraints may hold
// commas. With a type that takes the first kind of GPU, two static slots share
// the others.
//
// row: S0-290
func TestConstraintWithComma(t *testing.T) {
	t.Parallel()
	const config = `MACHINE_RESOURCE_GPUs @=end
DetectedGPUs = "g0, g1, g2, g3"
g0 = [ Capability = 7.5 ]
g1 = [ Capability = 8.0 ]
g2 = [ Capability = 9.0 ]
g3 = [ Capability = 7.5 ]
@end
SLOT_TYPE_1 @=slot
  GPUs = 2 : member(Capability, {8.0, 9.0})
  50%
@slot
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = auto
NUM_SLOTS_TYPE_2 = 2
`
	led, problems := divided(t, config)
	var got []string
	for s := range led.Slots() {
		c, _ := s.Total.Find("GPUs")
		got = append(got, strings.Join(c.Assets, " "))
	}
	if want := "g1 g2; g0; g3"; strings.Join(got, "; ") != want || len(problems) > 0 {
		t.Errorf("got %q, want %q; %v", got, want, problems)
	}
}

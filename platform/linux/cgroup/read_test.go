// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/host"
)

// One row for each form seen in real kernels' files, and what is not.
var fieldCases = []struct {
	text, key string
	n         int64
	ok, bad   bool
}{
	{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill", 3, true, false},
	{"oom_kill_disable 0\nunder_oom 0\n", "oom_kill", 0, false, false}, // before 4.13
	{"usage_usec 1234\nuser_usec 1000\nsystem_usec 234", "system_usec", 234, true, false},
	{"populated 1\nfrozen 0\n", "frozen", 0, true, false},
	{"total_rss 9223372036854775807\n", "total_rss", 9223372036854775807, true, false},
	{"total_rss 9223372036854775808\n", "total_rss", 0, true, true},
	{"rss\n", "rss", 0, false, false},
	{"rss x\n", "rss", 0, true, true},
	{"", "rss", 0, false, false},
}

func TestField(t *testing.T) {
	t.Parallel()
	for _, c := range fieldCases {
		n, ok, err := Field([]byte(c.text), c.key)
		if n != c.n || ok != c.ok || (err != nil) != c.bad {
			t.Errorf("Field(%q, %s) = %d, %v, %v", c.text, c.key, n, ok, err)
		}
	}
}

func TestIOStat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want IO
		bad  bool
	}{
		{"", IO{}, false},
		{"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=800 wbytes=4 rios=8 wios=1 dbytes=5 dios=1\n",
			IO{ReadBytes: 1460000, WriteBytes: 314773508, Reads: 200, Writes: 354}, false},
		{"8:0\n253:0 \n", IO{}, false}, // nothing yet
		{"8:0 rbytes=x", IO{}, true},
	} {
		if got, err := IOStat([]byte(c.text)); got != c.want || (err != nil) != c.bad {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"42\n": 42, "max\n": -1, "0": 0} {
		if n, err := Number([]byte(text)); n != want || err != nil {
			t.Errorf("Number(%q) = %d, %v", text, n, err)
		}
	}
	if _, err := Number([]byte(strings.Repeat("9", 100))); err == nil || len(err.Error()) > 80 {
		t.Errorf("a number that is none: %v", err)
	}
}

func TestPids(t *testing.T) {
	t.Parallel()
	if pids, err := Pids([]byte("12\n7\n\n99")); err != nil || !cmp.Equal(pids, []int{12, 7, 99}) {
		t.Errorf("%v, %v", pids, err)
	}
	for _, text := range []string{"12\n0\n", "-3\n", "twelve\n"} {
		if _, err := Pids([]byte(text)); err == nil {
			t.Errorf("%q was read as pids", text)
		}
	}
}

var membershipText = "12:cpu,cpuacct:/a b/c\n3:freezer:/\n1:name=systemd:/x:y\n0::/user.slice\nbroken\n5:memory:relative\n"

func TestParseMembership(t *testing.T) {
	t.Parallel()
	all := ParseMembership([]byte(membershipText))
	want := []Membership{
		{[]string{"cpu", "cpuacct"}, "/a b/c"}, {[]string{"freezer"}, "/"}, {[]string{"name=systemd"}, "/x:y"}, {nil, "/user.slice"},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	for controller, path := range map[string]string{"cpuacct": "/a b/c", "freezer": "/", "": "/user.slice", "memory": "/"} {
		if got := pathIn(all, controller); got != path {
			t.Errorf("pathIn(%q) = %q, want %q", controller, got, path)
		}
	}
}

var pressureCases = []struct {
	name, text string
	want       Stall
	ok         bool
}{
	{"both", "some avg10=0.00 avg60=0.12 avg300=0.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n", Stall{1500 * time.Microsecond, 20 * time.Microsecond}, true},
	{"of processors, before 5.13", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", Stall{}, true},
	{"nothing", "", Stall{}, false},
	{"no total", "some avg10=0.00\n", Stall{}, false},
	{"another line", "most avg10=0.00 total=7\n", Stall{}, false},
}

func TestPressure(t *testing.T) {
	t.Parallel()
	for _, c := range pressureCases {
		if got, ok, err := Pressure([]byte(c.text)); got != c.want || ok != c.ok || err != nil {
			t.Errorf("%s: %+v, %v, %v", c.name, got, ok, err)
		}
	}
	for _, bad := range []string{"some total=x\n", "full total=-1\n", "some total=9223372036854775807\n"} {
		if got, ok, err := Pressure([]byte(bad)); ok || err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzPressure(f *testing.F) {
	for _, c := range pressureCases {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, ok, err := Pressure(text); s.Some < 0 || s.Full < 0 || err != nil && ok {
			t.Errorf("%+v, %v, %v", s, ok, err)
		}
	})
}

// of are limits of the processors, and whether all die together.
func of(weight int, together bool) Limits {
	return Limits{GroupLimits: host.GroupLimits{CPUWeight: weight}, OOMTogether: together}
}

func FuzzReaders(f *testing.F) {
	for _, c := range fieldCases {
		f.Add([]byte(c.text), c.key)
	}
	f.Add([]byte(membershipText), "")
	f.Add([]byte("12\n0\n"), "12")
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		n, ok, err := Field(text, key)
		if !ok && (n != 0 || err != nil) {
			t.Errorf("a field that is not there: %d, %v", n, err)
		}
		pids, _ := Pids(text)
		for _, pid := range pids {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
		for _, m := range ParseMembership(text) {
			if !strings.HasPrefix(m.Path, "/") {
				t.Errorf("path %q", m.Path)
			}
		}
	})
}

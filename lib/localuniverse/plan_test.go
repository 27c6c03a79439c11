// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobqueue"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

const jobText = "JobUniverse = 12\nCmd = \"/bin/true\"\nIwd = \"/home\"\nOwner = \"alice@here\"\nRequestCpus = 3\nRequestMemory = 70\nClaimId = \"s3cret\"\nClaimIds = \"s3cret,s3cret\"\n"

// The secrets of the job's ad are taken out before anything of it is written down, and
// no error shows them. Another universe is refused.
func TestReadAd(t *testing.T) {
	t.Parallel()
	o := Options{ID: jobqueue.ID{Cluster: 7, Proc: 2}}
	ad, err := readAd(strings.NewReader(jobText), o)
	if err != nil {
		t.Fatal(err)
	}
	if text := ad.TextAll(classad.Old); strings.Contains(text, "s3cret") || !strings.Contains(text, "ClusterId = 7\n") || !strings.Contains(text, "ProcId = 2\n") {
		t.Errorf("the ad is\n%s", text)
	}
	for _, c := range []struct{ text, fails string }{
		{strings.Replace(jobText, "12", "5", 1), "it is of universe 5"},
		{"Cmd = \"x\"\n", "it is of universe 0"},
		{jobText + "ClaimId = \"s3cret\n", "cannot be read"},
		{strings.Repeat("#", mostAd+1), "longer than"},
	} {
		if _, err := readAd(strings.NewReader(c.text), o); err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.40q: %v; want %q", c.text, err, c.fails)
		}
	}
}

func FuzzReadAd(f *testing.F) {
	f.Add(jobText)
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := readAd(strings.NewReader(text), Options{})
		if err != nil {
			return
		}
		if _, ok := ad.Lookup("ClaimId"); ok {
			t.Error("a secret is left")
		}
	})
}

// The job works in its submit directory, with no slot and a view of the whole machine,
// and is limited only where that is asked for.
func TestPlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines  string
		cgroup string
		memory string
		limits protocol.SlotLimits
	}{
		{"", "htcondor", protocol.MemoryNone, protocol.SlotLimits{Cpus: 1}},
		{"USE_CGROUPS_FOR_LOCAL_UNIVERSE = false\n", "", protocol.MemoryNone, protocol.SlotLimits{Cpus: 1}},
		{"LOCAL_UNIVERSE_CGROUP_ENFORCEMENT = true\n", "htcondor", protocol.MemoryHard, protocol.SlotLimits{Cpus: 3, MemoryMiB: 70}},
	} {
		s, err := config.Parse("f", "EXECUTE = /e\nBASE_CGROUP = htcondor\n"+c.lines, config.Options{Subsystem: protocol.Subsystem})
		if err != nil {
			t.Fatal(err)
		}
		ad, err := readAd(strings.NewReader(jobText), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := planOf(ad, nil, s, Options{ID: jobqueue.ID{Cluster: 7}}, 4711)
		if err != nil {
			t.Fatal(err)
		}
		if p.Execute != "/e" || !p.Submit.InPlace || p.Submit.Iwd != "/home" || p.SlotFullName != "4711" || p.SlotName != "" || p.Orphan != protocol.OrphanDie || p.Shadow != nil {
			t.Errorf("%q: %+v", c.lines, p)
		}
		if p.Settings.Cgroup != c.cgroup || p.Settings.Limits.Memory != c.memory || p.Limits.Cpus != c.limits.Cpus || p.Limits.MemoryMiB != c.limits.MemoryMiB || p.Settings.Space.Under != "" {
			t.Errorf("%q: group %q, policy %s, limits %+v, private %q", c.lines, p.Settings.Cgroup, p.Settings.Limits.Memory, p.Limits, p.Settings.Space.Under)
		}
	}
}

// A starter of root runs the job as its owner, and none that has no owner.
func TestUser(t *testing.T) {
	t.Parallel()
	account := func(name string) (*host.Identity, error) {
		if name != "alice" {
			return nil, errors.New("no " + name)
		}
		return &host.Identity{Name: name, UID: 1}, nil
	}
	for _, c := range []struct {
		ad    string
		name  string
		fails string
	}{{`Owner = "alice"`, "alice", ""}, {`Owner = "bob"` + "\n" + `OsUser = "alice@x"`, "alice", ""}, {`Owner = "bob"`, "", "no bob"}, {"X = 1", "", "no job runs as root"}} {
		ad, err := classad.ParseAd(c.ad, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		u, err := userOf(ad, account)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || u != nil && u.Name != c.name {
			t.Errorf("%s: %v, %v", c.ad, u, err)
		}
		if u, err := userOf(ad, nil); u != nil || err != nil {
			t.Errorf("%s, not root: %v, %v", c.ad, u, err)
		}
	}
}

// Each log gets the events that it is for.
func TestEventLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ad, err := classad.ParseAd("Iwd = \""+dir+"\"\nUserLog = \"own\"\nDAGManNodesLog = \""+dir+"/nodes\"\nDAGManNodesMask = \"0,1,5\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := openLogs(ad, nil, nil)
	if err != nil || len(logs) != 2 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, e := range []eventlog.Event{eventlog.Execute{Host: "<h>"}, eventlog.Evicted{}, eventlog.Terminated{}} {
		if err := logs.write(eventlog.Header{Cluster: 1, Time: time.Unix(0, 0)}, e); err != nil {
			t.Error(err)
		}
	}
	logs.close()
	for name, want := range map[string]string{"own": "001 004 005", "nodes": "001 005"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			if code, _, ok := strings.Cut(line, " (001"); ok {
				got = append(got, code)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %s", name, got, want)
		}
	}
	xml, err := classad.ParseAd("UserLog = \"x\"\nUserLogUseXML = true\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openLogs(xml, nil, nil); err == nil {
		t.Error("a log in XML would get text")
	}
}

// The schedd's signals, by the numbers that HTCondor gives them.
func TestSignals(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]Signal{3: VacateNow, 10: Leave, 15: Vacate, 102: Vacate, 103: VacateNow, 0: 0, 1: 0, 100: 0, -1: 0} {
		if got := signalOf(number); got != want {
			t.Errorf("%d is %d, want %d", number, got, want)
		}
	}
	s := &stay{ad: classad.NewAd()}
	for _, c := range []struct {
		text string
		want time.Duration
	}{{"", leaving}, {"30", 30 * time.Second}, {"0", time.Millisecond}, {"-1", leaving}} {
		if c.text != "" {
			if err := s.ad.SetText("KillSigTimeout", c.text); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.deadline(); got != c.want {
			t.Errorf("KillSigTimeout %q: %v, want %v", c.text, got, c.want)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
)

// echoes is what a script of echo commands prints.
func echoes(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "echo "); ok {
			if s, err := strconv.Unquote(text); err == nil {
				out.WriteString(s + "\n")
			}
		}
	}
	return out.String()
}

// row: S4-106
func TestRecordedInventories(t *testing.T) {
	t.Parallel()
	cases := readRecorded(t, "testdata/inventory.jsonl")
	for _, r := range cases {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("inventory.conf", "STARTD_DETECT_GPUS = false\n"+r.Config, config.Options{Subsystem: "STARTD"})
			if err != nil {
				t.Fatal(err)
			}
			scripts, problems := ScriptsFrom(cfg)
			if len(problems) > 0 || len(scripts) != 1 {
				t.Fatalf("scripts %v, problems %v", scripts, problems)
			}
			text, plain := heredoc(r.Scripts["inv.sh"])
			if !plain {
				text = echoes(r.Scripts["inv.sh"])
			}
			runner, _ := newRunner(map[string]hosttest.Program{"/scripts/inv.sh": says(text, "", 3)})
			resource := scripts[0].Resource
			inv, err := runner.Inventory(t.Context(), scripts[0], cfg.String("OFFLINE_MACHINE_RESOURCE_"+resource))
			if r.Exit != nil {
				if !errs.Is(err, errs.NotFound) {
					t.Errorf("where HTCondor ends: %v", err)
				}
				return
			}
			if r.ID == "slot-inventory-12" != errs.Is(err, errs.Invalid) {
				t.Errorf("error %v", err)
			}
			want := r.Slots[0]
			if got := strconv.FormatFloat(inv.Count, 'g', -1, 64); got != want["Total"+resource] {
				t.Errorf("count %s, recorded %s", got, want["Total"+resource])
			}
			if inv.IDs != nil {
				if got := strconv.Quote(strings.Join(inv.IDs, ",")); got != want["Assigned"+resource] {
					t.Errorf("ids %s, recorded %s", got, want["Assigned"+resource])
				}
			}
			off := ""
			if inv.Offline != nil {
				off = strconv.Quote(strings.Join(inv.Offline, ","))
			}
			if off != want["Offline"+resource] {
				t.Errorf("offline %s, recorded %s", off, want["Offline"+resource])
			}
			for name, e := range inv.Attrs.All() {
				if got := e.Text(classad.Old); got != want[name] {
					t.Errorf("%s = %s, recorded %s", name, got, want[name])
				}
			}
			for name := range want {
				_, has := inv.Attrs.Lookup(name)
				if strings.HasPrefix(name, strings.TrimSuffix(resource, "s")) && name != resource && !strings.HasPrefix(name, resource+"_") && !has {
					t.Errorf("%s is missing", name)
				}
			}
			for _, id := range inv.IDs {
				recorded := want[resource+"_"+strings.ReplaceAll(id, "-", "_")]
				if recorded == "" {
					if inv.Properties[id] != nil {
						t.Errorf("%s has properties of nowhere", id)
					}
					continue
				}
				wanted := nestedAd(t, recorded)
				wanted.Delete("Id")
				if d := cmp.Diff(lines(wanted), lines(inv.Properties[id])); d != "" {
					t.Errorf("%s: %s", id, d)
				}
			}
		})
	}
	if len(cases) < 9 {
		t.Errorf("%d cases", len(cases))
	}
}

func nestedAd(t *testing.T, text string) *classad.Ad {
	t.Helper()
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := e.Eval(nil).AsAd()
	if !ok {
		t.Fatalf("%s is no ad", text)
	}
	return a.Clone()
}

func lines(a *classad.Ad) []string {
	out := map[string]string{}
	for name, e := range a.All() {
		out[strings.ToLower(name)] = e.Text(classad.Old)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		all = append(all, name+" = "+out[name])
	}
	return all
}

func TestParseInventory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, offline string
		count               float64
		ids, off            []string
		doubtful            []string
		err                 string
	}{
		{name: "a count", text: "DetectedX=4\n", count: 4},
		{name: "a count less the offline ones", text: "DetectedX=4\n", offline: "1", count: 3},
		{name: "a list", text: "DetectedX=\"a b,c\"", count: 3, ids: []string{"a", "b", "c"}},
		{name: "the script's offline list counts", text: "DetectedX=\"a b\"\nOfflineX=\"a\"\n", offline: "b", count: 1, ids: []string{"b"}, off: []string{"a"}},
		{name: "comments and empty lines", text: "# what we have\n\nDetectedX=1\n", count: 1},
		{name: "twice", text: "DetectedX=\"a b a\"\n", count: 3, ids: []string{"a", "b", "a"}},
		{name: "twice and offline", text: "DetectedX=\"a b a\"\n", offline: "a", count: 1, ids: []string{"b"}, off: []string{"a", "a"}},
		{name: "offline and unknown", text: "DetectedX=\"a\"\n", offline: "z", count: 1, ids: []string{"a"}, doubtful: []string{`"z" does not exist`}},
		{name: "nothing detected", text: "Color=\"red\"\n", doubtful: []string{"DetectedX is neither"}},
		{name: "less than nothing", text: "DetectedX=-2\n", doubtful: []string{"DetectedX is neither"}},
		{name: "one bad line", text: "DetectedX=4\nrubbish\n", err: "nothing of the output counts: line 2"},
		{name: "binary", text: "DetectedX=4\n\x00\n", err: "line 2: the output is not text"},
		{name: "a line without end", text: "A=\"" + strings.Repeat("x", maxLine), err: "line 1: longer than"},
	} {
		inv, err := ParseInventory("X", []byte(c.text), c.offline)
		if inv.Count != c.count || !slices.Equal(inv.IDs, c.ids) || !slices.Equal(inv.Offline, c.off) {
			t.Errorf("%s: %v of %q, offline %q", c.name, inv.Count, inv.IDs, inv.Offline)
		}
		if c.err == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.err) || !errs.Is(err, errs.Invalid)) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if len(inv.Doubtful) != len(c.doubtful) {
			t.Fatalf("%s: doubtful %v", c.name, inv.Doubtful)
		}
		for i, part := range c.doubtful {
			if !strings.Contains(inv.Doubtful[i].Error(), part) {
				t.Errorf("%s: %v", c.name, inv.Doubtful[i])
			}
		}
	}
}

func TestInventoryScripts(t *testing.T) {
	t.Parallel()
	cfg := parseConfig(t, "MACHINE_RESOURCE_INVENTORY_B = /b -x 1\nMACHINE_RESOURCE_INVENTORY_A = /a\nMACHINE_RESOURCE_INVENTORY_C = /c\n"+
		"MACHINE_RESOURCE_INVENTORY_D = \"it's\nMACHINE_RESOURCE_NAMES = a b d\nMACHINE_RESOURCE_INVENTORY_E = \"so's this\nSTARTD_DETECT_GPUS = 0\n")
	scripts, problems := ScriptsFrom(cfg)
	if len(scripts) != 3 || scripts[2].Resource != "C" || scripts[0].Resource != "A" || !slices.Equal(scripts[1].Args, []string{"/b", "-x", "1"}) || scripts[1].Origin.Line != 1 {
		t.Errorf("scripts %+v", scripts)
	}
	if len(problems) != 1 || problems[0].Line != 4 || problems[0].Knob != "MACHINE_RESOURCE_INVENTORY_D" {
		t.Errorf("problems %v", problems)
	}
}

func TestInventoryThatIsBad(t *testing.T) {
	t.Parallel()
	r, m := newRunner(map[string]hosttest.Program{
		"/huge": says(strings.Repeat("A = \"0123456789\"\n", 300_000), "", 0),
		"/hangs": func(p *hosttest.Process) host.ExitStatus {
			says("DetectedX=4\n", "", 0)(p)
			for p.Sleep(time.Hour) != hosttest.SIGKILL {
			}
			return host.ExitStatus{}
		},
	})
	inv, err := r.Inventory(t.Context(), Script{Resource: "X", Path: "/huge"}, "")
	if inv.Count != 0 || !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("huge: %v, %v", inv.Count, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	inv, err = r.Inventory(ctx, Script{Resource: "X", Path: "/hangs"}, "")
	if inv.Count != 0 || !errs.Is(err, errs.Expired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hangs: %v, %v", inv.Count, err)
	}
	for _, f := range m.Families() {
		if !f.Alone() || !f.Closed() {
			t.Error("something of a family is left")
		}
	}
}

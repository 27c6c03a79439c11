// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// layoutCase is one line of testdata/layouts.jsonl: a configuration and the
// slots that HTCondor 25.14 made of it. Values are ClassAd expressions.
type layoutCase struct {
	ID, Group, Config string
	Exit              *int
	LogClass          string `json:"log_class"`
	Slots             []map[string]string
	Daemon            map[string]string
	Detected          struct {
		Cpus     int
		MemoryMB int64 `json:"memory_mb"`
	}
}

func layoutCases(t testing.TB) []layoutCase {
	t.Helper()
	f, err := os.Open("testdata/layouts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []layoutCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c layoutCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Of a machine whose disk a case does not configure only proportions are
// recorded, so any size will do; its swap was its memory.
const someDiskKiB = 987654320

func (c layoutCase) build(t *testing.T) (*Ledger, []Problem, error) {
	t.Helper()
	cfg, inv, err := scan(t, c.Config, fixedMachine{cpus: c.Detected.Cpus, memoryMiB: c.Detected.MemoryMB, diskKiB: someDiskKiB})
	if err != nil {
		return nil, nil, err
	}
	if strings.Contains(c.Config, "/nonexist") {
		inv.Execute.FreeKiB = 0 // as measured where there is no directory
	}
	layout, err := LayoutFrom(cfg, inv)
	if err != nil {
		return nil, nil, err
	}
	led, problems := Build(layout, inv)
	return led, problems, nil
}

// The groups that pass completely: any failure in them is a regression.
var completeGroups = [...]string{"static", "type", "default", "disk", "fail"}

// Cases outside these groups that need what is not built: constraints and
// inventories of instances with properties, a second step, a shared resource.
var openCases = map[string]string{
	"slot-custom-24": "a reconfiguration that takes instances offline",
}

// row: S0-016, S0-024, S0-031, S0-033
func TestLayoutsGolden(t *testing.T) {
	t.Parallel()
	passed, skipped := map[string]int{}, map[string]int{}
	for _, c := range layoutCases(t) {
		if why, open := openCases[c.ID]; open {
			t.Logf("%s: not compared: %s", c.ID, why)
			skipped[c.Group]++
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			led, problems, err := c.build(t)
			if err != nil {
				t.Fatalf("%s\n%v", c.Config, err)
			}
			if err := led.Check(); err != nil {
				t.Error(err)
			}
			for _, d := range c.compare(led, problems) {
				t.Error(d)
			}
			if t.Failed() {
				t.Log(c.Config)
			} else {
				passed[c.Group]++
			}
		})
	}
	for _, g := range completeGroups {
		if skipped[g] > 0 {
			t.Errorf("group %s: %d cases not compared", g, skipped[g])
		}
	}
	t.Logf("passed %v, not compared %v", passed, skipped)
}

// compare returns how the slots differ from those of the case.
func (c layoutCase) compare(led *Ledger, problems []Problem) (diffs []string) {
	say := func(format string, args ...any) { diffs = append(diffs, fmt.Sprintf(format, args...)) }
	fatal := false
	for _, p := range problems {
		fatal = fatal || p.Fatal
	}
	if told := c.LogClass == "parse-error"; told && len(problems) == 0 {
		say("nothing is said about the description")
	}
	if wantFatal := c.Exit != nil && *c.Exit == 4; fatal != wantFatal {
		say("fatal %v, want %v: %v", fatal, wantFatal, problems)
	}
	if c.LogClass == "hung" {
		// The original never ends here; these are broken slots instead.
		for s := range led.Slots() {
			if s.Broken == nil || s.Broken.Code != BrokenNoResources {
				say("%s: broken %v, want it broken for want of resources", s.ID, s.Broken)
			}
		}
		if led.Len() == 0 {
			say("no slot, want broken ones")
		}
		return diffs
	}
	if led.Len() != len(c.Slots) {
		say("%d slots, want %d: %v", led.Len(), len(c.Slots), problems)
		return diffs
	}
	i := 0
	for s := range led.Slots() {
		want := c.Slots[i]
		i++
		got := published(s)
		env := classad.NewAd()
		env.SetInt("TotalDisk", s.VolumeDiskKiB)
		env.SetInt("TotalVirtualMemory", c.Detected.MemoryMB<<10)
		for name, text := range want {
			have, ok := got[name]
			if !ok || strings.Contains(text, "-9999") || strings.Contains(text, "*-") {
				continue
			}
			if name == "SlotBrokenReason" && strings.Contains(text, "Requesting:") {
				continue // a multi-line dump of the attempt, with the marker of an open share
			}
			e, err := classad.ParseExpr(text, classad.Old)
			if err != nil {
				say("%s %s: %v", s.ID, name, err)
				continue
			}
			rounding := 0.0
			if strings.Contains(text, "*") {
				rounding = 1 + 6e-6*max(someDiskKiB, float64(c.Detected.MemoryMB<<10))
				if strings.Contains(text, "/") {
					rounding = 1
				}
			}
			if v := e.Eval(&classad.Env{My: env}); !sameValue(v, have, rounding) {
				say("%s %s: got %v, want %s", s.ID, name, have, text)
			}
		}
		if _, broken := want["SlotBrokenReason"]; broken != (s.Broken != nil) {
			say("%s: broken %v, want %v", s.ID, s.Broken, broken)
		}
	}
	if fatal {
		return diffs // the daemon ended without an ad
	}
	var reasons []string
	for _, p := range problems {
		if p.Warning {
			continue
		}
		key := "slot_type" + strconv.Itoa(p.TypeID) + "BrokenReason"
		if !p.Slot.IsZero() {
			key = p.Slot.String() + "BrokenReason"
		}
		reasons = append(reasons, key)
		if want := c.Daemon[key]; want != strconv.Quote(p.Reason) && !strings.Contains(want, "Requesting:") {
			say("%s: %q, want %s", key, p.Reason, want)
		}
	}
	if want := c.Daemon["BrokenReasons"]; want != "" || len(reasons) > 0 {
		if got := "{ " + strings.Join(reasons, ",") + " }"; got != want {
			say("BrokenReasons %s, want %s", got, want)
		}
	}
	return diffs
}

// published is what an ad shows of a slot's amounts.
func published(s *Slot) map[string]any {
	out := map[string]any{
		"Name": s.FullName("${HOST}"), "SlotID": int64(s.ID.N), "SlotType": s.Kind.String(), "SlotTypeID": int64(s.TypeID),
		"Cpus": s.Free.Cpus, "Memory": s.Free.MemoryMiB, "Disk": s.Total.DiskKiB, "VirtualMemory": s.Total.SwapKiB,
		"TotalSlotCpus": s.Total.Cpus, "TotalSlotMemory": s.Total.MemoryMiB, "TotalSlotDisk": float64(s.Total.DiskKiB),
		"TotalDisk": s.VolumeDiskKiB,
	}
	if s.Broken != nil {
		out["SlotBrokenCode"], out["SlotBrokenReason"] = int64(s.Broken.Code), s.Broken.Reason
	}
	for _, c := range s.Total.Custom {
		free, _ := s.Free.Find(c.Name)
		out[c.Name], out["TotalSlot"+c.Name] = free.Count, c.Count
		if s.Asked != nil {
			out[c.Name] = c.Count
		}
		for _, asked := range s.Asked {
			if asked.Name == c.Name {
				out["TotalSlot"+c.Name] = asked.Count
			}
		}
		if len(c.Assets) > 0 {
			out["Assigned"+c.Name] = strings.Join(c.Assets, ",")
		}
	}
	return out
}

// sameValue compares a recorded value with a published one. What depends on
// the machine of the recording is recorded as a proportion: exact to a unit
// when it is a simple fraction, otherwise to five digits.
func sameValue(want classad.Value, have any, rounding float64) bool {
	if text, ok := want.AsString(); ok {
		return text == have
	}
	n, ok := want.AsNumber()
	if !ok {
		return false
	}
	var got float64
	switch v := have.(type) {
	case int64:
		got = float64(v)
	case float64:
		got = v
	default:
		return false
	}
	return math.Abs(n-got) <= rounding
}

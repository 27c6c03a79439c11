// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

var start = clock.Instant{Wall: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Boot: time.Hour}

// recorded is one line of testdata: a configuration with its scripts, and what
// the slots of HTCondor 25.14 showed of them.
type recorded struct {
	ID       string
	Config   string
	Scripts  map[string]string
	Slots    []map[string]string
	Exit     *int
	Detected struct {
		Cpus     int
		MemoryMB int64 `json:"memory_mb"`
	}
}

func readRecorded(t testing.TB, file string) []recorded {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// heredoc is what a script prints that only prints: its lines between cat <<'E'
// and E.
func heredoc(script string) (string, bool) {
	_, text, ok := strings.Cut(script, "cat <<'E'\n")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(text, "E\n")
}

// spoken are the programs that print otherwise, as functions of how they were
// started.
var spoken = map[string]func(p *hosttest.Process) (string, int){
	"slot-cron-26": func(p *hosttest.Process) (string, int) {
		foo := ""
		for _, e := range p.Spec().Env {
			if v, ok := strings.CutPrefix(e, "FOO="); ok {
				foo = v
			}
		}
		return fmt.Sprintf("Foo=%q\nCwd=%q\n-\n", foo, p.Spec().Dir), 0
	},
	"slot-cron-28": func(*hosttest.Process) (string, int) { return "Value=1\n-\n", 4 },
	"slot-cron-45": func(p *hosttest.Process) (string, int) {
		return fmt.Sprintf("Value=%q\n-\n", strings.Join(p.Spec().Args[1:], " ")), 0
	},
	"slot-cron-46": func(*hosttest.Process) (string, int) { return "Value=1\n-\n", 0 },
}

// parse reads the configuration as the daemon would on the recorded machine.
func (r *recorded) parse(t *testing.T) (*config.Snapshot, *machine.Inventory) {
	t.Helper()
	cfg, err := config.Parse("cron.conf", r.Config, config.Options{Subsystem: "STARTD", Facts: map[string]string{
		"DETECTED_CORES": strconv.Itoa(r.Detected.Cpus), "DETECTED_CPUS": strconv.Itoa(r.Detected.Cpus),
		"DETECTED_MEMORY": strconv.FormatInt(r.Detected.MemoryMB, 10), "FULL_HOSTNAME": "${HOST}",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg, &machine.Inventory{FullHostname: "${HOST}", UsableCores: 8, UsableMemoryMiB: 16384, SwapKiB: 16 << 20, Execute: machine.Disk{FreeKiB: 987654320}}
}

// ads makes the ads of the case before any job has run.
func ads(t *testing.T, cfg *config.Snapshot, inv *machine.Inventory) (*ad.Machine, []Slot) {
	t.Helper()
	layout, err := slot.LayoutFrom(cfg, inv)
	if err != nil {
		t.Fatal(err)
	}
	led, _ := slot.Build(layout, inv)
	exprs := map[int]*policy.Expressions{}
	for s := range led.Slots() {
		exprs[s.TypeID], _ = policy.ExpressionsFrom(cfg, s.TypeID)
	}
	m, err := ad.New(ad.Source{Config: cfg, Inventory: inv, Ledger: led, Policy: exprs}, start)
	if err != nil {
		t.Fatal(err)
	}
	var slots []Slot
	for s := range led.Slots() {
		a, _ := m.Slot(s.ID)
		a.SetPair(policy.UnclaimedIdle, start)
		name, _ := a.Ad().EvalString("Name", nil)
		slots = append(slots, Slot{ID: s.ID, Name: name, TypeID: s.TypeID, Ad: a.Ad()})
	}
	return m, slots
}

// runAll runs what is due until nothing more is, and returns the board.
func runAll(t *testing.T, cfg *config.Snapshot, spawner host.Spawner) *CronAds {
	t.Helper()
	cron, problems := CronFrom(cfg)
	for _, p := range problems {
		t.Log(p)
	}
	board := NewCronAds(cron)
	schedule := NewSchedule(cron)
	runner := &Runner{Spawner: spawner, Env: []string{"PATH=/bin"}, Dir: "/log"}
	for range 10 {
		starts, _ := schedule.Due(start, func(e *classad.Expr) bool { return e.Eval(nil).IsTrue() })
		if len(starts) == 0 {
			return board
		}
		for _, s := range starts {
			var blocks []Block
			run, err := runner.Start(context.Background(), s.Job, func(b Block) { blocks = append(blocks, b) })
			if err != nil {
				t.Fatal(err)
			}
			if report := run.Report(); report.Err != nil {
				t.Fatal(report.Err)
			}
			for _, b := range blocks {
				if _, err := board.Put(s.Job.Name, b, start.Wall); err != nil {
					t.Log(err)
				}
			}
			schedule.Ended(s.Job.Name, start)
		}
	}
	t.Fatal("jobs are due without end")
	return nil
}

func attrs(a *ad.Machine, id slot.ID) map[string]string {
	s, _ := a.Slot(id)
	out := map[string]string{}
	for name, e := range s.Snapshot(start).All() {
		out[strings.ToLower(name)] = e.Text(classad.Old)
	}
	return out
}

// open says what a case needs that is not shown here.
func (r *recorded) open() string {
	switch r.ID {
	case "slot-cron-23", "slot-cron-48", "slot-cronx-01", "slot-cronx-02":
		return "several runs: TestBoardRuns, TestMetrics"
	case "slot-cron-25":
		return "it prints text behind an expression, which HTCondor does not read"
	case "slot-cron-24", "slot-cron-36", "slot-cron-50", "slot-cron-51", "slot-cron-47":
		return "" // nothing runs
	case "slot-cron-37", "slot-cron-41":
		return "the recorded daemon died"
	}
	return ""
}

// row: S0-225, S0-231, S0-232, S0-233, S0-235, S0-242
func TestRecordedCron(t *testing.T) {
	t.Parallel()
	passed := 0
	for _, r := range readRecorded(t, "testdata/cron.jsonl") {
		if why := r.open(); why != "" {
			t.Logf("%s: %s", r.ID, why)
			continue
		}
		passed++
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			cfg, inv := r.parse(t)
			m := hosttest.New()
			for name, script := range r.Scripts {
				text, plain := heredoc(script)
				speak := spoken[r.ID]
				m.Install("/scripts/"+path.Clean(name), func(p *hosttest.Process) host.ExitStatus {
					code := 0
					if !plain && speak != nil {
						text, code = speak(p)
					}
					if _, err := io.WriteString(p.Spec().Stdout, text); err != nil {
						return host.ExitStatus{Signal: 13}
					}
					return host.ExitStatus{Exited: true, Code: code}
				})
			}
			board := runAll(t, cfg, m)
			machineAds, slots := ads(t, cfg, inv)
			before := make([]map[string]string, len(slots))
			for i, s := range slots {
				before[i] = attrs(machineAds, s.ID)
			}
			for _, p := range board.Publish(slots) {
				machineAds.Publish(p.Source, p.Slot, p.Attrs)
			}
			if len(slots) != len(r.Slots) {
				t.Fatalf("%d slots, recorded %d", len(slots), len(r.Slots))
			}
			for i, s := range slots {
				compare(t, s.Name, before[i], attrs(machineAds, s.ID), r.Slots[i])
			}
		})
	}
	if passed < 38 {
		t.Errorf("only %d recorded cases were compared", passed)
	}
}

// compare looks at every attribute that a job brought or changed, and at every
// recorded one that was not there without it.
func compare(t *testing.T, name string, before, after, recorded map[string]string) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	lower := map[string]string{}
	for k, v := range recorded {
		k = strings.ToLower(k)
		if v == "<time>" && strings.HasSuffix(k, "lastupdate") {
			v = strconv.FormatInt(start.Wall.Unix(), 10)
		}
		lower[k] = v
		if _, ok := before[k]; !ok {
			want[k] = v
		}
	}
	for k, v := range after {
		if old, ok := before[k]; !ok || old != v {
			got[k] = v
			if v, ok := lower[k]; ok {
				want[k] = v
			}
		}
	}
	for k := range want {
		if v, ok := after[k]; ok {
			got[k] = v
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-recorded +ours):\n%s", name, d)
	}
}

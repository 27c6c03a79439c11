// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// quiet is a machine that nobody touches.
type quiet struct{ clock *clock.Fake }

func (q quiet) Sample(context.Context) (machine.Sample, error) {
	return machine.Sample{At: q.clock.Now(), KeyboardIdle: time.Hour, Fresh: machine.AllReadings}, nil
}

func (quiet) Close() error { return nil }

// laboratory is a node without jobs whose clock the test moves.
type laboratory struct {
	*node
	t       *testing.T
	clock   *clock.Fake
	machine *hosttest.Machine
	log     *bytes.Buffer
}

func newLaboratory(t *testing.T, text string, programs map[string]hosttest.Program, change ...func(*Options)) *laboratory {
	t.Helper()
	l := &laboratory{t: t, clock: clock.NewFake(time.Unix(1_800_000_000, 0)), machine: hosttest.New(), log: new(bytes.Buffer)}
	for path, p := range programs {
		l.machine.Install(path, p)
	}
	inv, _ := machine.Scan(t.Context(), l.clock.Now().Wall)
	inv.Hostname, inv.FullHostname = "host", "host.example"
	inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = 2, 2, 2, 2
	inv.DetectedMemoryMiB, inv.UsableMemoryMiB = 4096, 4096
	inv.Execute = machine.Disk{Path: "/execute", TotalKiB: 1 << 20, AvailableKiB: 1 << 20, FreeKiB: 1 << 20}
	snap, err := config.Parse("test.conf", "UPDATE_INTERVAL = 60\nIS_OWNER = KOwner =?= True\n"+text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: snap, Inventory: inv, OwnJobs: OwnJobs{User: "u@example"}, Starters: Starters{StarterEnv: []string{"A=daemon"}},
		Host: Host{Clock: l.clock, Sampler: quiet{l.clock}, Spawner: l.machine, Census: l.machine, Rand: func([]byte) {}},
		Log:  slog.New(slog.NewTextHandler(l.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	l.node, err = newNode(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.node != nil {
			l.node.close()
		}
	})
	return l
}

// pass lets time pass and lets the engine look at its policy.
func (l *laboratory) pass(d time.Duration) {
	now := l.clock.Advance(d)
	l.step(now, ep.Tick{})
	l.settle(now)
}

// until does what comes from beside the owner until cond holds.
func (l *laboratory) until(cond func() bool) {
	for !cond() {
		f := <-l.mail.inbox
		now := l.clock.Now()
		f(now)
		l.settle(now)
	}
}

func (l *laboratory) pair(n int) policy.Pair {
	l.t.Helper()
	v, ok := l.eng.SlotView(slot.ID{N: n})
	if !ok {
		l.t.Fatalf("no slot%d", n)
	}
	return v.Pair
}

// attrs are attributes of a slot as text, "-" for one it does not have.
func (l *laboratory) attrs(n int, names ...string) string {
	var out []string
	for _, name := range names {
		text := "-"
		if v := l.eng.SlotAd(slot.ID{N: n}).Eval(name, nil); !v.IsUndefined() {
			text = v.String()
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// notes is what programs tell a test; they run beside each other.
type notes struct {
	mu    sync.Mutex
	lines []string
	now   int // how many run
}

func (n *notes) add(format string, a ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, a...))
}

// prints is a benchmark that prints and ends, and notes how it was started.
func (n *notes) prints(text func() string) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		n.mu.Lock()
		n.now++
		side := n.now
		n.mu.Unlock()
		s := p.Spec()
		env := slices.DeleteFunc(slices.Clone(s.Env), func(e string) bool { return e == s.Marker })
		n.add("%s %q %q %q %d at once", s.Path, s.Args, env, s.Dir, side)
		fmt.Fprint(s.Stdout, text())
		p.Sleep(20 * time.Millisecond)
		n.mu.Lock()
		n.now--
		n.mu.Unlock()
		return host.ExitStatus{Exited: true}
	}
}

// row: S0-135, S0-136, S0-137, S0-244
func TestBenchmarksAreRunAndWeighed(t *testing.T) {
	t.Parallel()
	var told notes
	mips := 1000
	l := newLaboratory(t, `
LOG = /log
NUM_SLOTS = 2
RunBenchmarks = (time() - LastBenchmark) >= 4 * 3600
BENCHMARKS_MIPS_EXECUTABLE = /mips
BENCHMARKS_KFLOPS_EXECUTABLE = /kflops
BENCHMARKS_KFLOPS_ARGS = -fast 2
BENCHMARKS_KFLOPS_ENV = A=mine;B=2
BENCHMARKS_KFLOPS_CWD = /cwd
BENCHMARKS_JOBLIST = mips kflops disk
BENCHMARKS_DISK_EXECUTABLE = /disk
BENCHMARKS_DISK_PREFIX = Own_
BENCHMARKS_DISK_SLOTS = 2
`, map[string]hosttest.Program{
		"/mips":   told.prints(func() string { return fmt.Sprintf("Mips = %d\n--\n", mips) }),
		"/kflops": told.prints(func() string { return "KFlops = 5000\n--\n" }),
		"/disk":   told.prints(func() string { return fmt.Sprintf("Rate = %d\n", mips) }),
	})
	want := []string{
		`/mips ["mips"] ["A=daemon"] "/log" 1 at once`,
		`/kflops ["kflops" "-fast" "2"] ["A=mine" "B=2"] "/cwd" 1 at once`,
		`/disk ["disk"] ["A=daemon"] "/log" 1 at once`,
	}
	idle := func() bool { return l.pair(1) == policy.UnclaimedIdle }
	l.pass(time.Minute)
	if l.pair(1) != policy.UnclaimedBenchmarking || l.attrs(1, "Mips", "LastBenchmark") != "- 0" {
		t.Fatalf("%v, %s", l.pair(1), l.attrs(1, "Mips", "LastBenchmark"))
	}
	l.until(idle)
	if !slices.Equal(told.lines, want) {
		t.Errorf("ran\n%s\nwant\n%s", strings.Join(told.lines, "\n"), strings.Join(want, "\n"))
	}
	names := []string{"Mips", "KFlops", "Own_Rate", "LastBenchmark"}
	if got := l.attrs(1, names...); got != "1000 5000 - 1800000060" {
		t.Errorf("slot1: %s", got)
	}
	if got := l.attrs(2, names...); got != "1000 5000 1000 1800000060" {
		t.Errorf("slot2: %s", got)
	}

	mips = 2000 // as if nothing else ran this time
	l.pass(4 * time.Hour)
	l.until(idle)
	if got := l.attrs(2, names...); got != "1250 5000 2000 1800014460" {
		t.Errorf("after the second round: %s", got)
	}
	l.pass(time.Hour)
	if len(told.lines) != 6 {
		t.Errorf("ran %d times:\n%s", len(told.lines), strings.Join(told.lines, "\n"))
	}
}

func TestBenchmarksBesideEachOther(t *testing.T) {
	t.Parallel()
	var met sync.WaitGroup
	met.Add(2)
	meet := func(p *hosttest.Process) host.ExitStatus {
		met.Done()
		met.Wait() // comes back only if both run
		fmt.Fprintf(p.Spec().Stdout, "Ran_%s = 1\n", p.Spec().Args[0])
		return host.ExitStatus{Exited: true, Code: 3} // what was printed counts all the same
	}
	l := newLaboratory(t, `
BENCHMARKS_JOBLIST = a b giant
BENCHMARKS_MAX_JOB_LOAD = 1.5
BENCHMARKS_A_EXECUTABLE = /a
BENCHMARKS_A_JOB_LOAD = 0.5
BENCHMARKS_B_EXECUTABLE = /b
BENCHMARKS_GIANT_EXECUTABLE = /giant
BENCHMARKS_GIANT_JOB_LOAD = 2
`, map[string]hosttest.Program{"/a": meet, "/b": meet, "/giant": meet})
	l.pass(time.Minute)
	l.until(func() bool { return l.pair(1) == policy.UnclaimedIdle })
	if got := l.attrs(1, "Ran_a", "Ran_b", "Ran_giant", "LastBenchmark"); got != "1 1 - 1800000060" {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(l.log.String(), "BENCHMARKS_giant_JOB_LOAD") {
		t.Errorf("that giant never runs is not told:\n%s", l.log)
	}
}

// hangs prints and would go on for ever.
func hangs(p *hosttest.Process) host.ExitStatus {
	fmt.Fprint(p.Spec().Stdout, "Mips = 7\n--\n")
	for p.Sleep(time.Hour) != hosttest.SIGKILL {
	}
	return host.ExitStatus{}
}

func TestBenchmarksAreEndedForTheOwner(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "BENCHMARKS_MIPS_EXECUTABLE = /mips\nBENCHMARKS_KFLOPS_EXECUTABLE = /kflops\n",
		map[string]hosttest.Program{"/mips": hangs, "/kflops": hangs})
	l.pass(time.Minute)
	l.until(func() bool { return l.attrs(1, "Mips") == "7" }) // it runs
	ad := l.eng.SlotAd(slot.ID{N: 1}).Clone()
	ad.SetBool("KOwner", true)
	l.step(l.clock.Now(), ep.Published{Source: "test", Attrs: ad})
	l.pass(time.Minute)
	if l.pair(1) != policy.OwnerIdle {
		t.Fatalf("the slot is %v", l.pair(1))
	}
	l.until(func() bool { return strings.Contains(l.log.String(), "benchmark was ended") })
	families := l.machine.Families()
	if len(families) != 1 || !families[0].Closed() || families[0].Status().Signal != hosttest.SIGKILL {
		t.Errorf("%d programs were started, the first ended %v", len(families), families[0].Status())
	}
	if got := l.attrs(1, "LastBenchmark"); got != "0" {
		t.Errorf("LastBenchmark %s", got)
	}
}

func TestEndOfNodeEndsBenchmarks(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "BENCHMARKS_MIPS_EXECUTABLE = /mips\n", map[string]hosttest.Program{"/mips": hangs})
	l.pass(time.Minute)
	l.until(func() bool { return l.attrs(1, "Mips") == "7" })
	l.interrupt(l.clock.Now(), ep.Graceful)
	if l.leave.complete {
		t.Error("the engine has not waited for the benchmark")
	}
	l.until(l.over)
	if f := l.machine.Families()[0]; !f.Closed() {
		t.Error("the benchmark runs on")
	}

	l = newLaboratory(t, "BENCHMARKS_MIPS_EXECUTABLE = /mips\n", map[string]hosttest.Program{"/mips": hangs})
	l.pass(time.Minute)
	l.until(func() bool { return l.attrs(1, "Mips") == "7" })
	l.node.close() // as when the last job is done
	l.node = nil
	if f := l.machine.Families()[0]; !f.Closed() {
		t.Error("the benchmark has outlived the node")
	}
}

func TestMissingBenchmarksAreToldOnce(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "BENCHMARKS_MIPS_EXECUTABLE = /none\nBENCHMARKS_KFLOPS_EXECUTABLE = /none\n", nil)
	l.pass(time.Minute)
	l.until(func() bool { return l.pair(1) == policy.UnclaimedIdle })
	l.pass(time.Hour)
	if got := l.attrs(1, "Mips", "KFlops", "LastBenchmark"); got != "- - 1800000060" || l.pair(1) != policy.UnclaimedIdle {
		t.Errorf("%v, %s", l.pair(1), got)
	}
	if n := strings.Count(l.log.String(), "benchmark did not run"); n != 2 {
		t.Errorf("told %d times:\n%s", n, l.log)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The names of the benchmarks are those of the table in docs/performance.md.

func readAd(tb testing.TB, file string) (text string, ad *Ad) {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	ad, err = ParseAd(string(data), Old)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data), ad
}

// policyEnv is a slot of 194 attributes under the Desktop policy with a job
// of 73.
func policyEnv(tb testing.TB) *Env {
	_, slot := readAd(tb, "testdata/slot.ad")
	_, job := readAd(tb, "testdata/job.ad")
	return &Env{My: slot, Target: job, Now: time.Unix(1700000000, 0)}
}

var policyExprs = []string{"START", "SUSPEND", "WANT_SUSPEND", "CONTINUE", "PREEMPT", "IsOwner", "Requirements"}

// slotExprs are evaluated in the slot with the job as TARGET; jobExprs the
// other way round.
var (
	slotExprs = []struct{ name, text string }{
		{"START", "START"},
		{"SUSPEND", "SUSPEND"},
		{"CONTINUE", "CONTINUE"},
		{"PREEMPT", "PREEMPT"},
		{"IsOwner", "IsOwner"},
		{"STARTWithinResourceLimits", "START && WithinResourceLimits"},
		{"RANK", `(TARGET.Owner == "bob") * 10 + (TARGET.Owner == "alice") * 5 + (TARGET.User == "carol@example.org")`},
		{"IfThenElse7", `ifThenElse(TARGET.JobUniverse == 1, 1, ifThenElse(TARGET.JobUniverse == 2, 2, ` +
			`ifThenElse(TARGET.JobUniverse == 7, 3, ifThenElse(TARGET.JobUniverse == 9, 4, ` +
			`ifThenElse(TARGET.JobUniverse == 10, 5, ifThenElse(TARGET.JobUniverse == 11, 6, ` +
			`ifThenElse(TARGET.JobUniverse == 5, 7, 8)))))))`},
		{"ListMember", `member(TARGET.Owner, { "dan","eve","frank","grace","heidi","ivan","judy","alice" }) && ` +
			`stringListIMember(TARGET.Owner, "dan, eve, frank, grace, heidi, ivan, judy, alice")`},
	}
	jobExprs = []struct{ name, text string }{
		{"JobRequirements", "Requirements"},
		{"JobRequirementsRegexpVersion", `TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX" && TARGET.Disk >= RequestDisk && ` +
			`TARGET.Memory >= RequestMemory && TARGET.HasFileTransfer && regexp("^slot[0-9]+@node", TARGET.Name) && ` +
			`versionGE(split(TARGET.CondorVersion)[1], "10.0.0")`},
		{"JobRank", "Rank"},
	}
)

func benchmarkExpr(b *testing.B, text string, env *Env) {
	e := MustParseExpr(text)
	if v := e.Eval(env); v.IsError() || v.IsUndefined() {
		b.Fatal(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Eval(env)
	}
}

func BenchmarkEval(b *testing.B) {
	env := policyEnv(b)
	for _, x := range slotExprs {
		b.Run(x.name, func(b *testing.B) { benchmarkExpr(b, x.text, env) })
	}
	back := *env
	back.My, back.Target = env.Target, env.My
	for _, x := range jobExprs {
		b.Run(x.name, func(b *testing.B) { benchmarkExpr(b, x.text, &back) })
	}
	// With the owner at the keyboard PREEMPT needs SUSPEND and WANT_SUSPEND.
	busy := *env
	busy.My = env.My.Clone()
	busy.My.SetInt("KeyboardIdle", 10)
	b.Run("PREEMPTWithSuspend", func(b *testing.B) { benchmarkExpr(b, "PREEMPT", &busy) })
	b.Run("PreemptSuspendWantSuspend", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if env.My.Eval("PREEMPT", env).IsTrue() || env.My.Eval("SUSPEND", env).IsTrue() ||
				env.My.Eval("WANT_SUSPEND", env).IsTrue() {
				b.Fatal("true")
			}
		}
	})
	b.Run("STARTAndEnv", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e := Env{My: env.My, Target: env.Target, Now: env.Now}
			if !e.My.Eval("START", &e).IsTrue() {
				b.Fatal("not true")
			}
		}
	})
}

// BenchmarkEvalWatched is an evaluation with a trace of what it read.
func BenchmarkEvalWatched(b *testing.B) {
	env := policyEnv(b)
	reads := 0
	env.OnRead = func(Read) { reads++ }
	b.ReportAllocs()
	for b.Loop() {
		if !env.My.Eval("START", env).IsTrue() {
			b.Fatal("not true")
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	env := policyEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		if !Match(env.My, env.Target, env).OK() {
			b.Fatal("no match")
		}
	}
}

func BenchmarkParseAd(b *testing.B) {
	text, ad := readAd(b, "testdata/slot.ad")
	for _, c := range []struct {
		name, text string
		d          Dialect
	}{{"Old", text, Old}, {"New", ad.TextAll(New), New}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if _, err := ParseAd(c.text, c.d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("JSON", func(b *testing.B) {
		text := ad.JSON()
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := ParseJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPrintAd prints an ad again and again; the first time its names are
// put in order, which BenchmarkPrintAd/First has every time.
func BenchmarkPrintAd(b *testing.B) {
	text, ad := readAd(b, "testdata/slot.ad")
	var buf []byte
	for _, c := range []struct {
		name  string
		print func()
	}{
		{"Old", func() { buf = ad.AppendText(buf[:0], Old) }},
		{"First", func() {
			ad.layout.public.Store(nil)
			buf = ad.AppendText(buf[:0], Old)
		}},
		{"New", func() { buf = ad.AppendText(buf[:0], New) }},
		{"JSON", func() { buf = ad.AppendJSON(buf[:0]) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.print()
			}
		})
	}
}

func BenchmarkBuildAd(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	names := ad.Names()
	b.ReportAllocs()
	for b.Loop() {
		a := NewAd()
		for i, name := range names {
			a.SetInt(name, int64(i))
		}
	}
}

// BenchmarkCopyAd copies an ad: by itself, which shares everything, with a
// change afterwards, which copies the values, and as a layer.
func BenchmarkCopyAd(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	for _, c := range []struct {
		name string
		copy func() *Ad
	}{
		{"Clone", ad.Clone},
		{"CloneAndChange", func() *Ad {
			c := ad.Clone()
			c.SetInt("Cpus", 2)
			return c
		}},
		{"CloneAndAdd", func() *Ad {
			c := ad.Clone()
			c.SetInt("Another", 2)
			return c
		}},
		{"Layer", func() *Ad {
			c := NewAd()
			c.SetParent(ad)
			return c
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c.copy() == ad {
					b.Fatal("no copy")
				}
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ad.Lookup("requirements"); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkParseExpr(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	e, _ := ad.Lookup("PREEMPT")
	text := e.String()
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ParseExpr(text, Old); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRegexp(b *testing.B) {
	env := policyEnv(b)
	e := MustParseExpr(`regexp("^slot[0-9]+@node", Name)`)
	b.ReportAllocs()
	for b.Loop() {
		if !e.Eval(env).IsTrue() {
			b.Fatal("not true")
		}
	}
}

// manySlots is the text of n slot ads, one after the other, that differ in
// their values.
func manySlots(tb testing.TB, n int) string {
	text, _ := readAd(tb, "testdata/slot.ad")
	var b strings.Builder
	for i := range n {
		r := strings.NewReplacer(
			"slot1@node7", fmt.Sprintf("slot%d@node%d", i%8+1, i/8),
			"KeyboardIdle = 1200", fmt.Sprintf("KeyboardIdle = %d", 800+i%1000),
			"\nMemory = 4096", fmt.Sprintf("\nMemory = %d", 512<<(i%6)),
			"\nCpus = 1\n", fmt.Sprintf("\nCpus = %d\n", i%4))
		r.WriteString(&b, text)
		b.WriteString("\n")
	}
	return b.String()
}

// BenchmarkMatch10000 matches one job against 10000 slot ads that were read
// from one text; one operation is all of them.
func BenchmarkMatch10000(b *testing.B) {
	env := policyEnv(b)
	var slots []*Ad
	for a, err := range NewReader(strings.NewReader(manySlots(b, 10_000)), FormOld).All() {
		if err != nil {
			b.Fatal(err)
		}
		slots = append(slots, a)
	}
	m := NewMatcher(env.Target, env)
	matches := 0
	b.ReportAllocs()
	for b.Loop() {
		matches = 0
		for _, slot := range slots {
			if m.Matches(slot) {
				matches++
			}
		}
	}
	b.ReportMetric(float64(len(slots))*float64(b.N)/b.Elapsed().Seconds(), "ads/s")
	b.ReportMetric(float64(matches), "matches")
}

func BenchmarkReader(b *testing.B) {
	const ads = 200
	text := manySlots(b, ads)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for _, err := range NewReader(strings.NewReader(text), FormOld).All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ads, "ns/ad")
}

// TestPolicyAllocatesNothing holds the evaluation of scalar expressions to
// its promise.
func TestPolicyAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("allocations are counted in builds without the race detector")
	}
	env := policyEnv(t)
	for _, name := range append(policyExprs, "Rank") {
		if n := testing.AllocsPerRun(100, func() { env.My.Eval(name, env) }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	back := *env
	back.My, back.Target = env.Target, env.My
	for _, x := range jobExprs {
		e := MustParseExpr(x.text)
		if n := testing.AllocsPerRun(100, func() { e.Eval(&back) }); n != 0 {
			t.Errorf("%s allocates %v times", x.name, n)
		}
	}
	for _, x := range slotExprs {
		e := MustParseExpr(x.text)
		if n := testing.AllocsPerRun(100, func() { e.Eval(env) }); n != 0 {
			t.Errorf("%s allocates %v times", x.name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Match(env.My, env.Target, env) }); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}

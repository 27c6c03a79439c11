// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"os"
	"testing"
	"time"
)

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

// policyEnv is a slot of 190 attributes under the Desktop policy with a job.
func policyEnv(tb testing.TB) *Env {
	_, slot := readAd(tb, "testdata/slot.ad")
	_, job := readAd(tb, "testdata/job.ad")
	return &Env{My: slot, Target: job, Now: time.Unix(1700000000, 0)}
}

var policyExprs = []string{"START", "SUSPEND", "WANT_SUSPEND", "CONTINUE", "PREEMPT", "IsOwner", "Requirements"}

func BenchmarkPolicy(b *testing.B) {
	env := policyEnv(b)
	for _, name := range policyExprs {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if env.My.Eval(name, env).Kind() != KindBoolean {
					b.Fatal("no boolean")
				}
			}
		})
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

func BenchmarkJobRequirements(b *testing.B) {
	env := policyEnv(b)
	env.My, env.Target = env.Target, env.My
	b.ReportAllocs()
	for b.Loop() {
		if !env.My.Eval("Requirements", env).IsTrue() {
			b.Fatal("not true")
		}
	}
}

func BenchmarkParseAd(b *testing.B) {
	text, _ := readAd(b, "testdata/slot.ad")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ParseAd(text, Old); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrintAd(b *testing.B) {
	text, ad := readAd(b, "testdata/slot.ad")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	var buf []byte
	for b.Loop() {
		buf = ad.AppendText(buf[:0], Old)
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

func BenchmarkCloneAd(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	b.ReportAllocs()
	for b.Loop() {
		if ad.Clone().Len() == 0 {
			b.Fatal("empty")
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	_, ad := readAd(b, "testdata/slot.ad")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ad.Lookup("totalslotmemory"); !ok {
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

// TestPolicyAllocatesNothing holds the evaluation of a policy expression to
// its promise.
func TestPolicyAllocatesNothing(t *testing.T) {
	env := policyEnv(t)
	for _, name := range append(policyExprs, "Rank") {
		if n := testing.AllocsPerRun(100, func() { env.My.Eval(name, env) }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Match(env.My, env.Target, env) }); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
)

// Health checks are a list with or without braces; a slot is healthy unless
// one of them is false, and only then offered.
func TestHealth(t *testing.T) {
	t.Parallel()
	const limits = "START && WithinResourceLimits"
	for _, c := range []struct {
		knob                           string
		exprs, factor, healthy, clause string
	}{
		{"", "-", "-", "-", "Start && WithinResourceLimits"},
		{"STARTD_HEALTH_EXPRS = {}", "-", "-", "true", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = Cool", "{ Cool }", "0.0", "0", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = Calm, Cool", "{ Calm,Cool }", "0.5", "0", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = { Calm, Cool }", "{ Calm,Cool }", "0.5", "0", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = Calm, Calm", "{ Calm,Calm }", "1.0", "1", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = Calm, Unheard", "{ Calm,Unheard }", "0.5", "1", "Healthy && " + limits},
		{"STARTD_HEALTH_EXPRS = Calm\nSLOT_REQUIREMENTS_CLAUSES = Healthy, Quiet\nQuiet = true", "{ Calm }", "1.0", "1", "Healthy && Quiet && " + limits},
	} {
		m, _ := machineWith(t, "STARTD_ATTRS = Calm Cool\nCalm = true\nCool = false\n"+c.knob+"\n")
		a := m.slots[0]
		expect(t, c.knob+": expressions", text(a, "HealthExprs"), c.exprs)
		expect(t, c.knob+": requirements", text(a, "Requirements"), c.clause)
		value := func(name string) string {
			if text(a, name) == "-" {
				return "-"
			}
			return a.Ad().Eval(name, nil).Text(classad.Old)
		}
		expect(t, c.knob+": factor", value("HealthFactor"), c.factor)
		expect(t, c.knob+": healthy", value("Healthy"), c.healthy)
	}
}

func TestHealthThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "")
	for _, bad := range []string{"Cool &&", "{ Cool", "Cool,, Calm"} {
		src := m.src
		var err error
		if src.Config, err = config.Parse("bad.conf", "\nSTARTD_HEALTH_EXPRS = "+bad+"\n", config.Options{Subsystem: "STARTD"}); err != nil {
			t.Fatal(err)
		}
		err = m.Reconfigure(src, goldenStart)
		if err == nil || !strings.Contains(err.Error(), "bad.conf:2") || !strings.Contains(err.Error(), "STARTD_HEALTH_EXPRS") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What a program says of each slot is taken in without looking at all others.
func BenchmarkPublish10000(b *testing.B) {
	m := manySlots(b, 10_000, "")
	attrs := [2]*classad.Ad{classad.NewAd(), classad.NewAd()}
	for i, a := range attrs {
		a.SetInt("Temperature", int64(20+i))
	}
	ids := make([]slot.ID, 0, len(m.slots))
	for _, a := range m.slots {
		ids = append(ids, a.s.ID)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		for _, id := range ids {
			m.Publish("cron", id, attrs[n%2])
		}
	}
}

func FuzzHealth(f *testing.F) {
	for _, text := range []string{"", "{}", "Cool", "Calm, Cool", "{ Calm, Cool }", "Cool &&", "{ Cool", "Cool,, Calm", "{ A }, { B }", "min({1})"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := config.Parse("fuzz.conf", healthKnob+" = "+text+"\n", config.Options{Subsystem: "STARTD"})
		if err != nil {
			return
		}
		checks, err := healthOf(cfg)
		if err != nil || checks == nil {
			return
		}
		ad := classad.NewAd()
		set := settings{health: checks}
		set.publishHealth(ad)
		if _, ok := ad.Lookup(attrHealthy); !ok {
			t.Errorf("%q is read and not shown", text)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
)

// found divides a machine on which a scanner found a resource.
func found(t *testing.T, text string, r ...machine.Resource) (Layout, *Ledger, error) {
	t.Helper()
	cfg, inv, err := scan(t, text, fixedMachine{cpus: 4, memoryMiB: 8000, diskKiB: 80000})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r {
		inv.AddResource("test", one)
	}
	layout, err := LayoutFrom(cfg, inv)
	if err != nil {
		return Layout{}, nil, err
	}
	led, problems := Build(layout, inv)
	if len(problems) > 0 {
		t.Error(problems)
	}
	return layout, led, led.Check()
}

// TestScannedResources adds resources without a word of configuration, and with
// words that count before the scanner's.
func TestScannedResources(t *testing.T) {
	t.Parallel()
	props, err := classad.ParseAd("Common = [ Thread = \"M8\"; ]\nb2 = [ Length = 40; ]\nBoltsMaker = \"ACME\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	bolts := machine.Resource{Name: "Bolts", IDs: []string{"b1", "b2", "b3"}, Attrs: props}
	for _, tt := range []struct {
		name, conf string
		r          []machine.Resource
		count      float64
		assets     []string
		offline    []string
	}{
		{"instances", "", []machine.Resource{bolts}, 3, []string{"b1", "b2", "b3"}, nil},
		{"one whose name is a number", "", []machine.Resource{{Name: "Bolts", IDs: []string{"7"}}}, 1, []string{"7"}, nil},
		{"counted", "", []machine.Resource{{Name: "Bolts", Count: 2.5}}, 2.5, nil, nil},
		{"none", "", []machine.Resource{{Name: "Bolts", IDs: []string{}}}, 0, []string{}, nil},
		{"not a number", "", []machine.Resource{{Name: "Bolts", Count: math.NaN()}}, 0, nil, nil},
		{"less than none", "", []machine.Resource{{Name: "Bolts", Count: -3}}, 0, nil, nil},
		{"the later scanner", "", []machine.Resource{{Name: "bolts", Count: 9}, bolts}, 3, []string{"b1", "b2", "b3"}, nil},
		{"offline", "OFFLINE_MACHINE_RESOURCE_Bolts = b2", []machine.Resource{bolts}, 2, []string{"b1", "b3"}, []string{"b2"}},
		{"configured instances", "MACHINE_RESOURCE_Bolts = x1 x2", []machine.Resource{bolts}, 2, []string{"x1", "x2"}, nil},
		{"a configured number", "MACHINE_RESOURCE_bolts = 2", []machine.Resource{bolts}, 2, []string{"b1", "b2"}, nil},
		{"named", "MACHINE_RESOURCE_NAMES = Bolts", []machine.Resource{bolts, {Name: "Nuts", Count: 4}}, 3, []string{"b1", "b2", "b3"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			layout, led, err := found(t, tt.conf, tt.r...)
			if err != nil || len(layout.Resources) != 1 {
				t.Fatalf("%+v: %v", layout.Resources, err)
			}
			got := layout.Resources[0]
			if got.Count != tt.count || !slices.Equal(got.Assets, tt.assets) || !slices.Equal(got.Offline, tt.offline) {
				t.Errorf("%+v", got)
			}
			s, _ := led.Slot(ID{N: 1})
			if held := s.Free.Custom; len(held) != 1 || held[0].Count != int64(tt.count) {
				t.Errorf("the slot has %v", held)
			}
		})
	}
	layout, _, err := found(t, "", bolts)
	if err != nil {
		t.Fatal(err)
	}
	got := layout.Resources[0]
	thread, _ := got.Properties["b1"].EvalString("Thread", nil)
	length, _ := got.Properties["b2"].EvalInt("Length", nil)
	detected, _ := got.Attrs.EvalString("DetectedBolts", nil)
	maker, _ := got.Attrs.EvalString("BoltsMaker", nil)
	if thread != "M8" || length != 40 || detected != "b1, b2, b3" || maker != "ACME" {
		t.Errorf("%q, %d, %q, %q", thread, length, detected, maker)
	}
}

// TestScannedResourcesLeftOut leaves out what MACHINE_RESOURCE_NAMES does not
// name.
func TestScannedResourcesLeftOut(t *testing.T) {
	t.Parallel()
	layout, _, err := found(t, "MACHINE_RESOURCE_NAMES = Nuts", machine.Resource{Name: "Bolts", Count: 2})
	if err != nil || len(layout.Resources) != 0 {
		t.Errorf("%+v, %v", layout.Resources, err)
	}
}

// TestScannedResourcesRefused names what no resource can be called.
func TestScannedResourcesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    machine.Resource
		want string
	}{
		{machine.Resource{Name: "Memory", Count: 2}, "Memory is a standard resource"},
		{machine.Resource{Name: "", Count: 2}, `found the resource ""`},
		{machine.Resource{Name: "2x", Count: 2}, `found the resource "2x"`},
		{machine.Resource{Name: "Bolts", IDs: []string{"b 1"}}, `the instance "b 1" of Bolts`},
		{machine.Resource{Name: "Bolts", IDs: []string{""}}, `the instance "" of Bolts`},
	} {
		if _, _, err := found(t, "", tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.r, err, tt.want)
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

func bolts(q Quantities) string {
	c, _ := q.Find("Bolts")
	return strings.Join(c.Assets, " ")
}

func fourBolts() Resource { return Resource{Name: "Bolts", Assets: []string{"b1", "b2", "b3", "b4"}} }

// TestOfflineInstances takes instances out of use while slots hold them: they
// stay where they are, are not free there, and nobody gets them.
//
// row: S4-105
func TestOfflineInstances(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 8, MemoryMiB: 8192, DiskKiB: 1 << 20}, fourBolts())
	one := Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024, Custom: []Custom{{Name: "Bolts", Count: 1}}}
	d := carve(t, led, one)
	p, _ := led.Slot(ID{N: 1})
	led.SetOffline([]Outage{{Resource: "Bolts", IDs: []string{"b3", "b1", "b9"}}})

	if got := bolts(p.Total) + "|" + bolts(p.Free); got != "b1 b2 b3 b4|b2 b4" {
		t.Errorf("the parent has %s", got)
	}
	if got := bolts(d.Total) + "|" + bolts(d.Free); got != "b1|" {
		t.Errorf("the dynamic slot has %s", got)
	}
	if r := led.Resources()[0]; r.Count != 2 || strings.Join(r.Offline, " ") != "b1 b3" || len(r.Assets) != 4 {
		t.Errorf("the resource is now %+v", r)
	}
	if a := led.Account(); bolts(a.Offline) != "b3 b1" && bolts(a.Offline) != "b1 b3" {
		t.Errorf("offline: %s", bolts(a.Offline))
	}
	giveBack(t, led, d.ID)
	if got := bolts(p.Free); got != "b2 b4" {
		t.Errorf("after its return the parent has %s", got)
	}
	two := one
	two.Custom = []Custom{{Name: "Bolts", Count: 2}}
	d = carve(t, led, two)
	if got := bolts(d.Total); got != "b2 b4" {
		t.Errorf("a new dynamic slot got %s", got)
	}
	if _, err := led.Carve(p.ID, one); err == nil || !strings.Contains(err.Error(), "Bolts 1 > 0") {
		t.Errorf("what is out of use was given away: %v", err)
	}
	led.SetOffline(nil)
	if got := bolts(p.Free); got != "b1 b3" {
		t.Errorf("back in use: %s", got)
	}
	if r := led.Resources()[0]; r.Count != 4 || len(r.Offline) != 0 {
		t.Errorf("the resource is %+v", r)
	}
	if err := led.Check(); err != nil {
		t.Error(err)
	}
}

// TestOfflineUnits takes units that have no names: those in use are taken when
// they are given back.
func TestOfflineUnits(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 8, MemoryMiB: 8192, DiskKiB: 1 << 20}, Resource{Name: "Bolts", Count: 4})
	three := Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024, Custom: []Custom{{Name: "Bolts", Count: 3}}}
	d := carve(t, led, three)
	p, _ := led.Slot(ID{N: 1})
	free := func() int64 { c, _ := p.Free.Find("Bolts"); return c.Count }
	off := func() int64 { c, _ := led.Account().Offline.Find("Bolts"); return c.Count }
	led.SetOffline([]Outage{{Resource: "bolts", Units: 2}})
	if free() != 0 || off() != 1 || d.Total.Custom[0].Count != 3 {
		t.Errorf("%d free, %d offline, %d in use", free(), off(), d.Total.Custom[0].Count)
	}
	if r := led.Resources()[0]; r.Count != 2 {
		t.Errorf("the resource is %+v", r)
	}
	giveBack(t, led, d.ID)
	if free() != 2 || off() != 2 {
		t.Errorf("after the return %d free, %d offline", free(), off())
	}
	led.SetOffline([]Outage{{Resource: "Bolts", Units: 99}})
	if free() != 0 || off() != 4 {
		t.Errorf("more than there is: %d free, %d offline", free(), off())
	}
	led.SetOffline(nil)
	if free() != 4 || off() != 0 {
		t.Errorf("at the end %d free, %d offline", free(), off())
	}
}

// TestOutagesFrom reads what a configuration that was changed since the start
// takes out of use.
//
// row: S4-104
func TestOutagesFrom(t *testing.T) {
	t.Parallel()
	at := func(text string) *config.Snapshot {
		snap, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	machine := "MACHINE_RESOURCE_Bolts = b1 b2 b3\nMACHINE_RESOURCE_Cogs = 7\n"
	start := at(machine + "OFFLINE_MACHINE_RESOURCE_Bolts = b2, b9\nOFFLINE_MACHINE_RESOURCE_Cogs = 2\n")
	r := layoutReader{cfg: start}
	resources, _ := r.resources(nil)
	if r.problems != nil {
		t.Fatal(r.problems)
	}
	if b, c := resources[0], resources[1]; b.Count != 2 || bolts(Quantities{Custom: []Custom{{Name: "Bolts", Assets: b.Assets}}}) != "b1 b3" || c.Count != 5 {
		t.Fatalf("at the start: %+v", resources)
	}
	led, _ := Divide(Layout{Types: []Type{{Number: 1, Count: 1, Partitionable: true}}, Resources: resources}, Capacity{Cpus: 2, MemoryMiB: 100, DiskKiB: 10000})
	for _, c := range []struct {
		name, text string
		want       []Outage
		bolts      float64
		cogs       float64
	}{
		{"unchanged", "OFFLINE_MACHINE_RESOURCE_Bolts = b2, b9\nOFFLINE_MACHINE_RESOURCE_Cogs = 2\n", nil, 2, 5},
		{"another", "OFFLINE_MACHINE_RESOURCE_Bolts = b1\nOFFLINE_MACHINE_RESOURCE_Cogs = 4\n",
			[]Outage{{Resource: "Bolts", IDs: []string{"b1"}}, {Resource: "Cogs", Units: 2}}, 1, 3},
		{"none: what was out at the start stays out", "", nil, 2, 5},
		{"no resource of that name", "OFFLINE_MACHINE_RESOURCE_Nuts = b1\n", nil, 2, 5},
	} {
		led.SetOffline(OutagesFrom(at(machine+c.text), led.Resources()))
		if d := cmp.Diff(c.want, led.Outages()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if b, g := led.Resources()[0].Count, led.Resources()[1].Count; b != c.bolts || g != c.cogs {
			t.Errorf("%s: %v bolts and %v cogs", c.name, b, g)
		}
		if err := led.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestConfiguredAndInventoried has a resource in the configuration and in an
// inventory: the configuration says how many, the inventory what they are.
func TestConfiguredAndInventoried(t *testing.T) {
	t.Parallel()
	said, err := classad.ParseAd("DetectedBolts = \"b1, b2, b3\"\nBrand = \"acme\"\nb1 = [ Size = 1; ]\nb2 = [ Size = 2; ]\nb3 = [ Size = 3; ]", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := classad.ParseAd("DetectedBolts = 9", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, config string
		inventory    *classad.Ad
		count        float64
		assets, off  string
	}{
		{"nothing configured", "", said, 3, "b1 b2 b3", ""},
		{"fewer", "MACHINE_RESOURCE_Bolts = 2\n", said, 2, "b1 b2", ""},
		{"none", "MACHINE_RESOURCE_Bolts = 0\n", said, 0, "", ""},
		{"more than were found", "MACHINE_RESOURCE_Bolts = 7\n", said, 7, "", ""},
		{"a list", "MACHINE_RESOURCE_Bolts = b3, b1, b8\n", said, 3, "b3 b1 b8", ""},
		{"a list, one offline", "MACHINE_RESOURCE_Bolts = b3, b1\nOFFLINE_MACHINE_RESOURCE_Bolts = b3\n", said, 1, "b1", "b3"},
		{"counts on both sides", "MACHINE_RESOURCE_Bolts = 4\n", counted, 4, "", ""},
	} {
		cfg, inv, err := scan(t, c.config, fixedMachine{4, 1000, 1000})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := LayoutFrom(cfg, inv, Inventory{Resource: "Bolts", Ad: c.inventory.Clone()})
		if err != nil {
			t.Fatal(err)
		}
		r := layout.Resources[0]
		if r.Count != c.count || strings.Join(r.Assets, " ") != c.assets || strings.Join(r.Offline, " ") != c.off {
			t.Errorf("%s: %+v", c.name, r)
		}
		if got, want := r.Attrs.Eval("DetectedBolts", nil), c.inventory.Eval("DetectedBolts", nil); got.String() != want.String() {
			t.Errorf("%s: DetectedBolts is %v", c.name, got)
		}
		if _, known := r.Properties["b1"]; known != (c.inventory == said) {
			t.Errorf("%s: the properties are %v", c.name, r.Properties)
		}
		led, problems := Build(layout, inv)
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
		}
		if err := led.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

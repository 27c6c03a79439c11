// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

func mustAd(tb testing.TB, text string) *Ad {
	tb.Helper()
	a, err := ParseAd(text, Old)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestAdNamesIgnoreCase(t *testing.T) {
	t.Parallel()
	a := NewAd()
	a.SetInt("RequestMemory", 1)
	a.SetString("REQUESTMEMORY", "x")
	if got := a.Text(Old); got != "RequestMemory = \"x\"\n" {
		t.Errorf("text %q", got)
	}
	if _, ok := a.Lookup("requestmemorY"); !ok {
		t.Error("not found in another case")
	}
	if a.Delete("requestMEMORY") != true || a.Len() != 0 || a.Delete("RequestMemory") {
		t.Error("not deleted, or twice")
	}
}

func TestAdLayers(t *testing.T) {
	t.Parallel()
	machine := mustAd(t, "Cpus = 8\nHalf = Cpus / 2\nSecretOfMachine = 1\nNested = [ n = Cpus ]\n")
	slot := NewAd()
	slot.SetParent(machine)
	slot.SetInt("cpus", 2)
	slot.SetInt("SlotID", 1)

	// What shows through from below is evaluated from above.
	for name, want := range map[string]Value{
		"Half": Int(1), "CPUS": Int(2), "SlotID": Int(1), "Missing": Undefined(),
	} {
		if got := slot.Eval(name, nil); !got.Equal(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := MustParseExpr("MY.Nested.n").Eval(&Env{My: slot}); !got.Equal(Int(2)) {
		t.Errorf("nested ad sees %v", got)
	}
	if got := machine.Eval("Half", nil); !got.Equal(Int(4)) {
		t.Errorf("the layer below is changed: %v", got)
	}
	want := []string{"cpus", "Half", "Nested", "SlotID", "SecretOfMachine"}
	if diff := cmp.Diff(want, slot.Names()); diff != "" {
		t.Error(diff)
	}
	if slot.Len() != 5 || slot.Parent() != machine {
		t.Errorf("%d attributes, parent %p", slot.Len(), slot.Parent())
	}

	// An attribute from below can only be hidden.
	if !slot.Delete("Half") || !slot.Eval("Half", nil).IsUndefined() || slot.Len() != 5 {
		t.Error("attribute of the parent not hidden")
	}
	if !strings.Contains(slot.Text(Old), "Half = undefined\n") {
		t.Errorf("text %q", slot.Text(Old))
	}

	clone := slot.Clone()
	clone.SetInt("Cpus", 1)
	if got := slot.Eval("Cpus", nil); !got.Equal(Int(2)) {
		t.Errorf("changing a clone changed the ad: %v", got)
	}
	if clone.Parent() != machine {
		t.Error("a clone lost its parent")
	}
	clone.SetParent(nil)
	if _, ok := clone.Lookup("SecretOfMachine"); ok {
		t.Error("parent not removed")
	}

	from := mustAd(t, "A = 1\nB = A + 1\n")
	from.SetParent(machine)
	target := mustAd(t, "B = 5\n")
	target.Update(from)
	if got := target.Text(Old); got != "A = 1\nB = A + 1\n" {
		t.Errorf("updated to %q", got)
	}

	defer func() {
		if recover() == nil {
			t.Error("an ad was laid over itself")
		}
	}()
	machine.SetParent(slot)
}

func TestAdEvalKinds(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "I = 7\nR = 2.9\nB = true\nS = \"x\"\nE = error\n")
	if i, ok := a.EvalInt("R", nil); i != 2 || !ok {
		t.Errorf("R as an integer: %d %v", i, ok)
	}
	if i, ok := a.EvalInt("B", nil); i != 1 || !ok {
		t.Errorf("B as an integer: %d %v", i, ok)
	}
	if _, ok := a.EvalInt("S", nil); ok {
		t.Error("S is an integer")
	}
	if f, ok := a.EvalReal("I", nil); f != 7 || !ok {
		t.Errorf("I as a real: %v %v", f, ok)
	}
	if _, ok := a.EvalReal("E", nil); ok {
		t.Error("E is a real")
	}
	if v, ok := a.EvalBool("I", nil); !v || !ok {
		t.Errorf("I as a condition: %v %v", v, ok)
	}
	if _, ok := a.EvalBool("S", nil); ok {
		t.Error("S is a condition")
	}
	if s, ok := a.EvalString("S", nil); s != "x" || !ok {
		t.Errorf("S as a string: %q %v", s, ok)
	}
}

func TestAdSetters(t *testing.T) {
	t.Parallel()
	a := NewAd()
	a.SetReal("R", 1)
	a.SetBool("B", true)
	a.SetValue("T", RelTime(61))
	a.Set("N", nil)
	a.Set("X", MustParseExpr("r + 1"))
	if err := a.SetText("Y", "1 +"); err == nil {
		t.Error("a wrong text was set")
	}
	if err := a.SetText("Z", `"a\b"`); err != nil {
		t.Error(err)
	}
	want := "B = true\nN = undefined\nR = 1.0\nT = relTime(\"01:01\")\nX = r + 1\nZ = \"a\\b\"\n"
	var b bytes.Buffer
	if err := a.WriteOld(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	var all []string
	for name, e := range a.All() {
		all = append(all, name+"="+e.String())
	}
	if diff := cmp.Diff([]string{"B=true", "N=undefined", "R=1.0", `T=relTime("01:01")`, "X=r + 1", `Z="a\b"`}, all); diff != "" {
		t.Error(diff)
	}
}

func TestPrivateAttributes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"ClaimId": true, "claimid": true, "ClaimIds": true, "ClaimIdList": true, "Capability": true,
		"ChildClaimIds": true, "TransferKey": true, "_condor_priv": true, "_Condor_PrivX": true,
		"PublicClaimId": false, "Claim": false, "_condor_pri": false, "": false, "ClaimIdx": false,
	} {
		if IsPrivate(name) != want {
			t.Errorf("IsPrivate(%q) is %v", name, !want)
		}
	}
	a := mustAd(t, "ClaimId = \"s3cret\"\nA = 1\n")
	for what, text := range map[string]string{
		"old": a.Text(Old), "new": a.Text(New), "json": a.JSON(), "xml": a.XML(),
	} {
		if strings.Contains(text, "s3cret") || !strings.Contains(text, "A") {
			t.Errorf("%s: %s", what, text)
		}
	}
	for what, text := range map[string]string{
		"old": a.TextAll(Old), "new": a.TextAll(New), "json": a.JSONAll(), "xml": a.XMLAll(),
	} {
		if !strings.Contains(text, "s3cret") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// An ad given as a value is shared: changes to it show, and do no harm.
func TestAdAsValueMayChange(t *testing.T) {
	t.Parallel()
	inner := mustAd(t, "x = y + 1\nz = 1\n")
	outer := mustAd(t, "y = 4\n")
	outer.SetValue("In", AdValue(inner))
	sel := MustParseExpr("In.x")
	if got := sel.Eval(&Env{My: outer}); !got.Equal(Int(5)) {
		t.Errorf("got %v", got)
	}
	v := outer.Eval("In", nil)
	for i := range 40 {
		inner.SetInt(fmt.Sprintf("a%d", i), 1)
	}
	inner.Delete("z")
	view, ok := v.AsAd()
	if !ok || view.Len() != 41 {
		t.Fatalf("%v %d", ok, view.Len())
	}
	if got := MustParseExpr("size(In)").Eval(&Env{My: outer}); !got.Equal(Int(41)) {
		t.Errorf("size %v", got)
	}
}

// A nested ad that an evaluation yields can be changed by its holder.
func TestNestedAdIsCopiedOnChange(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "In = [ x = 1 ]\n")
	first, _ := a.Eval("In", nil).AsAd()
	first.SetInt("x", 2)
	first.SetInt("y", 3)
	second, _ := a.Eval("In", nil).AsAd()
	if got := second.Text(New); got != "[ x = 1 ]" {
		t.Errorf("the expression changed: %s", got)
	}
	if got := first.Text(New); got != "[ x = 2; y = 3 ]" {
		t.Errorf("the copy is %s", got)
	}
}

func TestAdMarshal(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "A = 1\nB = \"x\"\nC = A + 1\nD = undefined\nL = { 1,[ q = 2 ] }\nR = 1e300\n")
	text, err := json.Marshal(map[string]*Ad{"ad": a})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]*Ad
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !a.Equal(back["ad"]) {
		t.Errorf("%s reads as %s", text, back["ad"].Text(New))
	}
	if err := new(Ad).UnmarshalJSON([]byte(`{"a":}`)); err == nil {
		t.Error("wrong JSON was read")
	}
}

// TestAdAgainstMap holds the table of an ad against a map.
func TestAdAgainstMap(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		a := NewAd()
		model := map[string]int64{}
		var clone *Ad
		var cloned map[string]int64
		for range rapid.IntRange(0, 120).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "A", "b", "Cc", "cC", "ddd"}).Draw(t, "stem") +
				fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "n"))
			key := strings.ToLower(name)
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				_, was := model[key]
				if a.Delete(name) != was {
					t.Fatalf("Delete(%s) is %v", name, !was)
				}
				delete(model, key)
			case 1:
				clone, cloned = a.Clone(), map[string]int64{}
				for k, v := range model {
					cloned[k] = v
				}
			default:
				n := rapid.Int64().Draw(t, "value")
				a.SetInt(name, n)
				model[key] = n
			}
		}
		compare := func(a *Ad, model map[string]int64) {
			if a.Len() != len(model) {
				t.Fatalf("%d attributes, want %d", a.Len(), len(model))
			}
			for k, v := range model {
				if got, ok := a.Eval(strings.ToUpper(k), nil).AsInt(); !ok || got != v {
					t.Fatalf("%s is %v %v, want %d", k, got, ok, v)
				}
			}
			if !slices.IsSortedFunc(a.Names(), canonicalLess) {
				t.Fatalf("names %v", a.Names())
			}
		}
		compare(a, model)
		if clone != nil {
			compare(clone, cloned)
		}
	})
}

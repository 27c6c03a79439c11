// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"testing"
)

func TestValueAccessors(t *testing.T) {
	t.Parallel()
	ad := NewAd()
	tests := []struct {
		v      Value
		kind   Kind
		isTrue bool
		number float64
		isNum  bool
		text   string
		old    string
	}{
		{v: Value{}, kind: KindUndefined, text: "undefined"},
		{v: Undefined(), kind: KindUndefined, text: "undefined"},
		{v: ErrorValue(), kind: KindError, text: "error"},
		{v: Bool(true), kind: KindBoolean, isTrue: true, number: 1, isNum: true, text: "true"},
		{v: Bool(false), kind: KindBoolean, isNum: true, text: "false"},
		{v: Int(-7), kind: KindInteger, isTrue: true, number: -7, isNum: true, text: "-7"},
		{v: Int(0), kind: KindInteger, isNum: true, text: "0"},
		{v: Real(2.5), kind: KindReal, isTrue: true, number: 2.5, isNum: true, text: "2.500000000000000E+00", old: "2.5"},
		{v: Real(math.Copysign(0, -1)), kind: KindReal, number: math.Copysign(0, -1), isNum: true, text: "-0.0"},
		{v: String(""), kind: KindString, text: `""`},
		{v: String("a\"\n"), kind: KindString, text: `"a\"\n"`, old: "\"a\\\"\n\""},
		{v: List(Literal(Int(1)), MustParseExpr("x + 1")), kind: KindList, text: "{ 1,x + 1 }"},
		{v: AdValue(ad), kind: KindAd, text: "[  ]"},
		{v: AdValue(nil), kind: KindUndefined, text: "undefined"},
		{v: AbsTime(1709210096, 3600), kind: KindAbsTime, text: `absTime("2024-02-29T13:34:56+01:00")`},
		{v: RelTime(93784), kind: KindRelTime, text: `relTime("1+02:03:04")`},
	}
	for _, c := range tests {
		if c.old == "" {
			c.old = c.text
		}
		f, isNum := c.v.AsNumber()
		if c.v.Kind() != c.kind || c.v.IsTrue() != c.isTrue || f != c.number || isNum != c.isNum ||
			c.v.String() != c.text || c.v.Text(Old) != c.old {
			t.Errorf("%s: kind %v, true %v, number %v %v, text %s, old %s",
				c.text, c.v.Kind(), c.v.IsTrue(), f, isNum, c.v, c.v.Text(Old))
		}
		_, isBool := c.v.AsBool()
		_, isInt := c.v.AsInt()
		_, isReal := c.v.AsReal()
		_, isString := c.v.AsString()
		_, isList := c.v.AsList()
		_, isAd := c.v.AsAd()
		_, _, isAbs := c.v.AsAbsTime()
		_, isRel := c.v.AsRelTime()
		for kind, is := range map[Kind]bool{
			KindBoolean: isBool, KindInteger: isInt, KindReal: isReal, KindString: isString, KindList: isList,
			KindAd: isAd, KindAbsTime: isAbs, KindRelTime: isRel, KindUndefined: c.v.IsUndefined(), KindError: c.v.IsError(),
		} {
			if is != (kind == c.kind) {
				t.Errorf("%s: taken for %v: %v", c.text, kind, is)
			}
		}
		for _, d := range tests {
			if want := c.text == d.text; c.v.Equal(d.v) != want {
				t.Errorf("%s equals %s: want %v", c.text, d.text, want)
			}
		}
	}
	if got := Kind(200).String(); got != "unknown" {
		t.Errorf("kind 200 is %q", got)
	}
}

// Elements of a list keep the scope the list was written in.
func TestListElementsKeepScope(t *testing.T) {
	t.Parallel()
	ad, err := ParseAd("X = 4\nL = { X, X * 2 }\n", Old)
	if err != nil {
		t.Fatal(err)
	}
	elems, ok := ad.Eval("L", nil).AsList()
	if !ok || len(elems) != 2 {
		t.Fatalf("got %v %v", elems, ok)
	}
	if got := elems[1].Eval(nil); !got.Equal(Int(8)) {
		t.Errorf("element evaluates to %v", got)
	}
	other := NewAd()
	other.SetInt("X", 100)
	other.SetValue("M", List(elems[1]))
	if got := MustParseExpr("M[0]").Eval(&Env{My: other}); !got.Equal(Int(8)) {
		t.Errorf("element in another list evaluates to %v", got)
	}
	other.Set("E", elems[0])
	if got := other.Eval("E", nil); !got.Equal(Int(4)) {
		t.Errorf("element as an attribute evaluates to %v", got)
	}
}

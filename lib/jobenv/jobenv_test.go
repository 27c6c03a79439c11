// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobenv

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

// The submit command "arguments" and what the job attribute then holds.
var argsTable = []struct {
	text string
	want []string
	v1   bool
	attr string
}{
	{"one two three", []string{"one", "two", "three"}, true, "one two three"},
	{"  wait=8 ", []string{"wait=8"}, true, "wait=8"},
	{`one \"two\" 'three'`, []string{"one", `"two"`, "'three'"}, true, `one "two" 'three'`},
	{`a\b \\" c`, []string{`a\b`, `\"`, "c"}, true, `a\b \" c`},
	{"", nil, true, ""},
	{`"3 simple arguments"`, []string{"3", "simple", "arguments"}, false, "3 simple arguments"},
	{`"one 'two with spaces' 3"`, []string{"one", "two with spaces", "3"}, false, "one two' 'with' 'spaces 3"},
	{`"one ""two"" 'spacey ''quoted'' argument'"`, []string{"one", `"two"`, "spacey 'quoted' argument"}, false,
		`one "two" spacey' '''quoted''' 'argument`},
	{` "it''s" `, []string{"its"}, false, "its"},
	{`"'' x ''"`, []string{"", "x", ""}, false, "'' x ''"},
	{`""`, nil, false, ""},
}

func TestArgsFromSubmit(t *testing.T) {
	t.Parallel()
	for _, tt := range argsTable {
		got, err := ArgsFromSubmit(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if !slices.Equal(got.List, tt.want) || got.V1 != tt.v1 {
			t.Errorf("%q: got %q v1=%v, want %q v1=%v", tt.text, got.List, got.V1, tt.want, tt.v1)
		}
		attr := ArgsToV2(got.List)
		if tt.v1 {
			if attr, err = ArgsToV1(got.List); err != nil {
				t.Errorf("%q: %v", tt.text, err)
			}
		}
		if attr != tt.attr {
			t.Errorf("%q: attribute %q, want %q", tt.text, attr, tt.attr)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	env := func(text string) error { return make(Env).MergeSubmit(text) }
	args := func(text string) error { _, err := ArgsFromSubmit(text); return err }
	for _, tt := range []struct {
		parse  func(string) error
		in     string
		offset int
	}{
		{args, `one "two"`, 4},
		{args, `"one`, 0},
		{args, `  "one" two`, 8},
		{args, `"a 'b c"`, 3},
		{args, ` "a """" 'b c"`, 9},
		{env, `A=1;B`, 4},
		{env, `"A=1 B"`, 5},
		{env, `"=1"`, 1},
		{env, `;A=1; =2`, 6},
		{env, `"A='x"`, 3},
		{env, "\"A=\x00\"", 1},
	} {
		err := tt.parse(tt.in)
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%q: got %v, want a SyntaxError", tt.in, err)
		} else if se.Offset != tt.offset {
			t.Errorf("%q: offset %d, want %d (%v)", tt.in, se.Offset, tt.offset, err)
		}
	}
}

func TestCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, a := range [][]string{{""}, {"a", "b c"}, {"a\tb"}} {
		if got, err := ArgsToV1(a); err == nil {
			t.Errorf("%q written as %q", a, got)
		}
	}
	for _, e := range []Env{{"A": "x;y"}, {"A": "x\ny"}, {" A": "1"}} {
		if got, err := e.V1(0); err == nil {
			t.Errorf("%q written as %q", e, got)
		}
	}
}

func TestEnv(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want Env
		v2   string
	}{
		{`"one=1 two=2 three='quotes have no ''special'' meaning'"`,
			Env{"one": "1", "two": "2", "three": "quotes have no 'special' meaning"},
			`one=1 three=quotes' 'have' 'no' '''special''' 'meaning two=2`},
		{`"TRACE=/tmp/x"`, Env{"TRACE": "/tmp/x"}, "TRACE=/tmp/x"},
		{`"A=""quoted"" B="`, Env{"A": `"quoted"`, "B": ""}, `A="quoted" B=`},
		{`one=1;two=2;three="x y"`, Env{"one": "1", "two": "2", "three": `"x y"`}, `one=1 three="x' 'y" two=2`},
		{"|one=1|two=a;b", Env{"one": "1", "two": "a;b"}, "one=1 two=a;b"},
		{"A=1;A=2", Env{"A": "2"}, "A=2"},
		{"A=b=c; ;B=", Env{"A": "b=c", "B": ""}, "A=b=c B="},
		{"", Env{}, ""},
	} {
		text := tt.text
		got := Env{}
		if err := got.MergeSubmit(text); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
		if got.V2() != tt.v2 {
			t.Errorf("%q: V2 %q, want %q", text, got.V2(), tt.v2)
		}
	}
}

func TestMergeKeepsOnError(t *testing.T) {
	t.Parallel()
	e := Env{"A": "1"}
	if err := e.MergeV2("A=2 B"); err == nil {
		t.Error("no error")
	}
	if err := e.MergeV1("A=2;B", 0); err == nil {
		t.Error("no error")
	}
	if d := cmp.Diff(Env{"A": "1"}, e); d != "" {
		t.Error(d)
	}
	e.MergeList([]string{"B=2", "=C:=C:\\", "nothing", "A=x=y"})
	if d := cmp.Diff([]string{"A=x=y", "B=2"}, e.List()); d != "" {
		t.Error(d)
	}
}

// What is written is read back the same, for any arguments and variables.
// quoted is the inverse of Unquote.
func quoted(v2 string) string { return `"` + strings.ReplaceAll(v2, `"`, `""`) + `"` }

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[ab'"\\ \t\n;=|é$]{0,8}`)
	rapidtest.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(word).Draw(t, "args")
		got, err := ArgsFromV2(ArgsToV2(args))
		if err != nil || !slices.Equal(got, args) {
			t.Fatalf("V2 %q: got %q, %v", ArgsToV2(args), got, err)
		}
		sub, err := ArgsFromSubmit(quoted(ArgsToV2(args)))
		if err != nil || !slices.Equal(sub.List, args) {
			t.Fatalf("submit %q: got %q, %v", quoted(ArgsToV2(args)), sub.List, err)
		}
		if v1, err := ArgsToV1(args); err == nil {
			if got := ArgsFromV1(v1); !slices.Equal(got, args) {
				t.Fatalf("V1 %q: got %q", v1, got)
			}
		}
		env := Env(rapid.MapOf(rapid.StringMatching(`[aB_;#é ']{1,4}`), word).Draw(t, "env"))
		back := Env{}
		if err := back.MergeV2(env.V2()); err != nil || !cmp.Equal(back, env) {
			t.Fatalf("env V2 %q: got %q, %v", env.V2(), back, err)
		}
		if v1, err := env.V1('|'); err == nil {
			back := Env{}
			if err := back.MergeV1(v1, '|'); err != nil || !cmp.Equal(back, env) {
				t.Fatalf("env V1 %q: got %q, want %q, %v", v1, back, env, err)
			}
		}
	})
}

func FuzzArgs(f *testing.F) {
	for _, tt := range argsTable {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := ArgsFromSubmit(text); err == nil {
			b, err := ArgsFromV2(ArgsToV2(a.List))
			if err != nil || !slices.Equal(a.List, b) {
				t.Errorf("%q: %q came back as %q, %v", text, a.List, b, err)
			}
		}
	})
}

func FuzzEnv(f *testing.F) {
	f.Add("A=1;B=2")
	f.Add(`"A=1 B='x y'"`)
	f.Add("|a=b|c=")
	f.Fuzz(func(t *testing.T, text string) {
		e := Env{}
		if e.MergeSubmit(text) != nil {
			return
		}
		back := Env{}
		if err := back.MergeV2(e.V2()); err != nil || !cmp.Equal(e, back) {
			t.Errorf("%q: %q came back as %q, %v", text, e, back, err)
		}
	})
}

func BenchmarkArgs(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ArgsFromSubmit(`"-n 40 'an argument' --flag=value"`); err != nil {
			b.Fatal(err)
		}
	}
}

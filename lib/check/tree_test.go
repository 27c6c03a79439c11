// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// shape prints a tree with every operator in parentheses.
func (n *node) shape() string {
	parts := make([]string, len(n.args))
	for i, a := range n.args {
		parts[i] = a.shape()
	}
	inside := strings.Join(parts, " ")
	switch n.op {
	case opAttr:
		if n.scope != "" {
			return n.scope + "." + n.name
		}
		return n.name
	case opLiteral:
		return n.text
	case opTernary:
		return "(? " + inside + ")"
	case opOther:
		return "(. " + inside + ")"
	}
	return "(" + n.name + " " + inside + ")"
}

var trees = []struct{ text, want string }{
	{`a && b || c`, `(|| (&& a b) c)`},
	{`a || b && !c`, `(|| a (&& b (! c)))`},
	{`MY.a < 5 * -b + 1`, `(< MY.a (+ (* 5 (- b)) 1))`},
	{`(a || b) && TARGET.c`, `(&& (|| a b) TARGET.c)`},
	{`a isnt undefined ? f(b, "x\"y") : 2.5`, `(? (=!= a undefined) (f b "x\"y") 2.5)`},
	{`a is 1`, `(=?= a 1)`},
	{`a ?: b`, `(?: a b)`},
	{`{1, a}[0].x`, `(. (. (. 1 a) 0))`},
	{`Owner == "coltrane" * 10`, `(== Owner (* "coltrane" 10))`},
	{`1.0e10 * 'odd name'`, `(* 10000000000.0 odd name)`},
}

// TestTree reads the structure of expressions.
func TestTree(t *testing.T) {
	t.Parallel()
	for _, tt := range trees {
		e, err := classad.ParseExpr(tt.text, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		n := treeOf(e)
		if n == nil {
			t.Errorf("%s has no tree", tt.text)
		} else if got := n.shape(); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.text, got, tt.want)
		}
	}
}

// TestVarying: every function that gives another value in another world is one of
// varying, and each of those is a function.
func TestVarying(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../classad/call.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(source), "var functions = ")
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z0-9_]+)": fn`).FindAllStringSubmatch(table, -1) {
		names[m[1]] = true
	}
	if len(names) < 80 {
		t.Fatalf("only %d functions were found", len(names))
	}
	worlds := [2]classad.Env{}
	for i, zone := range []*time.Location{time.UTC, time.FixedZone("X", 19800)} {
		turn := strconv.Itoa(i)
		worlds[i] = classad.Env{My: classad.NewAd(), Now: time.Unix(1_780_000_000+int64(i)*90061, 0), Location: zone,
			Rand: func() float64 { return 0.25 + float64(i)/2 }, HomeDir: func(string) (string, bool) { return "/home" + turn, true },
			UserMap: func(string, string) (string, bool) { return turn, true }}
		worlds[i].My.SetInt("A", int64(i))
	}
	for _, v := range varying {
		if !names[v] {
			t.Errorf("%s is no function", v)
		}
	}
	args := []string{"", "5", "1000000", `"a"`, `"A"`, `"2026-03-02T08:00:00"`, `"a", "b"`, `1000000, "%H %Z"`, `absTime("2026-03-02T08:00:00+01:00")`, `{"A"}`, "true", "5, 6"}
	for name := range names {
		for _, a := range args {
			e, err := classad.ParseExpr(name+"("+a+")", classad.New)
			if err != nil {
				continue // a time that is none is refused where it is written
			}
			if one, two := e.Eval(&worlds[0]).Text(classad.New), e.Eval(&worlds[1]).Text(classad.New); one != two && !slices.Contains(varying[:], name) {
				t.Errorf("%s is %s here and %s there", e, one, two)
			}
		}
	}
}

// TestOutcome tells what expressions may come to.
func TestOutcome(t *testing.T) {
	t.Parallel()
	defs := map[string]*node{"start": parse1(t, `State != "Owner" && KeyboardIdle > 5`), "loop": parse1(t, "Loop")}
	for _, tt := range []struct {
		text string
		job  bool
		want outcome
	}{
		{"KeyboardIdle > 60", false, boolean},
		{"ConsoleIdle > 60", false, boolean | isUndefined},
		{"START =?= False", false, boolean},
		{"START", true, boolean},
		{"KeyboardIdle > 60 && 1 > 2", true, isFalse},
		{"1 > 2 && KeyboardIdle > 60", true, isFalse},
		{"TARGET.Anything && False", false, isFalse},
		{"TARGET.RequestCpus < 4", false, isUndefined},
		{"TARGET.RequestCpus < 4", true, boolean | isUndefined},
		{"MY.RequestCpus < 4", true, isUndefined},
		{"NobodyKnows =?= True", true, boolean},
		{"NobodyKnows =?= True || KeyboardIdle > 3", false, boolean},
		{"isUndefined(ConsoleIdle) || ConsoleIdle > 60", false, boolean | isUndefined},
		{`ifThenElse(KeyboardIdle > 60, "a", 5)`, true, isString | isNumber},
		{"time() - EnteredCurrentActivity", true, isNumber},
		{`State + 1`, true, isError},
		{"undefined", true, isUndefined},
		{"JobStart ?: 5", false, isNumber},
		{"Loop", true, anything},
		{"eval(\"1\")", true, anything},
	} {
		m := meaning{names: known(), defs: defs, job: tt.job}
		if got := m.outcome(parse1(t, tt.text)); got != tt.want {
			t.Errorf("%s (job %v) is %07b, want %07b", tt.text, tt.job, got, tt.want)
		}
	}
}

func parse1(t *testing.T, text string) *node {
	t.Helper()
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	n := treeOf(e)
	if n == nil {
		t.Fatalf("%s has no tree", text)
	}
	return n
}

// FuzzTree reads every expression without a panic, and what it says about
// values holds: an expression without attributes comes to what is foretold.
func FuzzTree(f *testing.F) {
	for _, tt := range trees {
		f.Add(tt.text)
	}
	f.Add("(1 > 2) && error || \"x\" * 3")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			return
		}
		n := treeOf(e)
		if n == nil {
			return
		}
		m := meaning{names: known(), job: true}
		o := m.outcome(n)
		if v, ok := e.TryEval(nil); ok && n.isConstant() && !outcomeOf(v).only(o) {
			t.Errorf("%s is %v, foretold %07b", text, v, o)
		}
	})
}

// FuzzUses reads every file without a panic.
func FuzzUses(f *testing.F) {
	f.Add("use POLICY : Want_Hold_If(A, 5, it, is too hot), Desktop\n")
	f.Add("X @=end\nuse a:b(\n@end\nuse ROLE:Personal((,)),\\\n b\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, u := range usesIn("f", text) {
			if u.name == "" || u.line < 1 {
				t.Errorf("%+v", u)
			}
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// vector is one line of testdata/classad.jsonl: what HTCondor answered.
type vector struct {
	ID, Group string
	My        *string
	MyB64     *string `json:"my_b64"`
	Target    *string
	Expr      string
	ExprB64   *string `json:"expr_b64"`
	Syntax    string
	Type      string
	Value     string
	ValueOld  *string `json:"value_old"`
	ValueOldB *string `json:"value_old_b64"`
	TZ        string
	Config    string
	UB        bool
	raw       json.RawMessage
}

func (v *vector) dialect() Dialect {
	if v.Syntax == "new" {
		return New
	}
	return Old
}

// readLines decodes a JSON-lines file, keeping the raw lines.
func readLines[T any](t testing.TB, file string, keep func(*T, json.RawMessage)) []T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<22)
	for sc.Scan() {
		var x T
		if err := json.Unmarshal(sc.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if keep != nil {
			keep(&x, slices.Clone(sc.Bytes()))
		}
		all = append(all, x)
	}
	if err := sc.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", file, len(all), err)
	}
	return all
}

func vectors(t testing.TB) []vector {
	return readLines(t, "testdata/classad.jsonl", func(v *vector, raw json.RawMessage) { v.raw = raw })
}

// complete lists the groups of which every vector passes: one that fails in
// them fails the test. Groups not listed are run as well, and their failures
// are counted and logged.
var complete = map[string]bool{
	"adtext": true, "bits": true, "bits.ub": true, "cycle.match": true, "names": true, "select": true,
	"string.cmp": true, "logic3": true, "ternary": true, "precedence": true, "scope.nomatch": true,
	"lex.old": true, "lex.new": true,
}

// checkVector returns what is wrong with the answer to one vector, "" if
// nothing.
func checkVector(t *testing.T, v *vector) string {
	t.Helper()
	switch v.Group {
	case "unparse", "refs", "flatten", "roundtrip":
		return "no check for this shape"
	}
	return checkEval(t, v)
}

func mustBase64(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkEval(t *testing.T, v *vector) string {
	t.Helper()
	expr, my := v.Expr, v.My
	if v.ExprB64 != nil {
		expr = mustBase64(t, *v.ExprB64)
	}
	if v.MyB64 != nil {
		s := mustBase64(t, *v.MyB64)
		my = &s
	}
	gotType, got, gotOld := evalVector(t, v, expr, my)
	if gotType != v.Type || got != v.Value {
		return "got " + gotType + " " + got + ", want " + v.Type + " " + v.Value
	}
	wantOld := v.Value
	if v.ValueOld != nil {
		wantOld = *v.ValueOld
	}
	if v.ValueOldB != nil {
		wantOld = mustBase64(t, *v.ValueOldB)
	}
	if gotOld != wantOld {
		return "old syntax: got " + gotOld + ", want " + wantOld
	}
	return ""
}

func evalVector(t *testing.T, v *vector, expr string, my *string) (kind, value, valueOld string) {
	t.Helper()
	env := Env{Now: time.Unix(1700000000, 0), Rand: func() float64 { return 0.5 }}
	if v.TZ != "" {
		loc, err := time.LoadLocation(v.TZ)
		if err != nil {
			t.Fatal(err)
		}
		env.Location = loc
	}
	env.My = NewAd()
	if my != nil {
		a, err := ParseAd(*my, Old)
		if err != nil {
			return "badad", "", ""
		}
		env.My = a
	}
	if v.Target != nil {
		a, err := ParseAd(*v.Target, Old)
		if err != nil {
			return "badad", "", ""
		}
		env.Target = a
	}
	e, err := ParseExpr(expr, v.dialect())
	if err != nil {
		return "parseerror", "", ""
	}
	val, ok := e.TryEval(&env)
	if !ok {
		return "evalfail", "", ""
	}
	return val.Kind().String(), val.Text(New), val.Text(Old)
}

func TestGolden(t *testing.T) {
	t.Parallel()
	type tally struct{ run, failed int }
	groups := map[string]*tally{}
	for _, v := range vectors(t) {
		g := groups[v.Group]
		if g == nil {
			g = &tally{}
			groups[v.Group] = g
		}
		g.run++
		msg := checkVector(t, &v)
		if msg == "" {
			continue
		}
		g.failed++
		if complete[v.Group] && !v.UB {
			t.Errorf("%s: %s\n\t%s", v.ID, v.Expr, msg)
		} else if show := os.Getenv("CLASSAD_GROUP"); show != "" && strings.HasPrefix(v.Group, show) {
			t.Logf("%s: %s\n\t%s", v.ID, v.Expr, msg)
		}
	}
	for name := range complete {
		if groups[name] == nil {
			t.Errorf("group %s is listed as complete and has no vectors", name)
		}
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		g := groups[name]
		switch {
		case g.failed > 0:
			t.Logf("%s: %d of %d fail", name, g.failed, g.run)
		case !complete[name]:
			t.Logf("%s: all %d pass: list it as complete", name, g.run)
		}
	}
}

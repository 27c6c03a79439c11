// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	"adtext": true, "binop": true, "binop.word": true, "bits": true, "bits.ub": true, "cycle": true,
	"cycle.match": true, "deep": true, "elvis": true, "flatten": true, "fn.absTime": true, "fn.allCompare": true,
	"fn.anyCompare": true, "fn.argsToList": true, "fn.avg": true, "fn.bool": true, "fn.ceil": true,
	"fn.ceiling": true, "fn.compose": true, "fn.countMatches": true, "fn.envV1ToV2": true, "fn.eval": true,
	"fn.evalInEachContext": true, "fn.floor": true, "fn.formatTime": true, "fn.getDayOfMonth": true,
	"fn.getDayOfWeek": true, "fn.getDayOfYear": true, "fn.getDays": true, "fn.getHours": true,
	"fn.getMinutes": true, "fn.getMonth": true, "fn.getSeconds": true, "fn.getYear": true,
	"fn.identicalMember": true, "fn.ifThenElse": true, "fn.int": true, "fn.interval": true, "fn.isAbsTime": true,
	"fn.isBoolean": true, "fn.isClassad": true, "fn.isError": true, "fn.isInteger": true, "fn.isList": true,
	"fn.isReal": true, "fn.isRelTime": true, "fn.isString": true, "fn.isUndefined": true, "fn.join": true,
	"fn.listToArgs": true, "fn.max": true, "fn.member": true, "fn.mergeEnvironment": true, "fn.min": true,
	"fn.name": true, "fn.pow": true, "fn.quantize": true, "fn.real": true, "fn.regexp": true,
	"fn.regexpMember": true, "fn.regexps": true, "fn.relTime": true, "fn.replace": true, "fn.replaceAll": true,
	"fn.round": true, "fn.size": true, "fn.split": true, "fn.splitSlotName": true, "fn.splitTime": true,
	"fn.splitUserName": true, "fn.strcat": true, "fn.strcmp": true, "fn.stricmp": true, "fn.string": true,
	"fn.stringListAvg": true, "fn.stringListIMember": true, "fn.stringListISubsetMatch": true,
	"fn.stringListMax": true, "fn.stringListMember": true, "fn.stringListMin": true, "fn.stringListSize": true,
	"fn.stringListSubsetMatch": true, "fn.stringListSum": true, "fn.stringList_regexpMember": true,
	"fn.stringListsIntersect": true, "fn.substr": true, "fn.sum": true, "fn.toLower": true, "fn.toUpper": true,
	"fn.unparse": true, "fn.unresolved": true, "fn.userHome": true, "fn.userMap": true, "fn.versionEQ": true,
	"fn.versionGE": true, "fn.versionGT": true, "fn.versionLE": true, "fn.versionLT": true,
	"fn.version_in_range": true, "fn.versioncmp": true, "lex.new": true, "lex.old": true, "logic3": true,
	"names": true, "numeric": true, "numeric.bool": true, "policy": true, "precedence": true, "quirk": true,
	"real": true, "refs": true, "roundtrip": true, "scope": true, "scope.nomatch": true, "select": true,
	"string.cmp": true, "subscript": true, "ternary": true, "times": true, "truthy": true, "tz": true,
	"unary": true, "unparse": true,
}

// divergent lists the vectors that are answered differently on purpose, with
// the reason. One that is answered the same after all fails the test.
var divergent = map[string]string{
	"subscript-2851213bc7": "the original reads memory it has freed: the ad that a subscript by name yields dies before its attribute is evaluated",
}

// checkVector returns what is wrong with the answer to one vector, "" if
// nothing.
func checkVector(t *testing.T, v *vector) string {
	t.Helper()
	switch v.Group {
	case "unparse":
		return checkUnparse(t, v)
	case "refs":
		return checkRefs(t, v)
	case "flatten":
		return checkFlatten(t, v)
	case "roundtrip":
		return checkRoundtrip(t, v)
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
	if v.Config != "" {
		env.UserMap = userMaps(t, v.Config).Lookup
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

func checkUnparse(t *testing.T, v *vector) string {
	t.Helper()
	var want struct {
		New  string  `json:"canonical_new"`
		Old  string  `json:"canonical_old"`
		NewB *string `json:"canonical_new_b64"`
		OldB *string `json:"canonical_old_b64"`
	}
	if err := json.Unmarshal(v.raw, &want); err != nil {
		t.Fatal(err)
	}
	expr := v.Expr
	if v.ExprB64 != nil {
		expr = mustBase64(t, *v.ExprB64)
	}
	if want.NewB != nil {
		want.New = mustBase64(t, *want.NewB)
	}
	if want.OldB != nil {
		want.Old = mustBase64(t, *want.OldB)
	}
	e, err := ParseExpr(expr, v.dialect())
	if err != nil {
		if v.Type == "parseerror" {
			return ""
		}
		return err.Error()
	}
	if got := e.Text(New); got != want.New || v.Type == "parseerror" {
		return "new: got " + got + ", want " + want.New + v.Type
	}
	if got := e.Text(Old); got != want.Old {
		return "old: got " + got + ", want " + want.Old
	}
	return ""
}

func checkRefs(t *testing.T, v *vector) string {
	t.Helper()
	var want struct {
		OK                 bool
		Internal, External []string
		ExternalFull       []string `json:"external_full"`
	}
	if err := json.Unmarshal(v.raw, &want); err != nil {
		t.Fatal(err)
	}
	ad := NewAd()
	if v.My != nil {
		a, err := ParseAd(*v.My, Old)
		if err != nil {
			return err.Error()
		}
		ad = a
	}
	e, err := ParseExpr(v.Expr, v.dialect())
	if err != nil {
		return err.Error()
	}
	r, ok := e.Refs(ad)
	if ok != want.OK {
		return fmt.Sprintf("ok is %v", ok)
	}
	if !slices.Equal(r.Internal, want.Internal) || !slices.Equal(r.External, want.External) ||
		!slices.Equal(r.ExternalFull, want.ExternalFull) {
		return fmt.Sprintf("got %+v, want %+v", r, want)
	}
	return ""
}

// userMaps reads the configuration of the vectors of userMap().
func userMaps(t *testing.T, config string) UserMaps {
	t.Helper()
	maps := UserMaps{}
	kinds := map[string]MapKind{}
	var name, text string
	for line := range strings.Lines(config) {
		line = strings.TrimRight(line, "\n")
		key, _, _ := strings.Cut(line, " ")
		switch {
		case name != "" && line == "@end":
			m, problems := ParseUserMap(text, kinds[name])
			if want := strings.Count(text, "* empty"); len(problems) != want {
				t.Errorf("map %s: %v, want %d problems", name, problems, want)
			}
			maps[name], name, text = m, "", ""
		case name != "":
			text += line + "\n"
		case strings.HasPrefix(key, "CLASSAD_USER_MAP_PREFIX_"):
			kinds[strings.TrimPrefix(key, "CLASSAD_USER_MAP_PREFIX_")] = MapPrefix
		case strings.HasPrefix(key, "CLASSAD_USER_MAPDATA_"):
			name = strings.TrimPrefix(key, "CLASSAD_USER_MAPDATA_")
		}
	}
	if len(maps) == 0 {
		t.Fatal("no maps")
	}
	return maps
}

func checkFlatten(t *testing.T, v *vector) string {
	t.Helper()
	type result struct{ Type, Value string }
	var want struct{ Flatten, Inline result }
	if err := json.Unmarshal(v.raw, &want); err != nil {
		t.Fatal(err)
	}
	ad, err := ParseAd(*v.My, Old)
	if err != nil {
		return err.Error()
	}
	e, err := ParseExpr(v.Expr, v.dialect())
	if err != nil {
		return err.Error()
	}
	env := &Env{My: ad, Now: time.Unix(1700000000, 0)}
	show := func(rest *Expr, ok bool) result {
		if !ok {
			return result{Type: "evalfail"}
		}
		if val, ok := rest.LiteralValue(); ok {
			return result{val.Kind().String(), val.Text(New)}
		}
		return result{"expr", rest.Text(New)}
	}
	if got := show(e.Flatten(env)); got != want.Flatten {
		return fmt.Sprintf("flatten: got %v, want %v", got, want.Flatten)
	}
	if got := show(e.FlattenInline(env)); got != want.Inline {
		return fmt.Sprintf("inline: got %v, want %v", got, want.Inline)
	}
	return ""
}

func checkRoundtrip(t *testing.T, v *vector) string {
	t.Helper()
	var w struct {
		Old    *string
		New    *string
		JSONIn *string `json:"json_in"`

		CanonicalOld  string  `json:"canonical_old"`
		CanonicalOldB *string `json:"canonical_old_b64"`
		CanonicalAll  *string `json:"canonical_old_all"`
		CanonicalNew  string  `json:"canonical_new"`
		JSON          string  `json:"json"`
		JSONB         *string `json:"json_b64"`
		XML           string  `json:"xml"`
	}
	if err := json.Unmarshal(v.raw, &w); err != nil {
		t.Fatal(err)
	}
	var a *Ad
	var err error
	switch {
	case w.Old != nil:
		a, err = ParseAd(*w.Old, Old)
	case w.New != nil:
		a, err = ParseAd(*w.New, New)
	case w.JSONIn != nil:
		a, err = ParseJSON(*w.JSONIn)
	default:
		t.Fatalf("%s has no input", v.ID)
	}
	if (err != nil) != (v.Type == "badad") {
		return fmt.Sprintf("error %v", err)
	}
	if err != nil {
		return ""
	}
	if w.CanonicalOldB != nil {
		w.CanonicalOld = mustBase64(t, *w.CanonicalOldB)
	}
	if w.JSONB != nil {
		w.JSON = mustBase64(t, *w.JSONB)
	}
	all := w.CanonicalOld
	if w.CanonicalAll != nil {
		all = *w.CanonicalAll
	}
	for _, c := range []struct{ what, got, want string }{
		{"old", a.Text(Old), w.CanonicalOld}, {"all", a.TextAll(Old), all}, {"new", a.TextAll(New), w.CanonicalNew},
		{"json", a.JSONAll(), w.JSON}, {"xml", a.XMLAll(), w.XML},
	} {
		if c.got != c.want {
			return c.what + ": got " + c.got + ", want " + c.want
		}
	}
	return ""
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
		if reason, ok := divergent[v.ID]; ok {
			if msg == "" {
				t.Errorf("%s no longer diverges (%s)", v.ID, reason)
			}
			continue
		}
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/adtext"
	"github.com/execpoint/execpoint/lib/tool/match"
)

// record is one question of a batch. Texts may come in base64 instead.
type record struct {
	ID     *string `json:"id"`
	Group  string  `json:"group"`
	My     *string `json:"my"`
	Target *string `json:"target"`
	Expr   *string `json:"expr"`
	Syntax string  `json:"syntax"`
	TZ     string  `json:"tz"`
	Config string  `json:"config"`
	Old    *string `json:"old"`
	New    *string `json:"new"`
	JSONIn *string `json:"json_in"`

	MyB64     *string `json:"my_b64"`
	TargetB64 *string `json:"target_b64"`
	ExprB64   *string `json:"expr_b64"`
	OldB64    *string `json:"old_b64"`
	NewB64    *string `json:"new_b64"`
	JSONInB64 *string `json:"json_in_b64"`

	Want []string `json:"want"`
}

// The types of answers that are no values.
const (
	typeParseError = "parseerror" // the expression does not parse
	typeBadAd      = "badad"      // the text of an ad does not
	typeEvalFail   = "evalfail"   // the evaluation was given up
	typeExpr       = "expr"       // partial evaluation left an expression
	typeMissing    = "missing"    // the ad has no such attribute
)

// answerer answers the records of one batch. It remembers the user maps of the
// configuration that it saw last.
type answerer struct {
	world  World
	config string
	maps   classad.UserMaps
}

// question is one record, its texts decoded and read as far as was needed.
type question struct {
	rec  *record
	env  classad.Env
	expr string

	hasExpr, hasAd bool
	badAd          bool // the text of my or target
	badExpr        bool

	tree *classad.Expr
	ad   *classad.Ad // of a round trip; nil if its text does not parse

	value     match.Typed
	valueOld  string
	evaluated bool

	refs    classad.Refs
	refsOK  bool
	refsSet bool
}

// answer appends a JSON object with the answers wanted, in that order. An
// answer that has no meaning for the record is left out: the print of what
// does not parse, the references of what has none, the type of what did not
// go wrong where only that is recorded.
func (a *answerer) answer(b []byte, rec *record) ([]byte, error) {
	if rec.ID == nil {
		return b, errors.New("no id")
	}
	if len(rec.Want) == 0 {
		return b, errors.New("no want: the list of answers asked for")
	}
	q, err := a.question(rec)
	if err != nil {
		return b, err
	}
	b = append(b, `{"id":`...)
	b = appendJSONString(b, *rec.ID)
	for i, want := range rec.Want {
		field := strings.TrimSuffix(want, "_b64")
		if slices.ContainsFunc(rec.Want[:i], func(w string) bool { return strings.TrimSuffix(w, "_b64") == field }) {
			return b, fmt.Errorf("want has %q twice", want)
		}
		if b, err = q.appendAnswer(b, field); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// question reads the texts of a record. That one of them does not parse is an
// answer and no error.
func (a *answerer) question(rec *record) (*question, error) {
	q := &question{rec: rec, env: a.world.env()}
	dialect := classad.Old
	switch rec.Syntax {
	case "", adtext.Old:
	case adtext.New:
		dialect = classad.New
	default:
		return nil, fmt.Errorf("syntax is %q, want old or new", rec.Syntax)
	}
	if rec.TZ != "" {
		loc, err := a.world.zone(rec.TZ)
		if err != nil {
			return nil, fmt.Errorf("tz: %w", err)
		}
		q.env.Location = loc
	}
	if rec.Config != "" {
		if err := a.readConfig(rec.Config); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		q.env.UserMap = a.maps.Lookup
	}
	q.env.My = classad.NewAd()
	for _, f := range []struct {
		name       string
		plain, b64 *string
		ad         **classad.Ad
	}{{"my", rec.My, rec.MyB64, &q.env.My}, {"target", rec.Target, rec.TargetB64, &q.env.Target}} {
		text, ok, err := textField(f.name, f.plain, f.b64)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			q.badAd = true
			continue
		}
		*f.ad = ad
	}
	var err error
	if q.expr, q.hasExpr, err = textField("expr", rec.Expr, rec.ExprB64); err != nil {
		return nil, err
	}
	if q.hasExpr {
		if q.tree, err = classad.ParseExpr(q.expr, dialect); err != nil {
			q.badExpr = true
		}
	}
	return q, q.readAd()
}

// readAd reads the ad of a round trip.
func (q *question) readAd() error {
	for _, f := range []struct {
		name       string
		plain, b64 *string
		syntax     string
	}{
		{"old", q.rec.Old, q.rec.OldB64, adtext.Old},
		{"new", q.rec.New, q.rec.NewB64, adtext.New},
		{"json_in", q.rec.JSONIn, q.rec.JSONInB64, adtext.JSON},
	} {
		text, ok, err := textField(f.name, f.plain, f.b64)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if q.hasAd {
			return errors.New("more than one of old, new and json_in")
		}
		q.hasAd = true
		if ad, err := adtext.Parse(text, f.syntax); err == nil {
			q.ad = ad
		}
	}
	return nil
}

// appendAnswer appends one answer.
func (q *question) appendAnswer(b []byte, field string) ([]byte, error) {
	wholeAd := false
	switch field {
	case "type", "canonical_new", "canonical_old":
		wholeAd = q.hasAd
	case "canonical_old_all", "json", "xml":
		wholeAd = true
	case "value", "value_old", "internal", "external", "external_full", "ok", "flatten", "inline":
	default:
		return b, fmt.Errorf("want has %q, which is no answer", field)
	}
	switch {
	case wholeAd && !q.hasAd:
		return b, fmt.Errorf("%s wants an ad: one of old, new and json_in", field)
	case !wholeAd && !q.hasExpr:
		return b, fmt.Errorf("%s wants an expr", field)
	case wholeAd:
		return q.appendAd(b, field), nil
	}
	switch field {
	case "type":
		if kind := q.kind(); kind != "" {
			b = appendField(b, field, kind)
		}
	case "value":
		q.evaluate()
		b = appendField(b, field, q.value.Value)
	case "value_old":
		q.evaluate()
		b = appendField(b, field, q.valueOld)
	case "canonical_new":
		if !q.badExpr {
			b = appendField(b, field, q.tree.Text(classad.New))
		}
	case "canonical_old":
		if !q.badExpr {
			b = appendField(b, field, q.tree.Text(classad.Old))
		}
	case "flatten":
		b = appendTyped(b, field, q.rest((*classad.Expr).Flatten))
	case "inline":
		b = appendTyped(b, field, q.rest((*classad.Expr).FlattenInline))
	default:
		b = q.appendRefs(b, field)
	}
	return b, nil
}

// kind is the type that the recordings have for an expression: that of its
// value, and in the groups without one only what is wrong.
func (q *question) kind() string {
	switch q.rec.Group {
	case "unparse", "refs", "flatten":
		return q.wrong()
	}
	q.evaluate()
	return q.value.Type
}

// wrong is the type of a record with a text that does not parse, else "".
func (q *question) wrong() string {
	switch {
	case q.badAd:
		return typeBadAd
	case q.badExpr:
		return typeParseError
	}
	return ""
}

// evaluate finds the value once, however many answers it gives.
func (q *question) evaluate() {
	if q.evaluated {
		return
	}
	q.evaluated = true
	if q.value.Type = q.wrong(); q.value.Type != "" {
		return
	}
	v, ok := q.tree.TryEval(&q.env)
	if !ok {
		q.value.Type = typeEvalFail
		return
	}
	q.value, q.valueOld = match.TypedOf(v), v.Text(classad.Old)
}

// rest is what partial evaluation against my leaves.
func (q *question) rest(flatten func(*classad.Expr, *classad.Env) (*classad.Expr, bool)) match.Typed {
	if kind := q.wrong(); kind != "" {
		return match.Typed{Type: kind}
	}
	rest, ok := flatten(q.tree, &q.env)
	if !ok {
		return match.Typed{Type: typeEvalFail}
	}
	if v, ok := rest.LiteralValue(); ok {
		return match.TypedOf(v)
	}
	return match.Typed{Type: typeExpr, Value: rest.Text(classad.New)}
}

func (q *question) appendRefs(b []byte, field string) []byte {
	if !q.refsSet {
		q.refsSet = true
		if q.wrong() == "" {
			q.refs, q.refsOK = q.tree.Refs(q.env.My)
		}
	}
	switch {
	case field == "ok":
		return appendBool(b, field, q.refsOK)
	case !q.refsOK:
		return b
	case field == "internal":
		return appendNames(b, field, q.refs.Internal)
	case field == "external":
		return appendNames(b, field, q.refs.External)
	}
	return appendNames(b, field, q.refs.ExternalFull)
}

// appendAd appends an answer about the ad of a round trip.
func (q *question) appendAd(b []byte, field string) []byte {
	if q.ad == nil {
		if field == "type" {
			b = appendField(b, field, typeBadAd)
		}
		return b
	}
	switch field {
	case "canonical_old":
		b = appendField(b, field, q.ad.Text(classad.Old))
	case "canonical_old_all":
		b = appendField(b, field, q.ad.TextAll(classad.Old))
	case "canonical_new":
		b = appendField(b, field, q.ad.TextAll(classad.New))
	case "json":
		b = appendField(b, field, q.ad.JSONAll())
	case "xml":
		b = appendField(b, field, q.ad.XMLAll())
	}
	return b
}

// readConfig takes the tables of userMap() out of a configuration. It reads no
// file and runs no command, whatever the text asks for.
func (a *answerer) readConfig(text string) error {
	if text == a.config {
		return nil
	}
	s, err := config.Parse("<config>", text, config.Options{})
	if err != nil {
		return err
	}
	maps := classad.UserMaps{}
	for _, name := range s.List("TOOL_CLASSAD_USER_MAP_NAMES") {
		table, ok := s.Lookup("CLASSAD_USER_MAPDATA_" + name)
		if !ok {
			return fmt.Errorf("CLASSAD_USER_MAPDATA_%s is not set, and a batch reads no file", name)
		}
		prefix, err := s.Bool("CLASSAD_USER_MAP_PREFIX_" + name)
		if err != nil {
			return err
		}
		kind := classad.MapExact
		if prefix {
			kind = classad.MapPrefix
		}
		// Lines that cannot be used are left out, as HTCondor does.
		maps[name], _ = classad.ParseUserMap(table.Value, kind)
	}
	a.config, a.maps = text, maps
	return nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// set gives the job an attribute, in place of one of that name.
func (b *builder) set(name string, e *classad.Expr) {
	key := strings.ToLower(name)
	if i, ok := b.where[key]; ok {
		b.attrs[i].expr = e
		return
	}
	b.where[key] = len(b.attrs)
	b.attrs = append(b.attrs, attr{name, e})
}

func (b *builder) has(name string) bool {
	_, ok := b.where[strings.ToLower(name)]
	return ok
}

// expr returns the attribute's expression, nil when the job has none so far.
func (b *builder) expr(name string) *classad.Expr {
	if i, ok := b.where[strings.ToLower(name)]; ok {
		return b.attrs[i].expr
	}
	return nil
}

// Equal texts share one expression, so that jobs share what they have in
// common and nothing is parsed twice.
const maxShared = 20000

func (d *Description) share(key string, make func() (*classad.Expr, error)) (*classad.Expr, error) {
	if e := d.exprs[key]; e != nil {
		return e, nil
	}
	e, err := make()
	if err != nil {
		return nil, err
	}
	if len(d.exprs) >= maxShared {
		clear(d.exprs)
	}
	d.exprs[key] = e
	return e, nil
}

// setExpr gives the job an attribute with an expression written by the user.
// A mistake is one of the command looked at last.
func (b *builder) setExpr(name, text string) {
	e, err := b.parsed(text)
	if err != nil {
		b.bad(errorOffset(err), Problem{Value: text, Message: "this is no expression: " + err.Error(), Want: "a ClassAd expression (text stands in double quotes)"})
		return
	}
	b.set(name, e)
}

// parsed is the expression that a text is.
func (b *builder) parsed(text string) (*classad.Expr, error) {
	return b.d.share("="+text, func() (*classad.Expr, error) { return classad.ParseExpr(text, classad.Old) })
}

// errorOffset is how many bytes into a text that does not parse the mistake is.
func errorOffset(err error) int {
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		return syntax.Offset
	}
	return 0
}

// setOwn is setExpr for an expression of this program's or the
// configuration's; about says which.
func (b *builder) setOwn(name, text, about string) {
	e, err := b.parsed(text)
	if err != nil {
		b.fail(Problem{File: b.d.name, Line: 1, Column: 1, Value: text, Message: about + " is no expression: " + err.Error(), Kind: errs.Invalid})
		return
	}
	b.set(name, e)
}

func (b *builder) setValue(name, key string, v classad.Value) {
	e, err := b.d.share(key, func() (*classad.Expr, error) { return classad.Literal(v), nil })
	if err == nil {
		b.set(name, e)
	}
}

func (b *builder) setString(name, s string) { b.setValue(name, "s"+s, classad.String(s)) }

func (b *builder) setInt(name string, i int64) {
	b.setValue(name, "i"+strconv.FormatInt(i, 10), classad.Int(i))
}

func (b *builder) setBool(name string, v bool) {
	if v {
		b.setValue(name, "true", classad.Bool(true))
	} else {
		b.setValue(name, "false", classad.Bool(false))
	}
}

func (b *builder) setReal(name string, f float64) {
	b.setValue(name, "r"+strconv.FormatFloat(f, 'g', -1, 64), classad.Real(f))
}

// boolean reads a command that is true or false; def when it is not there.
func (b *builder) boolean(def bool, names ...string) bool {
	text, ok := b.get(names...)
	if !ok {
		return def
	}
	v, ok := parseBool(text)
	if !ok {
		e, err := classad.ParseExpr(text, classad.Old)
		if err == nil {
			v, ok = e.Eval(nil).AsBool()
			if f, isNumber := e.Eval(nil).AsNumber(); !ok && isNumber {
				v, ok = f != 0, true
			}
		}
		if !ok {
			b.bad(0, Problem{Value: text, Message: "this is neither true nor false", Want: "true or false"})
			return def
		}
	}
	return v
}

// integer reads a command that is an integer; ok is false when it is not there
// or wrong.
func (b *builder) integer(names ...string) (int64, bool) {
	text, ok := b.get(names...)
	if !ok {
		return 0, false
	}
	n, ok := evalInt(text)
	if !ok {
		b.bad(0, Problem{Value: text, Message: "this is no integer", Want: "an integer"})
	}
	return n, ok
}

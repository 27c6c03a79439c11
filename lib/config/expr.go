// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/execpoint/execpoint/lib/classad"

// Expr is the value of a knob that stays an expression, because each job, slot or
// peer gives it another value. It keeps the text it was written as, which is how it
// is sent to another process. A text that is no expression is always error.
type Expr struct {
	*classad.Expr
	text string
}

// NewExpr returns the expression that text is.
func NewExpr(text string) *Expr {
	x := &Expr{text: text}
	var err error
	if x.Expr, err = parseExpr(text); err != nil {
		x.Expr = classad.Literal(classad.ErrorValue())
	}
	return x
}

// String is the text as it was written.
func (x *Expr) String() string { return x.text }

// MarshalText returns the text as it was written.
func (x *Expr) MarshalText() ([]byte, error) { return []byte(x.text), nil }

// UnmarshalText reads what MarshalText wrote.
func (x *Expr) UnmarshalText(text []byte) error {
	*x = *NewExpr(string(text))
	return nil
}

// IsTrue evaluates the knob as one that is true or false: as in Bool a number counts
// too. said is false where it comes down to neither.
func (x *Expr) IsTrue(env *classad.Env) (yes, said bool) {
	n, said := x.Eval(env).AsNumber()
	return said && n != 0, said
}

// Expression returns the value of a knob that stays an expression, with its text; nil
// when it has none. One that is set to nothing has its default.
func (s *Snapshot) Expression(name string) (*Expr, error) {
	text, _, err := s.setValue(name)
	if err != nil || text == "" {
		return nil, err
	}
	return NewExpr(text), nil
}

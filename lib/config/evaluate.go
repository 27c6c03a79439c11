// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/execpoint/execpoint/lib/classad"
)

// evaluate computes text as an expression that refers to no ad. It returns
// false when the text is no expression.
func evaluate(text string) (classad.Value, bool) {
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return classad.Undefined(), false
	}
	return e.Eval(nil), true
}

// evalInt reads a decimal integer or evaluates an expression that comes down
// to a number or a boolean; fractions are cut.
func evalInt(text string) (int64, bool) {
	if n, err := strconv.ParseInt(trim(text), 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return n, true // a number too large counts as the largest there is
	}
	v, ok := evaluate(text)
	if !ok {
		return 0, false
	}
	if n, ok := v.AsInt(); ok {
		return n, true
	}
	f, ok := v.AsNumber()
	if !ok || !(math.Abs(f) < math.MaxInt64) {
		return 0, false
	}
	return int64(f), true
}

// evalReal reads a decimal number or evaluates an expression that comes down
// to a number or a boolean.
func evalReal(text string) (float64, bool) {
	if f, ok := conditionNumber(trim(text)); ok {
		return f, true
	}
	v, ok := evaluate(text)
	if !ok {
		return 0, false
	}
	return v.AsNumber()
}

// evalBool reads true, false, 1 or 0, or evaluates an expression that comes
// down to a boolean or a number.
func evalBool(text string) (value, ok bool) {
	switch s := trim(text); {
	case equalFold(s, "true") || s == "1":
		return true, true
	case equalFold(s, "false") || s == "0":
		return false, true
	}
	v, ok := evaluate(text)
	if !ok {
		return false, false
	}
	f, ok := v.AsNumber()
	return f != 0, ok
}

// evalString evaluates an expression that comes down to a string.
func evalString(text string) (string, bool) {
	v, ok := evaluate(text)
	if !ok {
		return "", false
	}
	return v.AsString()
}

// evalText evaluates an expression and returns its value as text: a string
// without quotes, anything else in the new syntax. What is no expression comes
// back as it is if it was made by expanding, and as nothing if not.
func evalText(text string, expanded bool) string {
	v, ok := evaluate(text)
	switch {
	case ok:
		if s, ok := v.AsString(); ok {
			return s
		}
		return v.Text(classad.New)
	case expanded:
		return text
	}
	return ""
}

// Expr returns the value of name as an expression, nil when name is not set or
// set to nothing.
func (s *Snapshot) Expr(name string) (*classad.Expr, error) {
	text, e, err := s.value(name)
	if err != nil || trim(text) == "" {
		return nil, err
	}
	expr, err := parseExpr(text)
	if err != nil {
		return nil, s.bad(name, e, text, err.Error(), "a ClassAd expression")
	}
	return expr, nil
}

func parseExpr(text string) (*classad.Expr, error) {
	expr, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return nil, fmt.Errorf("is not an expression: %w", err)
	}
	return expr, nil
}

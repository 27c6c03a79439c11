// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext

import (
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/classad"
)

// Mistake is what is wrong in a file or an argument.
type Mistake struct {
	Name string // the file, or what else the text came from
	Err  error
}

// Error begins with the name; of a text that does not parse the line and the column
// follow.
func (e *Mistake) Error() string {
	var syntax *classad.SyntaxError
	if errors.As(e.Err, &syntax) {
		return e.Name + ":" + e.Err.Error()
	}
	return e.Name + ": " + e.Err.Error()
}

// Unwrap is what is wrong, without the name.
func (e *Mistake) Unwrap() error { return e.Err }

// PrintMistake prints where a mistake is, what it is, and the line with a
// caret below the place.
func PrintMistake(w io.Writer, who string, err error) {
	fmt.Fprintf(w, "%s: %v\n", who, err)
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Fprintln(w, syntax.Caret())
	}
}

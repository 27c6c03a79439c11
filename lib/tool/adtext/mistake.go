// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/words"
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
// caret below the place. What a terminal would obey is a question mark in that line, so
// that the caret stands right.
func PrintMistake(w io.Writer, who string, err error) {
	fmt.Fprintf(w, "%s: %s\n", who, words.Lines(err.Error()))
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Fprintln(w, strings.Map(func(r rune) rune {
			if r == '\n' || r == '\t' || strconv.IsPrint(r) {
				return r
			}
			return '?'
		}, syntax.Caret()))
	}
}

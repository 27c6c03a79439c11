// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"strings"
)

// SyntaxError says where and why a text could not be read.
type SyntaxError struct {
	Text   string // the whole text that was being read
	Offset int    // byte offset of the mistake in Text
	Line   int    // 1-based
	Column int    // 1-based, in bytes; as Line, of the whole file if a Reader read Text out of one
	Msg    string // what was found and what was expected
}

func newSyntaxError(text string, offset int, msg string) *SyntaxError {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	line := 1 + strings.Count(before, "\n")
	column := offset - strings.LastIndexByte(before, '\n')
	return &SyntaxError{Text: text, Offset: offset, Line: line, Column: column, Msg: msg}
}

// Error prints line, column and message; the caller adds the name of a file.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
}

// Caret returns the offending line and, below it, a caret under the mistake.
// Tabs are kept so that the caret stands right; a long line is cut around the
// mistake.
func (e *SyntaxError) Caret() string {
	start := 1 + strings.LastIndexByte(e.Text[:e.Offset], '\n')
	left, right := e.Text[start:e.Offset], e.Text[e.Offset:]
	if i := strings.IndexByte(right, '\n'); i >= 0 {
		right = right[:i]
	}
	const before, after = 60, 30
	if len(left) > before {
		left = "..." + left[len(left)-before:]
	}
	if len(right) > after {
		right = right[:after] + "..."
	}
	var pad strings.Builder
	for _, r := range left {
		if r == '\t' {
			pad.WriteByte('\t')
		} else {
			pad.WriteByte(' ')
		}
	}
	return left + right + "\n" + pad.String() + "^"
}

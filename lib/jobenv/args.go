// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobenv

import (
	"fmt"
	"strings"
)

// ArgsFromV1 reads the value of the job attribute Args: words between blanks,
// nothing can be quoted. It cannot fail.
func ArgsFromV1(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r < 0x80 && isBlank(byte(r)) })
}

// ArgsFromV2 reads the value of the job attribute Arguments. The error is a
// *SyntaxError.
func ArgsFromV2(text string) ([]string, error) {
	list, _, err := words(text)
	return list, err
}

// ArgsToV1 writes args for the job attribute Args. It fails when an argument
// is empty or holds a blank, which V1 cannot say.
func ArgsToV1(args []string) (string, error) {
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\r\n") {
			return "", fmt.Errorf("argument %d, %s, cannot be written in the old argument syntax", i+1, clip(a))
		}
	}
	return strings.Join(args, " "), nil
}

// ArgsToV2 writes args for the job attribute Arguments.
func ArgsToV2(args []string) string { return joinWords(args) }

// Args are arguments as a submit description gave them, with the syntax that
// was used, because the job ad keeps it.
type Args struct {
	List []string
	V1   bool // the old syntax: goes to Args, otherwise to Arguments
}

// ArgsFromSubmit reads the value of the submit command "arguments": a text
// that starts with a double quote is in the new syntax, any other is in the
// old one, in which a double quote is written \". The error is a *SyntaxError.
func ArgsFromSubmit(text string) (Args, error) {
	if IsQuoted(text) {
		v2, err := Unquote(text)
		if err != nil {
			return Args{}, err
		}
		list, err := ArgsFromV2(v2)
		return Args{List: list}, inQuoted(err, text)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return Args{}, &SyntaxError{i, `a double quote in the old argument syntax is written \" (or put double quotes around all arguments)`}
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			fallthrough
		default:
			b.WriteByte(text[i])
		}
	}
	return Args{List: ArgsFromV1(b.String()), V1: true}, nil
}

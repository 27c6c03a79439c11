// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// The syntaxes of -syntax. The formats of output are no part of them: there is
// no reader of XML.
const syntaxAuto = "auto"

var syntaxes = []string{syntaxAuto, formatOld, formatNew, formatJSON}

// stdinName is the file name that stands for the standard input.
const stdinName = "-"

// maxAdFile bounds an ad file in bytes. The largest ads of a pool have some
// hundred kilobytes.
const maxAdFile = 64 << 20

// inputError is a mistake in a file or an argument.
type inputError struct {
	Name string // the file, or what else the text came from
	Err  error
}

func (e *inputError) Error() string {
	var syntax *classad.SyntaxError
	if errors.As(e.Err, &syntax) {
		return e.Name + ":" + e.Err.Error()
	}
	return e.Name + ": " + e.Err.Error()
}

func (e *inputError) Unwrap() error { return e.Err }

// printInputError prints where a mistake is, what it is, and the line with a
// caret below the place.
func printInputError(w io.Writer, who string, err error) {
	fmt.Fprintf(w, "%s: %v\n", who, err)
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Fprintln(w, syntax.Caret())
	}
}

// errNoFile is what a missing file is called on every system.
var errNoFile = errors.New("no such file")

// readAd reads the ad in a file, which holds one.
func readAd(name, syntax string, stdin io.Reader) (*classad.Ad, error) {
	shown := adName(name)
	text, err := readText(name, stdin)
	if err != nil {
		var path *fs.PathError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = errNoFile
		case errors.As(err, &path): // its text would name the file again
			err = path.Err
		}
		return nil, &inputError{Name: shown, Err: err}
	}
	ad, err := parseAd(text, syntax)
	if err != nil {
		return nil, &inputError{Name: shown, Err: err}
	}
	return ad, nil
}

// adName is how messages call an ad file.
func adName(name string) string {
	if name == stdinName {
		return "<stdin>"
	}
	return name
}

func readText(name string, stdin io.Reader) (text string, err error) {
	r := stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		// It was only read: closing it cannot lose anything.
		defer func() { _ = f.Close() }()
		r = f
	}
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, maxAdFile+1))
	if err != nil {
		return "", err
	}
	if n > maxAdFile {
		return "", fmt.Errorf("larger than %s, which no ad is", size(maxAdFile))
	}
	return b.String(), nil
}

func parseAd(text, syntax string) (*classad.Ad, error) {
	if syntax == syntaxAuto {
		syntax = detectSyntax(text)
	}
	switch syntax {
	case formatJSON:
		return classad.ParseJSON(text)
	case formatNew:
		return classad.ParseAd(text, classad.New)
	}
	return classad.ParseAd(text, classad.Old)
}

// detectSyntax looks at how a text begins, behind blanks and comments: an ad in
// the new syntax begins with a bracket, one in JSON with a brace, and a line of
// the old syntax with neither.
func detectSyntax(text string) string {
	rest := text
	for {
		rest = strings.TrimLeft(rest, " \t\r\n\v\f")
		var end string
		switch {
		case strings.HasPrefix(rest, "//"):
			end = "\n"
		case strings.HasPrefix(rest, "/*"):
			end = "*/"
		case strings.HasPrefix(rest, "["):
			return formatNew
		case strings.HasPrefix(rest, "{"):
			return formatJSON
		default:
			return formatOld
		}
		_, after, ok := strings.Cut(rest[2:], end)
		if !ok {
			return formatOld
		}
		rest = after
	}
}

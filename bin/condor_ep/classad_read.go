// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// syntaxAuto is the syntax that is told by how the text begins.
const syntaxAuto = "auto"

// The syntaxes of -syntax.
var syntaxes = []string{syntaxAuto, formatOld, formatNew, formatJSON, formatXML}

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
		return nil, &inputError{Name: shown, Err: plainFileError(err)}
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
	case formatXML:
		return classad.ParseXML(text)
	case formatNew:
		return classad.ParseAd(text, classad.New)
	}
	return classad.ParseAd(text, classad.Old)
}

// forms are the reader's words for the syntaxes.
var forms = map[string]classad.Form{
	formatOld: classad.FormOld, formatNew: classad.FormNew, formatJSON: classad.FormJSON, formatXML: classad.FormXML,
}

// printAds prints every ad of a file as it is read. In the old syntax an empty
// line stands between ads, as it does where they are read.
func printAds(out io.Writer, name, syntax, format string, stdin io.Reader) error {
	shown := adName(name)
	in := stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return &inputError{Name: shown, Err: plainFileError(err)}
		}
		// It is only read: closing it cannot lose anything.
		defer func() { _ = f.Close() }()
		in = f
	}
	buf := bufio.NewReaderSize(in, 64<<10)
	if syntax == syntaxAuto {
		// What Peek cannot give, the reader will not get either.
		head, _ := buf.Peek(buf.Size())
		syntax = detectSyntax(string(head))
	}
	ads := classad.NewReader(buf, forms[syntax])
	for n := 0; ; n++ {
		ad, err := ads.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &inputError{Name: shown, Err: plainFileError(err)}
		}
		text := formatAd(ad, format)
		if n > 0 && format == formatOld {
			text = "\n" + text
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
}

// plainFileError is what is wrong with a file without its name, which the
// message begins with.
func plainFileError(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.As(err, &path):
		return path.Err
	}
	return err
}

// detectSyntax looks at how a text begins, behind blanks and comments: an ad in
// the new syntax begins with a bracket, one in JSON with a brace, one in XML
// with an angle bracket, and a line of the old syntax with none of them.
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
		case strings.HasPrefix(rest, "<"):
			return formatXML
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

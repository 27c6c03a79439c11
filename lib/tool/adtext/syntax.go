// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// The syntaxes of ads.
const (
	Auto = "auto" // whatever the text begins as; no format
	Old  = "old"  // NAME = EXPRESSION, one to a line
	New  = "new"  // [ NAME = EXPRESSION; … ]
	JSON = "json"
	XML  = "xml"
)

// Formats returns the syntaxes in which ads can be printed.
func Formats() []string { return []string{Old, New, JSON, XML} }

// Syntaxes returns the syntaxes that an ad can be read as.
func Syntaxes() []string { return append([]string{Auto}, Formats()...) }

// MaxAd bounds the text of an ad in bytes. The largest ads of a pool have some
// hundred kilobytes.
const MaxAd = 64 << 20

// Read reads the one ad that r holds, in one of the Syntaxes. A text longer than
// MaxAd is refused; a text that does not parse is a *classad.SyntaxError.
func Read(r io.Reader, syntax string) (*classad.Ad, error) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, MaxAd+1))
	if err != nil {
		return nil, err
	}
	if n > MaxAd {
		return nil, fmt.Errorf("larger than %s, which no ad is", words.Size(MaxAd))
	}
	return Parse(b.String(), syntax)
}

// Parse reads one ad in one of the Syntaxes. A text that does not parse is a
// *classad.SyntaxError.
func Parse(text, syntax string) (*classad.Ad, error) {
	text = strings.TrimPrefix(text, byteOrder)
	if syntax == Auto {
		syntax = Detect(text)
	}
	switch syntax {
	case JSON:
		return classad.ParseJSON(text)
	case XML:
		return classad.ParseXML(text)
	case New:
		return classad.ParseAd(text, classad.New)
	}
	return classad.ParseAd(text, classad.Old)
}

// forms are the reader's words for the syntaxes.
var forms = map[string]classad.Form{
	Old: classad.FormOld, New: classad.FormNew, JSON: classad.FormJSON, XML: classad.FormXML,
}

// WriteError is what the writer of Copy said.
type WriteError struct{ Err error }

// Error is the writer's own text.
func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap is the writer's own error.
func (e *WriteError) Unwrap() error { return e.Err }

// Copy prints every ad that r holds as it is read, in one of the Formats. In the
// old syntax an empty line stands between ads, as it does where they are read. The
// error is a *WriteError if w is at fault, else it is about r: a
// *classad.SyntaxError for a text that does not parse.
func Copy(w io.Writer, r io.Reader, syntax, format string) error {
	buf := bufio.NewReaderSize(r, 64<<10)
	// What Peek cannot give, the reader will not get either.
	if head, _ := buf.Peek(len(byteOrder)); string(head) == byteOrder {
		_, _ = buf.Discard(len(byteOrder)) // it was there a moment ago
	}
	if syntax == Auto {
		head, _ := buf.Peek(buf.Size())
		syntax = Detect(string(head))
	}
	ads := classad.NewReader(buf, forms[syntax])
	for n := 0; ; n++ {
		ad, err := ads.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text := Format(ad, format)
		if n > 0 && format == Old {
			text = "\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return &WriteError{err}
		}
	}
}

// byteOrder is the byte order mark that editors of Windows put before a text. It is
// part of no name.
const byteOrder = "\ufeff"

// Detect looks at how a text begins, behind blanks and comments: an ad in
// the new syntax begins with a bracket, one in JSON with a brace, one in XML
// with an angle bracket, and a line of the old syntax with none of them. A list of
// ads has the brackets of the other syntax around it.
func Detect(text string) string {
	rest := begin(strings.TrimPrefix(text, byteOrder))
	switch {
	case strings.HasPrefix(rest, "["):
		if strings.HasPrefix(begin(rest[1:]), "{") {
			return JSON
		}
		return New
	case strings.HasPrefix(rest, "{"):
		if strings.HasPrefix(begin(rest[1:]), "[") {
			return New
		}
		return JSON
	case strings.HasPrefix(rest, "<"):
		return XML
	}
	return Old
}

// begin is a text from its first word on, behind blanks and comments; "" where a
// comment does not end.
func begin(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n\v\f")
		end := "\n"
		switch {
		case strings.HasPrefix(text, "/*"):
			end = "*/"
		case !strings.HasPrefix(text, "//"):
			return text
		}
		_, text, _ = strings.Cut(text[2:], end)
	}
}

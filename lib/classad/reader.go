// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Form is a way to write ads down.
type Form uint8

const (
	// FormOld is the old dialect: a line an attribute, an empty line between
	// two ads.
	FormOld Form = iota
	// FormNew is the new dialect: ads in brackets, one after the other or as
	// a list in braces.
	FormNew
	// FormJSON is JSON: objects one after the other or as an array.
	FormJSON
	// FormXML is the XML notation: elements <c>, most often inside one
	// <classads>.
	FormXML
)

// MaxAdText is how many bytes of text one ad may have for a [Reader].
const MaxAdText = 64 << 20

// Reader reads many ads from one text, one at a time. Ads that have the same
// names in the same order share them, and in the old dialect expressions that
// are written the same are one expression: what is read this way needs less
// memory and is evaluated faster than ads parsed each by itself. A Reader is
// for one goroutine; the ads are not bound to it.
type Reader struct {
	r     *bufio.Reader
	form  Form
	share *sharer
	buf   []byte // text of the ad being read
	line  int    // lines before it
	col   int    // bytes of its first line before it
	err   error  // why there are no more
}

// NewReader returns a Reader of the ads in r.
func NewReader(r io.Reader, form Form) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), form: form, share: newSharer()}
}

// Next returns the next ad. The error is io.EOF when there are no more, a
// *[SyntaxError] whose Line counts from the start of the text, or what
// reading gave. After an error there is nothing more to be had.
func (r *Reader) Next() (*Ad, error) {
	if r.err != nil {
		return nil, r.err
	}
	a, err := r.next()
	if err != nil {
		var bad *SyntaxError
		if errors.As(err, &bad) {
			if bad.Line == 1 {
				bad.Column += r.col
			}
			bad.Line += r.line
		}
		r.err = err
		return nil, err
	}
	return a, nil
}

// All yields the ads that are left. An error, which is not io.EOF, comes last
// and without an ad.
func (r *Reader) All() iter.Seq2[*Ad, error] {
	return func(yield func(*Ad, error) bool) {
		for {
			a, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

func (r *Reader) next() (*Ad, error) {
	r.pass()
	var err error
	switch r.form {
	case FormOld:
		err = r.block()
	case FormNew:
		err = r.bracketed('[', ']')
	case FormJSON:
		err = r.bracketed('{', '}')
	case FormXML:
		err = r.element()
	default:
		err = fmt.Errorf("classad: no form of ads has the number %d", r.form)
	}
	if err != nil {
		return nil, err
	}
	text := string(r.buf)
	if r.form == FormOld {
		return parseLines(text, r.share)
	}
	var a *Ad
	switch r.form {
	case FormNew:
		a, err = ParseAd(text, New)
	case FormJSON:
		a, err = ParseJSON(text)
	case FormXML:
		a, err = ParseXML(text)
	}
	if err != nil {
		return nil, err
	}
	a.layout = r.share.layout(a.layout)
	return a, nil
}

// pass leaves behind what was read.
func (r *Reader) pass() {
	r.line += bytes.Count(r.buf, []byte{'\n'})
	if i := bytes.LastIndexByte(r.buf, '\n'); i >= 0 {
		r.col = len(r.buf) - i - 1
	} else {
		r.col += len(r.buf)
	}
	r.buf = r.buf[:0]
}

// add takes text into the ad being read.
func (r *Reader) add(text ...byte) error {
	if len(r.buf)+len(text) > MaxAdText {
		return newSyntaxError("", 0, fmt.Sprintf("ad of more than %d bytes", MaxAdText))
	}
	r.buf = append(r.buf, text...)
	return nil
}

// block reads lines up to an empty one.
func (r *Reader) block() error {
	some := false
	for {
		line, err := r.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			err = nil
		}
		if err != nil && (err != io.EOF || len(line) == 0) {
			if err == io.EOF && some {
				return nil
			}
			return err
		}
		whole := len(r.buf) == 0 || r.buf[len(r.buf)-1] == '\n' // a line begins here
		empty := whole && len(strings.TrimSpace(string(line))) == 0 && (line[len(line)-1] == '\n' || err == io.EOF)
		if addErr := r.add(line...); addErr != nil {
			return addErr
		}
		switch {
		case empty && some:
			return nil
		case !empty:
			some = true
		}
		if err == io.EOF {
			if !some {
				return io.EOF
			}
			return nil
		}
	}
}

// peek returns the next byte without taking it.
func (r *Reader) peek() (byte, error) {
	b, err := r.r.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// take moves the next byte into the ad being read.
func (r *Reader) take() (byte, error) {
	c, err := r.r.ReadByte()
	if err == io.EOF {
		return 0, newSyntaxError(string(r.buf), len(r.buf), "the text ends inside an ad")
	}
	if err != nil {
		return 0, err
	}
	return c, r.add(c)
}

// between passes what may stand between ads: blanks, comments, commas and the
// brackets of a list around them, which are those that an ad does not have.
func (r *Reader) between(open byte) error {
	for {
		c, err := r.peek()
		switch {
		case err != nil:
			return err
		case c == open:
			return nil
		case isSpace(int(c)) || c == ',' || strings.IndexByte("[]{}", c) >= 0 && c != open+('}'-'{'):
			if _, err := r.take(); err != nil {
				return err
			}
			r.pass()
		case c == '/':
			if err := r.commentBetween(); err != nil {
				return err
			}
		default:
			return newSyntaxError(string(c), 0, fmt.Sprintf("expected an ad that begins with %c, found %q", open, c))
		}
	}
}

func (r *Reader) commentBetween() error {
	_, err := r.take()
	if err == nil {
		err = r.comment()
	}
	if err == nil && len(r.buf) == 1 {
		err = newSyntaxError(string(r.buf), 0, "expected an ad, found '/'")
	}
	if err == nil {
		r.pass()
	}
	return err
}

// bracketed reads an ad from its opening bracket to the one that closes it.
// Brackets in strings, quoted names and comments do not count.
func (r *Reader) bracketed(open, close byte) error {
	if err := r.between(open); err != nil {
		return err
	}
	for depth := 0; ; {
		c, err := r.take()
		if err != nil {
			return err
		}
		switch c {
		case open:
			depth++
		case close:
			if depth--; depth == 0 {
				return nil
			}
		case '"', '\'':
			err = r.quotedText(c)
		case '/':
			err = r.comment()
		}
		if err != nil {
			return err
		}
	}
}

// quotedText takes what follows a quote, up to the closing one.
func (r *Reader) quotedText(delim byte) error {
	for {
		c, err := r.take()
		if err == nil && c == '\\' {
			_, err = r.take()
		} else if c == delim {
			return err
		}
		if err != nil {
			return err
		}
	}
}

// comment takes a comment, if what follows a slash is one.
func (r *Reader) comment() error {
	kind, err := r.peek()
	if err != nil || kind != '/' && kind != '*' {
		return nil
	}
	if _, err = r.take(); err != nil {
		return err
	}
	for last := byte(0); ; {
		c, err := r.take()
		if err != nil {
			return err
		}
		if kind == '/' && c == '\n' || kind == '*' && last == '*' && c == '/' {
			return nil
		}
		last = c
	}
}

// element reads from <c> to the </c> that closes it.
func (r *Reader) element() error {
	for depth := 0; ; {
		if depth == 0 {
			r.pass()
			if _, err := r.peek(); err != nil {
				return err
			}
		}
		c, err := r.take()
		if err != nil {
			return err
		}
		if c != '<' {
			if depth == 0 && !isSpace(int(c)) {
				return newSyntaxError(string(c), 0, "expected a tag")
			}
			continue
		}
		tag := len(r.buf)
		for c != '>' {
			if c, err = r.take(); err != nil {
				return err
			}
		}
		switch name := string(r.buf[tag : len(r.buf)-1]); name {
		case "c":
			depth++
		case "/c":
			if depth--; depth <= 0 {
				return nil
			}
		}
	}
}

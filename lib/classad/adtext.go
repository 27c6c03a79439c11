// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"io"
	"strings"
)

// ParseAd reads an ad. In the old dialect each line is Name = expression:
// blank lines are skipped, a later line replaces an earlier one of the same
// name, and whatever follows the first complete expression of a line is
// ignored, as in HTCondor. In the new dialect the text is one ad in
// brackets. The error is a *[SyntaxError].
func ParseAd(text string, d Dialect) (*Ad, error) {
	if d == New {
		p := newParser(text, New)
		p.room = strings.Count(text, ";") + 1
		if t := p.peek(); t.kind != tokOpenBox {
			p.fail(t, "expected [, found "+p.found(t))
			return nil, p.err
		}
		a := p.ad()
		if a == nil {
			return nil, p.err
		}
		if t := p.peek(); t.kind != tokEnd {
			p.fail(t, "expected the end of the text after ], found "+p.found(t))
			return nil, p.err
		}
		return a, nil
	}
	return parseLines(text, nil)
}

// parseLines reads an ad in the old dialect.
func parseLines(text string, share *sharer) (*Ad, error) {
	l := lines{a: NewAd(), share: share}
	if share != nil && share.last != nil {
		l.expect = share.last
		l.a.vals = make([]Value, 0, len(l.expect.names))
	} else if n := strings.Count(text, "\n"); n > linearAttrs {
		n = min(n+1, maxRoom)
		l.a.layout = newLayout(n)
		l.a.vals = make([]Value, 0, n)
	}
	for start := 0; start < len(text); {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += start
		}
		if err := l.line(text, start, end); err != nil {
			return nil, err
		}
		start = end + 1
	}
	return l.end(), nil
}

// line reads text[start:end] as Name = expression.
func (l *lines) line(text string, start, end int) error {
	for start < end && isSpace(int(text[start])) {
		start++
	}
	if start == end {
		return nil
	}
	line := text[start:end]
	eq := strings.IndexByte(line, '=')
	if eq < 0 {
		return newSyntaxError(text, start, "expected Name = expression")
	}
	// Only blanks are dropped: a tab before the equals sign belongs to the
	// name.
	attr := strings.TrimRight(line[:eq], " ")
	if attr == "" {
		return newSyntaxError(text, start, "expected a name before =")
	}
	v, ok := constant(line[eq+1:])
	if !ok {
		var err *SyntaxError
		if v, err = l.expression(line[eq+1:]); err != nil {
			return newSyntaxError(text, start+eq+1+err.Offset, err.Msg+" (attribute "+attr+")")
		}
	}
	l.set(attr, v)
	return nil
}

func (l *lines) expression(text string) (Value, *SyntaxError) {
	if l.share != nil {
		return l.share.parse(text)
	}
	p := newParser(text, Old)
	n := p.expression(false)
	if n == nil {
		return Value{}, p.err
	}
	return nodeValue(n), nil
}

// IsPrivate reports whether an attribute holds a secret and must not leave
// the process in an ordinary ad: claim ids, capabilities, transfer keys and
// every name that begins with _condor_priv.
func IsPrivate(name string) bool {
	const prefix = "_condor_priv"
	switch len(name) {
	case 7:
		return equalNames(name, "ClaimId")
	case 8:
		return equalNames(name, "ClaimIds")
	case 10:
		return equalNames(name, "Capability")
	case 11:
		return equalNames(name, "ClaimIdList") || equalNames(name, "TransferKey")
	}
	if len(name) == 13 && equalNames(name, "ChildClaimIds") {
		return true
	}
	return len(name) >= len(prefix) && equalNames(name[:len(prefix)], prefix)
}

// Text prints the ad. In the old dialect it is one attribute to a line,
// sorted by the bytes of the names, private attributes left out (see
// [IsPrivate]); in the new dialect one line in brackets, private attributes
// left out. The old dialect has no escape for a newline: a string that holds
// one prints it as it is, as in HTCondor, and such a text does not read
// back.
func (a *Ad) Text(d Dialect) string { return string(a.AppendText(nil, d)) }

// TextAll is Text with private attributes. The old dialect then shows the
// attributes in the order of [Ad.Names].
func (a *Ad) TextAll(d Dialect) string {
	p := printer{dialect: d}
	if d == New {
		p.ad(a)
	} else {
		p.lines(a.sorted())
	}
	return string(p.b)
}

// AppendText appends what Text returns.
func (a *Ad) AppendText(b []byte, d Dialect) []byte {
	p := printer{dialect: d, b: b}
	if d == New {
		p.attrs(withoutPrivate(a.sorted()))
		return p.b
	}
	if a.parent != nil || a.layout == nil {
		p.lines(a.public())
		return p.b
	}
	for _, i := range a.layout.publicOrder() {
		p.line(a.layout.names[i].text, a.vals[i])
	}
	return p.b
}

func withoutPrivate(all []attr) []attr {
	kept := all[:0]
	for _, at := range all {
		if !IsPrivate(at.name) {
			kept = append(kept, at)
		}
	}
	return kept
}

// WriteOld writes what Text(Old) returns.
func (a *Ad) WriteOld(w io.Writer) error {
	_, err := w.Write(a.AppendText(nil, Old))
	return err
}

func (p *printer) lines(attrs []attr) {
	for _, at := range attrs {
		p.line(at.name, at.v)
	}
}

func (p *printer) line(name string, v Value) {
	p.b = append(append(p.b, name...), " = "...)
	p.attrValue(v)
	p.b = append(p.b, '\n')
}

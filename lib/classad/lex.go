// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokBad
	tokInteger
	tokReal
	tokBoolean
	tokString
	tokUndefined
	tokError
	tokIdentifier
	tokDot
	tokStar
	tokSlash
	tokPercent
	tokPlus
	tokMinus
	tokAnd
	tokOr
	tokTilde
	tokCaret
	tokAmpersand
	tokBar
	tokShiftLeft
	tokShiftRight
	tokShiftRightZero
	tokNot
	tokLess
	tokLessEqual
	tokGreater
	tokGreaterEqual
	tokEqual
	tokNotEqual
	tokIs
	tokIsnt
	tokAssign
	tokQuestion
	tokElvis
	tokColon
	tokSemicolon
	tokComma
	tokOpenBox
	tokCloseBox
	tokOpenParen
	tokCloseParen
	tokOpenBrace
	tokCloseBrace
)

// token is one word of the text. It is small enough to stay in registers.
type token struct {
	kind tokenKind
	// mark is the value of a boolean; of a JSON string, that it begins and
	// ends with an escaped slash.
	mark  bool
	start int    // offset of its first byte
	text  string // of names and strings; of tokBad what is wrong
	num   uint64 // integer, or bits of a real
}

// lexer cuts a text into tokens. A NUL byte ends the text, as it does in the
// original.
type lexer struct {
	text string
	old  bool
	json bool
	pos  int
	last tokenKind // of the token before; decides what a minus sign is
}

const eof = -1

func (l *lexer) at(i int) int {
	if i >= len(l.text) || l.text[i] == 0 {
		return eof
	}
	return int(l.text[i])
}

func isSpace(c int) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func isDigit(c int) bool { return c >= '0' && c <= '9' }
func isOctal(c int) bool { return c >= '0' && c <= '7' }
func isHex(c int) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
func isAlpha(c int) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
func isAlnum(c int) bool { return isAlpha(c) || isDigit(c) }

// wordBytes are the bytes of names that need no quotes.
var wordBytes = newByteSet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")

func (l *lexer) next() token {
	t := l.scan()
	l.last = t.kind
	return t
}

func (l *lexer) bad(start int, msg string) token {
	return token{kind: tokBad, start: start, text: msg}
}

// skipSpace skips blanks and comments. It returns false at a comment that is
// never closed.
func (l *lexer) skipSpace() bool {
	for {
		switch c := l.at(l.pos); {
		case isSpace(c):
			l.pos++
		case c == '/' && l.at(l.pos+1) == '/':
			for c := l.at(l.pos); c != eof && c != '\n'; c = l.at(l.pos) {
				l.pos++
			}
		case c == '/' && l.at(l.pos+1) == '*':
			i := l.pos + 2
			for l.at(i) != eof && (l.at(i) != '*' || l.at(i+1) != '/') {
				i++
			}
			if l.at(i) == eof {
				return false
			}
			l.pos = i + 2
		default:
			return true
		}
	}
}

func (l *lexer) scan() token {
	for l.pos < len(l.text) && l.text[l.pos] == ' ' {
		l.pos++
	}
	if l.pos < len(l.text) { // most of all tokens
		c := l.text[l.pos]
		if wordBytes.has(c) {
			if !isDigit(int(c)) {
				return l.scanWord()
			}
			return l.scanNumber()
		}
		if c < 128 && simple[c] != tokEnd {
			l.pos++
			return token{kind: simple[c], start: l.pos - 1}
		}
	}
	if !l.skipSpace() {
		t := l.bad(l.pos, "comment is not closed: expected */")
		l.pos = len(l.text)
		return t
	}
	start := l.pos
	c := l.at(start)
	switch {
	case c == eof:
		return token{kind: tokEnd, start: start}
	case c == '-' && !l.afterOperand():
		return l.scanNumber()
	case isDigit(c) || c == '.':
		return l.scanNumber()
	case isAlpha(c) || c == '_':
		return l.scanWord()
	case c == '"' || c == '\'':
		if l.old {
			return l.scanOldString(byte(c))
		}
		return l.scanNewString(byte(c))
	}
	return l.scanPunctuation()
}

// afterOperand reports whether a minus sign here must be the operator: behind
// an operand it never begins a number.
func (l *lexer) afterOperand() bool {
	switch l.last {
	case tokInteger, tokReal, tokBoolean, tokString, tokUndefined, tokError,
		tokIdentifier, tokDot, tokCloseBox, tokCloseParen, tokCloseBrace:
		return true
	}
	return false
}

// scanNumber reads a number, or a minus sign or dot that begins none. Octal
// and hexadecimal integers are recognised and refused; a leading minus hides
// the prefix from that check, which is how HTCondor reads -010 as -10.
func (l *lexer) scanNumber() token {
	start := l.pos
	i := start
	c := l.at(i)
	i++
	if c == '-' {
		switch {
		case isDigit(l.at(i)):
			c = l.at(i)
			i++
		case l.at(i) == '.' && isDigit(l.at(i+1)):
		default:
			l.pos = i
			return token{kind: tokMinus, start: start}
		}
	}

	isReal, isNumber, hex := false, false, false
	digits := func() {
		for isDigit(l.at(i)) {
			i++
		}
	}
	switch {
	case c == '0' && (l.at(i) == 'x' || l.at(i) == 'X'):
		isNumber, hex = true, true
		i++
		if !isHex(l.at(i)) {
			l.pos = i
			return l.bad(start, "0x without hexadecimal digits")
		}
		for isHex(l.at(i)) {
			i++
		}
	case c == '0':
		isNumber = true
		octal := true
		for isDigit(l.at(i)) {
			octal = octal && isOctal(l.at(i))
			i++
		}
		if d := l.at(i); d == '.' || d == 'e' || d == 'E' {
			isReal = true
		} else if !octal {
			l.pos = i
			return l.bad(start, "number with a leading zero")
		}
	case isDigit(c):
		isNumber = true
		digits()
		d := l.at(i)
		isReal = d == '.' || d == 'e' || d == 'E'
	}

	if c == '.' || l.at(i) == '.' {
		if l.at(i) == '.' {
			i++
		}
		switch {
		case isDigit(l.at(i)):
			isReal, isNumber = true, true
			digits()
		case isNumber:
			l.pos = i
			return l.bad(start, "expected a digit after the decimal point")
		default:
			l.pos = i
			return token{kind: tokDot, start: start}
		}
	}
	if d := l.at(i); isReal && (d == 'e' || d == 'E') {
		i++
		if l.at(i) == '+' || l.at(i) == '-' {
			i++
		}
		if !isDigit(l.at(i)) {
			l.pos = i
			return l.bad(start, "expected a digit in the exponent")
		}
		digits()
	}
	text := l.text[start:i]
	l.pos = i
	if len(text) == 1 && !isReal {
		return token{kind: tokInteger, start: start, num: uint64(text[0] - '0')}
	}
	if isReal {
		if hex {
			text += "p0"
		}
		// Out of range gives an infinity or zero; a text like "..5" is zero.
		f, _ := strconv.ParseFloat(text, 64)
		return token{kind: tokReal, start: start, num: math.Float64bits(f)}
	}
	if text[0] == '0' && len(text) > 1 {
		return l.bad(start, "number with a leading zero: octal and hexadecimal integers are not supported")
	}
	if hex {
		text = text[:2] // "-0x…" reads as -0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = 0 // out of range
	}
	return token{kind: tokInteger, start: start, num: uint64(n)}
}

func (l *lexer) scanWord() token {
	start := l.pos
	i := start
	for i < len(l.text) && wordBytes.has(l.text[i]) {
		i++
	}
	l.pos = i
	text := l.text[start:i]
	t := token{kind: tokIdentifier, start: start, text: text}
	switch len(text) {
	case 2:
		if equalNames(text, "is") {
			t.kind = tokIs
		}
	case 4:
		switch {
		case l.json && equalNames(text, "null"):
			t.kind = tokUndefined
		case equalNames(text, "true"):
			t.kind, t.mark = tokBoolean, true
		case equalNames(text, "isnt"):
			t.kind = tokIsnt
		}
	case 5:
		switch {
		case equalNames(text, "false"):
			t.kind = tokBoolean
		case equalNames(text, "error"):
			t.kind = tokError
		}
	case 9:
		if !l.json && equalNames(text, "undefined") {
			t.kind = tokUndefined
		}
	}
	return t
}

// single are the tokens of one byte that begins no longer one.
var single = [128]tokenKind{
	'*': tokStar, '/': tokSlash, '%': tokPercent, '+': tokPlus, '-': tokMinus, '~': tokTilde, '^': tokCaret,
	':': tokColon, ';': tokSemicolon, ',': tokComma, '[': tokOpenBox, ']': tokCloseBox,
	'(': tokOpenParen, ')': tokCloseParen, '{': tokOpenBrace, '}': tokCloseBrace,
}

// simple are those of them that also begin no number and no comment.
var simple = func() (t [128]tokenKind) {
	t = single
	t['-'], t['/'] = tokEnd, tokEnd
	return t
}()

func (l *lexer) scanPunctuation() token {
	start := l.pos
	c := l.text[start]
	if c < 128 && single[c] != tokEnd {
		l.pos++
		return token{kind: single[c], start: start}
	}
	next, third := l.at(start+1), l.at(start+2)
	kind, size := tokBad, 1
	switch c {
	case '&':
		kind = tokAmpersand
		if next == '&' {
			kind, size = tokAnd, 2
		}
	case '|':
		kind = tokBar
		if next == '|' {
			kind, size = tokOr, 2
		}
	case '!':
		kind = tokNot
		if next == '=' {
			kind, size = tokNotEqual, 2
		}
	case '<':
		kind = tokLess
		switch next {
		case '=':
			kind, size = tokLessEqual, 2
		case '<':
			kind, size = tokShiftLeft, 2
		}
	case '>':
		kind = tokGreater
		switch {
		case next == '=':
			kind, size = tokGreaterEqual, 2
		case next == '>' && third == '>':
			kind, size = tokShiftRightZero, 3
		case next == '>':
			kind, size = tokShiftRight, 2
		}
	case '=':
		kind = tokAssign
		switch {
		case next == '=':
			kind, size = tokEqual, 2
		case next == '!' && third == '=':
			kind, size = tokIsnt, 3
		case next == '?' && third == '=':
			kind, size = tokIs, 3
		case next == '?':
			l.pos += 2
			return l.bad(start, "=? must be =?=")
		}
	case '?':
		return l.scanQuestion()
	}
	l.pos += size
	if kind == tokBad {
		r, _ := utf8.DecodeRuneInString(l.text[start:])
		return l.bad(start, "unexpected character "+strconv.QuoteRune(r))
	}
	return token{kind: kind, start: start}
}

// scanQuestion reads ? or ?:, between the halves of which blanks may stand.
func (l *lexer) scanQuestion() token {
	start := l.pos
	i := start + 1
	for isSpace(l.at(i)) {
		i++
	}
	if l.at(i) == ':' {
		l.pos = i + 1
		return token{kind: tokElvis, start: start}
	}
	l.pos = i
	return token{kind: tokQuestion, start: start}
}

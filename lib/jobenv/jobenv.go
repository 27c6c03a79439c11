// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobenv owns the syntaxes in which a job's arguments and environment
// are written down: the old one (V1: words between blanks; assignments between
// semicolons), the new one (V2: single quotes protect blanks, a doubled quote
// is a quote), and the two forms a submit description wraps them in. It turns
// text into argument vectors and environments and back, exactly as the job
// attributes Args, Arguments, Env and Environment hold them.
//
// It is pure: it must never look at this process's own arguments or
// environment, and it decides nothing about which variables a job gets.
//
//	args, err := jobenv.ArgsFromV2("one 'two words' 'it''s'") // one | two words | it's
package jobenv

import (
	"fmt"
	"strings"
)

// SyntaxError is a text that is not in the syntax asked for.
type SyntaxError struct {
	Offset int    // bytes from the start of the text given
	Msg    string // lower case, says what is wrong
}

// Error prints the message with its offset, counted from 1 for people.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (at character %d)", e.Msg, e.Offset+1) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// IsQuoted reports whether text is in the new submit syntax: its first
// character that is no blank is a double quote.
func IsQuoted(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\n\r\v\f"), `"`)
}

// Unquote takes the double quotes off a text in the new submit syntax and
// undoubles those inside, which gives V2 text.
func Unquote(text string) (string, error) {
	i := 0
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	if i == len(text) || text[i] != '"' {
		return "", &SyntaxError{i, `expected a double quote (") at the start`}
	}
	open := i
	var b strings.Builder
	for i++; i < len(text); i++ {
		if text[i] != '"' {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		for j := i + 1; j < len(text); j++ {
			if !isSpace(text[j]) {
				return "", &SyntaxError{j, fmt.Sprintf("text after the closing double quote: %s (a double quote inside is written twice)", clip(text[j:]))}
			}
		}
		return b.String(), nil
	}
	return "", &SyntaxError{open, "the double quote that starts here is not closed"}
}

// inQuoted moves the offset of a mistake in text without its double quotes to
// where it stands in the quoted text.
func inQuoted(err error, quoted string) error {
	e, ok := err.(*SyntaxError)
	if !ok {
		return err
	}
	i := strings.IndexByte(quoted, '"') + 1
	for range e.Offset {
		if quoted[i] == '"' {
			i++
		}
		i++
	}
	return &SyntaxError{i, e.Msg}
}

func isSpace(c byte) bool { return isBlank(c) || c == '\v' || c == '\f' }

// clip shortens a quotation in a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// words splits V2 text: words between blanks, single quotes protect.
// starts[i] is where word i begins.
func words(text string) (list []string, starts []int, err error) {
	var b strings.Builder
	inWord, start := false, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if isBlank(c) {
			if inWord {
				list, starts = append(list, b.String()), append(starts, start)
				b.Reset()
				inWord = false
			}
			continue
		}
		if !inWord {
			inWord, start = true, i
		}
		if c != '\'' {
			b.WriteByte(c)
			continue
		}
		open := i
		for i++; ; i++ {
			if i >= len(text) {
				return nil, nil, &SyntaxError{open, "the single quote that starts here is not closed: " + clip(text[open:])}
			}
			if text[i] == '\'' {
				if i+1 >= len(text) || text[i+1] != '\'' {
					break
				}
				i++
			}
			b.WriteByte(text[i])
		}
	}
	if inWord {
		list, starts = append(list, b.String()), append(starts, start)
	}
	return list, starts, nil
}

// appendWord writes one V2 word. Each blank or quote gets its own quoted
// section; sections that touch are joined, so the text is the one HTCondor
// writes: "a b" is a' 'b, and a quote becomes four of them.
func appendWord(dst []byte, word string) []byte {
	if word == "" {
		return append(dst, '\'', '\'')
	}
	closed := false // dst ends with a closing quote of this word
	for i := 0; i < len(word); i++ {
		c := word[i]
		if !isBlank(c) && c != '\'' {
			dst = append(dst, c)
			closed = false
			continue
		}
		if closed {
			dst = dst[:len(dst)-1]
		} else {
			dst = append(dst, '\'')
		}
		if c == '\'' {
			dst = append(dst, '\'')
		}
		dst = append(dst, c, '\'')
		closed = true
	}
	return dst
}

func joinWords(list []string) string {
	var b []byte
	for i, w := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendWord(b, w)
	}
	return string(b)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"strconv"
	"strings"
)

// literals is an ad of a handshake: attributes with literal values, in the
// order they are sent. Nothing in it is ever evaluated, so that a peer nobody
// knows yet cannot make us compute.
type literals []literal

type literal struct {
	name  string
	value any // string, int64 or bool; nil stands for any other literal
}

// The bounds of an ad that is read before its sender is known.
const (
	maxLiterals    = 100
	maxLiteralLine = 64 << 10
)

func (l *literals) set(name string, value any) {
	*l = append(*l, literal{name, value})
}

// text adds a string unless it is empty.
func (l *literals) text(name, value string) {
	if value != "" {
		l.set(name, value)
	}
}

func (l literals) find(name string) (any, bool) {
	for i := range l {
		if strings.EqualFold(l[i].name, name) {
			return l[i].value, true
		}
	}
	return nil, false
}

// str returns a string attribute, "" when it is missing or no string.
func (l literals) str(name string) string {
	v, _ := l.find(name)
	s, _ := v.(string)
	return s
}

func (l literals) number(name string) (int64, bool) {
	v, _ := l.find(name)
	n, ok := v.(int64)
	return n, ok
}

func (l literals) boolean(name string) (value, ok bool) {
	v, _ := l.find(name)
	value, ok = v.(bool)
	return value, ok
}

// yes reports whether an attribute begins with Y, as the field asks.
func (l literals) yes(name string) bool {
	s := l.str(name)
	return s != "" && (s[0] == 'Y' || s[0] == 'y')
}

// line is an attribute as it is sent.
func (a literal) line() string {
	switch v := a.value.(type) {
	case string:
		return a.name + ` = "` + strings.ReplaceAll(v, `"`, `\"`) + `"`
	case int64:
		return a.name + " = " + strconv.FormatInt(v, 10)
	case bool:
		return a.name + " = " + strconv.FormatBool(v)
	}
	return a.name + " = undefined"
}

// parseLiteral reads one line of an ad. Other literals than strings, whole
// numbers and booleans keep their place without a value; whatever is no
// literal is refused.
func parseLiteral(line string) (literal, error) {
	if len(line) > maxLiteralLine {
		return literal{}, fmt.Errorf("an attribute has %d bytes, at most %d are read", len(line), maxLiteralLine)
	}
	name, text, ok := strings.Cut(line, "=")
	name, text = strings.Trim(name, " \t"), strings.Trim(text, " \t")
	if !ok || !attributeName(name) {
		return literal{}, fmt.Errorf("a line is no attribute")
	}
	a := literal{name: name}
	switch {
	case text == "":
		return literal{}, fmt.Errorf("attribute %s has no value", name)
	case text[0] == '"':
		s, ok := unquote(text)
		if !ok {
			return literal{}, fmt.Errorf("attribute %s is no literal string", name)
		}
		a.value = s
	case strings.EqualFold(text, "true"):
		a.value = true
	case strings.EqualFold(text, "false"):
		a.value = false
	case strings.EqualFold(text, "undefined"), strings.EqualFold(text, "error"):
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			a.value = n
			break
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil || len(text) > 64 {
			return literal{}, fmt.Errorf("attribute %s is no literal", name)
		}
	}
	return a, nil
}

// unquote reads a string of the old dialect: a backslash stands for itself
// unless a quote follows that is not the last character.
func unquote(text string) (string, bool) {
	if len(text) < 2 || text[len(text)-1] != '"' {
		return "", false
	}
	text = text[1 : len(text)-1]
	if !strings.ContainsRune(text, '"') {
		return text, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			b.WriteByte('"')
		case text[i] == '"':
			return "", false
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), true
}

func attributeName(name string) bool {
	if name == "" || len(name) > 256 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return true
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression over names of files. It is compiled when it is
// asked first: each starter is sent one, and to compile it would cost more than any
// other of its settings, while hardly one looks for files of keys. Safe for concurrent
// use.
type Pattern struct {
	text    string
	compile sync.Once
	re      *regexp.Regexp // nil of a text that is no regular expression
}

// NewPattern returns the pattern of a regular expression.
func NewPattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p.compile.Do(func() { p.re = re })
	return p, nil
}

// MatchString reports whether a name matches. A text that came over a wire and is no
// regular expression matches every name, so that no file counts which was to be left
// out.
func (p *Pattern) MatchString(name string) bool {
	p.compile.Do(func() { p.re, _ = regexp.Compile(p.text) })
	return p.re == nil || p.re.MatchString(name)
}

// String is the text as it was written.
func (p *Pattern) String() string { return p.text }

// MarshalText returns the text as it was written.
func (p *Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText reads what MarshalText wrote, of a pattern that nobody has asked yet.
func (p *Pattern) UnmarshalText(text []byte) error {
	p.text = string(text)
	return nil
}

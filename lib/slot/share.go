// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// shareKind is how a slot type says how much it wants.
type shareKind uint8

const (
	shareAuto     shareKind = iota // an equal part of what the others leave
	shareFraction                  // a part of the whole machine, 0 to 1 as a rule
	shareAmount                    // an absolute amount
)

// minimalFraction is the part of everything that "minimal" stands for.
const minimalFraction = 1.0 / 128

// wish is one share that a slot type asks for: of one resource or, as the
// blanket value, of all that are not named.
type wish struct {
	name       string // as written; empty for the blanket value
	text       string // the value as written
	kind       shareKind
	value      float64 // the fraction or amount
	scale      int     // of an amount: 0 none, 1 K, 2 M, 3 G, 4 T, 5 P
	constraint string  // behind a colon: which instances will do
	minimal    bool    // written as "minimal"
	malformed  bool    // a fraction without a usable denominator: counts as nothing
	blanket    bool    // stands alone, without a name
}

// Shares is what SLOT_TYPE_n asks for, as written. The zero Shares asks for
// an equal part of everything.
type Shares struct {
	text   string
	wishes []wish
}

// String returns the text the shares were read from.
func (s Shares) String() string { return s.text }

// ParseShares reads the value of SLOT_TYPE_n: items such as "cpus=2",
// "mem=25%", "disk=1/4", "auto" or a bare blanket share. White space separates
// items if there is no comma in the text, commas do if there is one, and only
// line ends in a value of several lines. What the names mean is decided by
// Build, which knows the custom resources. The error says what is wrong and
// what would be right; a type in error makes no slots.
func ParseShares(text string) (Shares, error) {
	s := Shares{text: strings.TrimSpace(text)}
	for _, item := range splitShares(text) {
		name, value, named := strings.Cut(item, "=")
		if !named {
			w := parseShare(item)
			if !w.minimal && (w.kind == shareAmount && w.value != 0 || w.kind == shareFraction && !(w.value >= 0 && w.value <= 1)) {
				return Shares{}, fmt.Errorf("%q is not a share: want a percentage (25%%), a fraction (1/4), auto or minimal, or a list such as cpus=1, mem=25%%", item)
			}
			w.blanket = true
			s.wishes = append(s.wishes, w)
			continue
		}
		value, constraint, _ := strings.Cut(value, ":")
		value = strings.TrimSpace(value)
		if value == "" {
			return Shares{}, fmt.Errorf("%q has no value: want a number, a percentage, a fraction or auto", item)
		}
		w := parseShare(value)
		w.name = strings.TrimSpace(name)
		w.constraint = strings.TrimSpace(constraint)
		s.wishes = append(s.wishes, w)
	}
	return s, nil
}

// splitShares cuts the text into its items, none of them empty.
func splitShares(text string) []string {
	delimiters := ", \t\r\n"
	switch {
	case strings.Contains(text, "\n"):
		delimiters = "\n"
	case strings.Contains(text, ","):
		delimiters = ",\r\n"
	}
	var items []string
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(delimiters, r) }) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// parseShare reads one value. Like HTCondor it takes anything: a text
// without a number in front is 0.
func parseShare(text string) wish {
	w := wish{text: text}
	switch {
	case strings.EqualFold(text, "auto"), strings.EqualFold(text, "automatic"):
		return w
	case strings.EqualFold(text, "min"), strings.EqualFold(text, "minimal"):
		w.kind, w.value, w.minimal = shareFraction, minimalFraction, true
		return w
	case strings.Contains(text, "%"):
		v, _ := leadingNumber(text)
		w.kind, w.value = shareFraction, v/100
		return w
	}
	if over, under, ok := strings.Cut(text, "/"); ok {
		n, _ := leadingNumber(over)
		d, _ := leadingNumber(under)
		if !(d > 0) {
			w.kind, w.malformed = shareAmount, true
			return w
		}
		w.kind, w.value = shareFraction, n/d
		return w
	}
	v, rest := leadingNumber(text)
	w.kind, w.value = shareAmount, v
	if v < 0 {
		// A negative number is taken as a fraction: -1 is all there is.
		w.kind, w.value = shareFraction, -v
	}
	if rest = strings.TrimLeft(rest, " \t\r\n\v\f"); rest != "" {
		if i := strings.IndexByte("kmgtp", lower(rest[0])); i >= 0 {
			w.scale = i + 1
		}
	}
	return w
}

// leadingNumber reads the longest decimal number at the front of s, 0 if
// there is none.
func leadingNumber(s string) (float64, string) {
	s = strings.TrimLeft(s, " \t\r\n\v\f")
	end := 0
	digits := func() bool {
		start := end
		for end < len(s) && '0' <= s[end] && s[end] <= '9' {
			end++
		}
		return end > start
	}
	if end < len(s) && (s[end] == '+' || s[end] == '-') {
		end++
	}
	some := digits()
	if end < len(s) && s[end] == '.' {
		end++
		some = digits() || some
	}
	if !some {
		return 0, s
	}
	if mantissa := end; end < len(s) && lower(s[end]) == 'e' {
		end++
		if end < len(s) && (s[end] == '+' || s[end] == '-') {
			end++
		}
		if !digits() {
			end = mantissa
		}
	}
	v, _ := strconv.ParseFloat(s[:end], 64) // out of range gives an infinity
	return min(max(v, -maxWhole), maxWhole), s[end:]
}

// of turns a wish into an amount of a resource whose total the machine has, at
// least least; auto stays open. Suffixes are ignored.
func (w wish) of(total, least float64) amount {
	var v float64
	switch w.kind {
	case shareAuto:
		return amount{auto: true}
	case shareFraction:
		v = w.value * total
	case shareAmount:
		v = w.value
	}
	return amount{value: grain(max(v, least))}
}

// amount is how much of one resource a slot is to get, auto until the open
// shares are dealt.
type amount struct {
	auto  bool
	value float64
}

// whole is of for a resource that is counted in integers, in a unit of
// 1024^native bytes: parts of an absolute amount are cut off before its suffix
// is applied, and a suffix never makes an amount smaller.
func (w wish) whole(total, least int64, native int) amount {
	var v float64
	switch w.kind {
	case shareAuto:
		return amount{auto: true}
	case shareFraction:
		v = math.Trunc(w.value * float64(total))
	case shareAmount:
		v = math.Trunc(w.value)
		for range max(0, w.scale-native) {
			v *= 1024
		}
	}
	return amount{value: min(max(v, float64(least)), maxWhole)}
}

// maxWhole bounds an amount so that it stays an integer.
const maxWhole = 1 << 53

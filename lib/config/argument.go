// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// expandArguments puts the arguments of a use into the text of a template:
//
//	$(N) argument N    $(N:text) text if it is empty    $(N?) 1 or 0
//	$(N+) from N on    $(0) all    $(0?) 1 or 0    $(0#) how many
//
// Arguments are put in as they are; a $(N) in one is not seen again.
func expandArguments(text, args string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "$(")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		n, form, def, end := parseArgument(text[i:])
		if end == 0 {
			b.WriteString(text[:i+2])
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		b.WriteString(argument(args, n, form, def))
		text = text[i+end:]
	}
}

// parseArgument reads $(N...) at the start of s; end is 0 if it is none.
func parseArgument(s string) (n int, form byte, def string, end int) {
	i := len("$(")
	for i < len(s) && '0' <= s[i] && s[i] <= '9' && n < 1000 {
		n = 10*n + int(s[i]-'0')
		i++
	}
	if i == len("$(") || i == len(s) {
		return 0, 0, "", 0
	}
	if strings.IndexByte("?#+", s[i]) >= 0 {
		form = s[i]
		i++
	}
	if i < len(s) && s[i] == ')' {
		return n, form, "", i + 1
	}
	if i == len(s) || s[i] != ':' {
		return 0, 0, "", 0
	}
	for depth, j := 0, i+1; j < len(s); j++ {
		switch s[j] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return n, form, s[i+1 : j], j + 1
			}
		}
	}
	return 0, 0, "", 0
}

func argument(args string, n int, form byte, def string) string {
	var value string
	switch {
	case n == 0 && form == '#':
		return strconv.Itoa(len(splitArguments(args)))
	case n == 0:
		value = trim(args)
	case form == '+':
		value = trim(argumentsFrom(args, n))
	default:
		if all := splitArguments(args); n <= len(all) {
			value = all[n-1]
		}
	}
	switch {
	case form == '?' && value != "":
		return "1"
	case form == '?':
		return "0"
	case value == "":
		return expandArguments(def, args)
	}
	return value
}

// splitArguments splits at commas; empty arguments do not count.
func splitArguments(args string) []string {
	var all []string
	for one := range strings.SplitSeq(args, ",") {
		if one = trim(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// argumentsFrom returns argument n and all behind it, commas included.
func argumentsFrom(args string, n int) string {
	for {
		args = strings.TrimLeft(args, ", \t")
		if n == 1 || args == "" {
			return args
		}
		_, args, _ = strings.Cut(args, ",")
		n--
	}
}

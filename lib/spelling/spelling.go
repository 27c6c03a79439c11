// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spelling finds the word that a person meant who wrote another one.
//
// It owns the distance between two words, how near is near enough, and the plural
// behind a number. It must never know what the words name.
//
//	spelling.Nearest("drian", []string{"run", "drain"}) // "drain"
package spelling

import (
	"strconv"
	"strings"
)

// Count is a number with the word for what it counts: "1 job", "2 jobs". It is for
// words whose plural ends in s.
func Count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// Are is the verb behind a number of things.
func Are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// longest is the length of the longest word that is compared.
const longest = 100

// Nearest returns the word that s was probably meant to be: the nearest one
// that differs by a letter, or by two in a word of six letters or more. It
// returns "" where none does, where s is one of the words, and for a word of
// less than three letters, which is near everything short. Case counts for
// nothing.
func Nearest(s string, words []string) string {
	if len(s) < 3 {
		return ""
	}
	best, least := "", 3
	if len(s) < 6 {
		least = 2
	}
	for _, word := range words {
		d := Distance(s, word, least-1)
		if d == 0 {
			return ""
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

// Distance counts the letters to add, drop, change or swap with their
// neighbour to get from a to b, without regard to case. It returns most+1 when
// there are more than most.
func Distance(a, b string, most int) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if abs(len(a)-len(b)) > most || len(b) > longest {
		return most + 1
	}
	var rows [3][longest + 2]int
	before, last, now := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			now[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }

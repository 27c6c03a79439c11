// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// civil is a date and time of day as read from a text: secs counts from the
// epoch as if it were in UTC. zoned tells whether the text gave an offset.
type civil struct {
	secs   int64
	offset int
	zoned  bool
}

// in returns the point in time, for a text without an offset that of the date
// in loc. A nil loc is UTC.
func (c civil) in(loc *time.Location) Value {
	if !c.zoned {
		c.offset = civilOffset(c.secs, loc)
	}
	return AbsTime(c.secs-int64(c.offset), c.offset)
}

// civilOffset returns the offset of loc when its clocks, kept on standard
// time, show secs.
func civilOffset(secs int64, loc *time.Location) int {
	if loc == nil {
		return 0
	}
	off, dst := zoneAt(secs, loc)
	if dst {
		off -= 3600
	}
	off, _ = zoneAt(secs-int64(off), loc)
	return off
}

// zoneAt returns the offset of loc at a Unix time and whether it is daylight
// saving time.
func zoneAt(sec int64, loc *time.Location) (offset int, dst bool) {
	if loc == nil {
		return 0, false
	}
	t := time.Unix(sec, 0).In(loc)
	_, offset = t.Zone()
	return offset, t.IsDST()
}

// parseDate reads yyyy mm dd hh mm ss with anything between the numbers, of
// which all but the year may be missing, and an offset -hhmm, +hh:mm or Z
// behind. Parts that are missing count as zero, so the month before January
// or the day before the first is what one gets.
func parseDate(s string) (civil, bool) {
	var c civil
	i := len(s) - 1
	for i >= 0 && isSpace(int(s[i])) {
		i--
	}
	n := len(s)
	switch {
	case i > 0 && (s[i] == 'z' || s[i] == 'Z'):
		c.zoned = true
		s = s[:i] + s[i+1:]
	case n > 5 && (s[n-5] == '+' || s[n-5] == '-'):
		c.offset, c.zoned = parseOffset(s[n-5:])
		if c.zoned {
			s = s[:n-5]
		}
	case n > 6 && (s[n-6] == '+' || s[n-6] == '-') && s[n-3] == ':':
		whole := s[:n-3] + s[n-2:]
		n = len(whole)
		c.offset, c.zoned = parseOffset(whole[n-5:])
		s = whole
		if c.zoned {
			s = whole[:n-5]
		}
	}

	i = 0
	skip := func() {
		for i < len(s) && !isDigit(int(s[i])) {
			i++
		}
	}
	skip()
	if i > len(s)-4 {
		return c, false
	}
	year := leadingInt(s[i : i+4])
	i += 4
	var part [5]int // month, day, hour, minute, second
	for k := range part {
		skip()
		if i <= len(s)-2 {
			part[k] = leadingInt(s[i : i+2])
			if k == 0 {
				part[k]--
			}
			i += 2
		}
	}
	skip()
	if i < len(s) {
		return c, false
	}
	// HTCondor takes the last second before the epoch for a failure.
	c.secs = time.Date(year, time.Month(part[0]+1), part[1], part[2], part[3], part[4], 0, time.UTC).Unix()
	return c, c.secs != -1
}

// leadingInt reads the digits s begins with.
func leadingInt(s string) int {
	n := 0
	for i := 0; i < len(s) && isDigit(int(s[i])); i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// parseOffset reads +hhmm or -hhmm in seconds.
func parseOffset(s string) (int, bool) {
	for i := 1; i < 5; i++ {
		if !isDigit(int(s[i])) {
			return 0, false
		}
	}
	off := leadingInt(s[1:3])*3600 + leadingInt(s[3:5])*60
	if s[0] == '-' {
		off = -off
	}
	return off, true
}

// parseRelTime reads [-][days+][hours:][minutes:]seconds from the right, with
// letters d h m s as an alternative to the punctuation.
func parseRelTime(s string) (float64, bool) {
	i := len(s) - 1
	blanks := func() {
		for i >= 0 && isSpace(int(s[i])) {
			i--
		}
	}
	is := func(set string) bool { return i >= 0 && strings.IndexByte(set, s[i]) >= 0 }
	digits := func() string {
		end := i + 1
		for i >= 0 && isDigit(int(s[i])) {
			i--
		}
		return s[i+1 : end]
	}

	var secs float64
	blanks()
	if i >= 0 && (is("sS") || isDigit(int(s[i]))) {
		if is("sS") {
			i--
		}
		blanks()
		end := i + 1
		digits()
		if is(".") {
			i--
			digits()
		}
		secs, _ = strconv.ParseFloat(strings.TrimSuffix(s[i+1:end], "."), 64)
	}
	unit := func(marks string) int {
		blanks()
		if !is(marks) {
			return 0
		}
		i--
		blanks()
		n, err := strconv.ParseInt(digits(), 10, 32)
		if err != nil {
			return 0 // nothing there, or out of range
		}
		return int(n)
	}
	mins := unit("mM:")
	hours := unit("hH:")
	days := unit("dD+")
	blanks()
	negative := is("-")
	if negative {
		i--
	}
	blanks()
	if i >= 0 {
		return 0, false
	}
	total := float64(int32(days*86400+hours*3600+mins*60)) + secs
	if negative {
		total = -total
	}
	return total, true
}

func appendTwo(b []byte, n int) []byte {
	if n >= 0 && n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// appendAbsTime prints 2024-02-29T12:34:56-06:00. UTC shows as -00:00.
func appendAbsTime(b []byte, sec int64, offset int) []byte {
	t := time.Unix(sec+int64(offset), 0).UTC()
	b = strconv.AppendInt(b, int64(t.Year()), 10)
	b = appendTwo(append(b, '-'), int(t.Month()))
	b = appendTwo(append(b, '-'), t.Day())
	b = appendTwo(append(b, 'T'), t.Hour())
	b = appendTwo(append(b, ':'), t.Minute())
	b = appendTwo(append(b, ':'), t.Second())
	if offset > 0 {
		b = append(b, '+')
	} else {
		b = append(b, '-')
		offset = -offset
	}
	b = appendTwo(b, offset/3600)
	return appendTwo(append(b, ':'), offset/60%60)
}

// appendRelTime prints days+hh:mm:ss, leaving out what is zero on the left.
func appendRelTime(b []byte, f float64) []byte {
	if f < 0 {
		b = append(b, '-')
		f = -f
	}
	fraction := f - math.Floor(f)
	whole := int(int32(wholeSeconds(f)))
	days, hours, mins, secs := whole/86400, whole%86400/3600, whole%86400%3600/60, whole%86400%3600%60
	switch {
	case days != 0:
		b = strconv.AppendInt(b, int64(days), 10)
		b = append(b, '+')
		b = append(appendTwo(b, hours), ':')
		b = append(appendTwo(b, mins), ':')
	case hours != 0:
		b = append(appendTwo(b, hours), ':')
		b = append(appendTwo(b, mins), ':')
	case mins != 0:
		b = append(appendTwo(b, mins), ':')
	}
	if fraction == 0 {
		return appendTwo(b, secs)
	}
	text := strconv.FormatFloat(float64(secs)+fraction, 'g', 6, 64)
	if len(text) < 2 {
		b = append(b, '0')
	}
	return append(b, text...)
}

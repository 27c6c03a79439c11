// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strconv"
	"time"
)

// date is a broken-down time as C has it: any field may be out of its range,
// since it may come from an ad.
type date struct {
	year, month, day     int // month counts from 0
	hour, minute, second int
	weekday, yearday     int // both count from 0
}

func dateOf(t time.Time) date {
	return date{
		year: t.Year(), month: int(t.Month()) - 1, day: t.Day(),
		hour: t.Hour(), minute: t.Minute(), second: t.Second(),
		weekday: int(t.Weekday()), yearday: t.YearDay() - 1,
	}
}

// dayNumbers computes weekday and day of the year, also of dates that do not
// exist.
func dayNumbers(year, month, day int) (weekday, yearday int) {
	fixed := fixedDay(year, month, day)
	return fixed % 7, fixed - fixedDay(year, 1, 1)
}

// fixedDay counts days from the day before the year 1.
func fixedDay(year, month, day int) int {
	adjust := 0
	if month > 2 {
		adjust = -2
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			adjust = -1
		}
	}
	y := year - 1
	return 365*y + y/4 - y/100 + y/400 + (367*month-362)/12 + adjust + day
}

func (d date) weekdayName(full bool) string {
	if d.weekday < 0 || d.weekday > 6 {
		return "?"
	}
	s := time.Weekday(d.weekday).String()
	if !full {
		s = s[:3]
	}
	return s
}

func (d date) monthName(full bool) string {
	if d.month < 0 || d.month > 11 {
		return "?"
	}
	s := time.Month(d.month + 1).String()
	if !full {
		s = s[:3]
	}
	return s
}

// isoWeek returns year and number of the week that begins on Monday and has
// the year's first Thursday in week 1.
func (d date) isoWeek() (year, week int) {
	days := func(yearday, weekday int) int {
		const big = 7 * 60
		return yearday - (yearday-weekday+4+big)%7 + 4 - 1
	}
	length := func(y int) int {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 366
		}
		return 365
	}
	year = d.year
	n := days(d.yearday, d.weekday)
	if n < 0 {
		year--
		n = days(d.yearday+length(year), d.weekday)
	} else if m := days(d.yearday-length(year), d.weekday); m >= 0 {
		year++
		n = m
	}
	return year, n/7 + 1
}

func pad(b []byte, n, width int, fill byte) []byte {
	s := strconv.Itoa(max(n, -n))
	if n < 0 {
		b = append(b, '-')
		width--
	}
	for i := len(s); i < width; i++ {
		b = append(b, fill)
	}
	return append(b, s...)
}

// format appends d as strftime does in the C locale, without a zone.
func (d date) format(b []byte, format string) []byte {
	hour12 := d.hour % 12
	if hour12 == 0 {
		hour12 = 12
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		start := i
		i++
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++ // modifiers without effect in this locale
		}
		if i >= len(format) {
			return append(b, format[start:]...)
		}
		switch format[i] {
		case 'a':
			b = append(b, d.weekdayName(false)...)
		case 'A':
			b = append(b, d.weekdayName(true)...)
		case 'b', 'h':
			b = append(b, d.monthName(false)...)
		case 'B':
			b = append(b, d.monthName(true)...)
		case 'c':
			b = d.format(b, "%a %b %e %H:%M:%S %Y")
		case 'C':
			b = pad(b, d.year/100, 2, '0')
		case 'd':
			b = pad(b, d.day, 2, '0')
		case 'D', 'x':
			b = d.format(b, "%m/%d/%y")
		case 'e':
			b = pad(b, d.day, 2, ' ')
		case 'F':
			b = d.format(b, "%Y-%m-%d")
		case 'g':
			y, _ := d.isoWeek()
			b = pad(b, (y%100+100)%100, 2, '0')
		case 'G':
			y, _ := d.isoWeek()
			b = pad(b, y, 1, '0')
		case 'H':
			b = pad(b, d.hour, 2, '0')
		case 'I':
			b = pad(b, hour12, 2, '0')
		case 'j':
			b = pad(b, d.yearday+1, 3, '0')
		case 'k':
			b = pad(b, d.hour, 2, ' ')
		case 'l':
			b = pad(b, hour12, 2, ' ')
		case 'm':
			b = pad(b, d.month+1, 2, '0')
		case 'M':
			b = pad(b, d.minute, 2, '0')
		case 'n':
			b = append(b, '\n')
		case 'p':
			b = append(b, "AP"[min(1, max(0, d.hour/12))], 'M')
		case 'P':
			b = append(b, "ap"[min(1, max(0, d.hour/12))], 'm')
		case 'r':
			b = d.format(b, "%I:%M:%S %p")
		case 'R':
			b = d.format(b, "%H:%M")
		case 's':
			t := time.Date(d.year, time.Month(d.month+1), d.day, d.hour, d.minute, d.second, 0, time.UTC)
			b = strconv.AppendInt(b, t.Unix(), 10)
		case 'S':
			b = pad(b, d.second, 2, '0')
		case 't':
			b = append(b, '\t')
		case 'T', 'X':
			b = d.format(b, "%H:%M:%S")
		case 'u':
			b = pad(b, (d.weekday-1+7)%7+1, 1, '0')
		case 'U':
			b = pad(b, (d.yearday-d.weekday+7)/7, 2, '0')
		case 'V':
			_, w := d.isoWeek()
			b = pad(b, w, 2, '0')
		case 'w':
			b = pad(b, d.weekday, 1, '0')
		case 'W':
			b = pad(b, (d.yearday-(d.weekday-1+7)%7+7)/7, 2, '0')
		case 'y':
			b = pad(b, (d.year%100+100)%100, 2, '0')
		case 'Y':
			b = pad(b, d.year, 1, '0')
		case 'z':
			b = append(b, "+0000"...)
		case 'Z':
		case '%':
			b = append(b, '%')
		default:
			b = append(b, format[start:i+1]...)
		}
	}
	return b
}

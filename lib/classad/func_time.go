// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "time"

// now is the clock of the evaluation in whole seconds; error without one.
func (ev *evaluator) now() Value {
	if ev.env.Now.IsZero() {
		return ErrorValue()
	}
	return Int(ev.env.Now.Unix())
}

func (ev *evaluator) currentTime() Value {
	now := ev.now()
	if now.kind == KindError {
		return now
	}
	offset, _ := zoneAt(now.int(), ev.env.Location)
	return AbsTime(now.int(), offset)
}

// local returns the local time of day at a Unix time.
func (ev *evaluator) local(sec int64) time.Time {
	loc := ev.env.Location
	if loc == nil {
		loc = time.UTC
	}
	return time.Unix(sec, 0).In(loc)
}

// clock is the functions of no argument that read the clock.
func (ev *evaluator) clock(n *call) Value {
	if len(n.args) != 0 {
		return ErrorValue()
	}
	now := ev.now()
	if now.kind == KindError {
		return now
	}
	switch n.fn {
	case fnTime:
		return now
	case fnCurrentTime:
		return ev.currentTime()
	case fnTimeZoneOffset:
		offset, _ := zoneAt(now.int(), ev.env.Location)
		return RelTime(float64(offset))
	}
	t := ev.local(now.int())
	return RelTime(float64(t.Hour()*3600 + t.Minute()*60 + t.Second()))
}

// timeField is getYear() and its sisters. They look at a point in time in the
// local zone, not in the zone the time carries.
func (ev *evaluator) timeField(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	switch v.kind {
	case KindAbsTime:
		t := ev.local(v.int())
		field := 0
		switch n.fn {
		case fnGetYear:
			field = t.Year()
		case fnGetMonth:
			field = int(t.Month())
		case fnGetDayOfYear:
			field = t.YearDay() - 1
		case fnGetDayOfMonth:
			field = t.Day()
		case fnGetDayOfWeek:
			field = int(t.Weekday())
		case fnGetHours:
			field = t.Hour()
		case fnGetMinutes:
			field = t.Minute()
		case fnGetSeconds:
			field = t.Second()
		default:
			return ErrorValue()
		}
		return Int(int64(field))
	case KindRelTime:
		sec := realToInt(v.real())
		switch n.fn {
		case fnGetDays:
			return Int(sec / 86400)
		case fnGetHours:
			return Int(sec % 86400 / 3600)
		case fnGetMinutes:
			return Int(sec % 3600 / 60)
		case fnGetSeconds:
			return Int(sec % 60)
		}
	}
	return ErrorValue()
}

// pointInTime returns v as a point in time with the offset to show it in; ok
// is false for values that are none.
func (ev *evaluator) pointInTime(v Value) (sec int64, offset int, ok bool) {
	switch v.kind {
	case KindInteger:
		sec = v.int()
	case KindReal:
		sec = wholeSeconds(v.real())
	case KindAbsTime:
		return v.int(), int(v.zone), true
	default:
		return 0, 0, false
	}
	offset, _ = zoneAt(sec, ev.env.Location)
	return sec, offset, true
}

func (ev *evaluator) splitTime(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	if v.kind == KindUndefined {
		return v
	}
	a := NewAd()
	if v.kind == KindRelTime {
		splitRelTime(a, v.real())
		return AdValue(a)
	}
	sec, offset, ok := ev.pointInTime(v)
	if !ok {
		return ErrorValue()
	}
	t := time.Unix(sec+int64(offset), 0).UTC()
	a.SetString("Type", "AbsoluteTime")
	a.SetInt("Year", int64(t.Year()))
	a.SetInt("Month", int64(t.Month()))
	a.SetInt("Day", int64(t.Day()))
	a.SetInt("Hours", int64(t.Hour()))
	a.SetInt("Minutes", int64(t.Minute()))
	a.SetInt("Seconds", int64(t.Second()))
	a.SetInt("Offset", int64(offset))
	return AdValue(a)
}

// splitRelTime sets the parts of a duration. A negative one has its sign on
// the largest part that is not zero.
func splitRelTime(a *Ad, f float64) {
	negative := f < 0
	if negative {
		f = -f
	}
	whole := int(int32(wholeSeconds(f)))
	days, hours, mins := int64(whole/86400), int64(whole%86400/3600), int64(whole%86400%3600/60)
	secs := float64(whole%86400%3600%60) + (f - float64(realToInt(f)))
	if negative {
		switch {
		case days > 0:
			days = -days
		case hours > 0:
			hours = -hours
		case mins > 0:
			mins = -mins
		default:
			secs = -secs
		}
	}
	a.SetString("Type", "RelativeTime")
	a.SetInt("Days", days)
	a.SetInt("Hours", hours)
	a.SetInt("Minutes", mins)
	a.SetReal("Seconds", secs)
}

// formatTime prints a point in time with a format of strftime, by default %c.
func (ev *evaluator) formatTime(n *call) Value {
	if len(n.args) > 2 {
		return ErrorValue()
	}
	var d date
	format := "%c"
	if len(n.args) == 0 {
		now := ev.now()
		if now.kind == KindError {
			return now
		}
		d = dateOf(ev.local(now.int()))
	} else {
		v := ev.eval(n.args[0])
		if ev.failed {
			return ErrorValue()
		}
		if v.kind == KindAd {
			d = ev.dateFromAd(v.ad())
		} else {
			sec, offset, ok := ev.pointInTime(v)
			if !ok {
				return ErrorValue()
			}
			d = dateOf(time.Unix(sec+int64(offset), 0).UTC())
		}
	}
	if len(n.args) == 2 {
		v := ev.eval(n.args[1])
		if v.kind != KindString {
			return ErrorValue()
		}
		format = v.str()
	}
	if ev.spend(8 * len(format)); ev.failed {
		return ErrorValue()
	}
	b := d.format(nil, format)
	if len(b) >= maxFormatted {
		b = nil // what does not fit is not written at all
	}
	return ev.text(string(b))
}

// maxFormatted is the room HTCondor has for a formatted time.
const maxFormatted = 1023

// dateFromAd reads the attributes splitTime() makes; those that are missing
// or no integers are zero.
func (ev *evaluator) dateFromAd(a *Ad) date {
	get := func(s string) (int, bool) {
		at := a.lookup(s, hashName(s))
		if at == nil {
			return 0, false
		}
		v := ev.inside(at, a)
		return int(int32(v.num)), v.kind == KindInteger
	}
	var d date
	d.second, _ = get("Seconds")
	d.minute, _ = get("Minutes")
	d.hour, _ = get("Hours")
	d.day, _ = get("Day")
	month, ok := get("Month")
	d.month = month - 1
	if !ok {
		d.month = 0
	}
	year, ok := get("Year")
	d.year = year
	if !ok {
		d.year = 1900
	}
	d.weekday, d.yearday = dayNumbers(d.year, d.month+1, d.day)
	return d
}

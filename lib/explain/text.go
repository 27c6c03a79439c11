// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// maxText bounds what of an expression or a value is shown in a sentence.
const maxText = 300

// word is a value as it is shown: truth in capitals, as everybody writes it in
// a configuration.
func word(v classad.Value) string {
	switch v.Kind() {
	case classad.KindBoolean, classad.KindUndefined, classad.KindError:
		return strings.ToUpper(v.Text(classad.Old))
	case classad.KindReal:
		f, _ := v.AsNumber()
		return strconv.FormatFloat(f, 'g', 6, 64)
	}
	return short(lineEnds.Replace(v.Text(classad.Old)))
}

// lineEnds keeps a value in its line: jobs choose their own, and none may look like a
// line of the explanation.
var lineEnds = strings.NewReplacer("\n", `\n`, "\r", `\r`)

func truthWord(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + " …"
}

// bare is the text of an expression without parentheses around it.
func bare(e *classad.Expr) string { return e.Bare().String() }

// condition is what an expression would have to be: sides that depend on
// nothing are given by their value.
func (f *finder) condition(p place, x classad.Syntax, want bool) string {
	if !isComparison(x) {
		text := bare(p.e)
		if x.Kind == classad.SyntaxBinary || x.Kind == classad.SyntaxChoice {
			text = "(" + text + ")"
		}
		return short(text) + " is " + truthWord(want)
	}
	op := x.Word
	if !want {
		op = opposite[op]
	}
	return short(f.sideText(p, x.Args[0])) + " " + op + " " + short(f.sideText(p, x.Args[1]))
}

func (f *finder) sideText(p place, e *classad.Expr) string {
	if v, ok := f.constant(p, e); ok {
		return word(v)
	}
	text := bare(e)
	if x := e.Syntax(); x.Kind == classad.SyntaxChoice || x.Kind == classad.SyntaxBinary && opposite[x.Word] != "" {
		return "(" + text + ")"
	}
	return text
}

// constant returns the value of an expression that looks at nothing.
func (f *finder) constant(p place, e *classad.Expr) (classad.Value, bool) {
	if f.timely(e) || mentions(e, "random") || len(f.w.reads(e, p.s)) > 0 {
		return classad.Value{}, false
	}
	return f.w.value(e, p.s, supposed{}), true
}

// now says what is there instead of what would have to be.
func (f *finder) now(p place, x classad.Syntax, reads []read) (text string, noJob bool) {
	if f.w.job == nil {
		for _, r := range reads {
			if r.of == ofJob {
				return "that depends on the job", true
			}
		}
	}
	parts := []*classad.Expr{p.e}
	if isComparison(x) {
		parts = nil
		for _, a := range x.Args {
			if _, ok := f.constant(p, a); !ok {
				parts = append(parts, a)
			}
		}
	}
	var said []string
	for _, e := range parts {
		v := f.w.value(e, p.s, supposed{})
		s := e.Syntax()
		if s.Kind == classad.SyntaxName {
			name, there := f.owned(p, s)
			switch {
			case !there:
				said = append(said, name)
			case len(parts) == 1:
				said = append(said, "it is "+word(v)+" now")
			default:
				said = append(said, name+" is "+word(v))
			}
			continue
		}
		if len(parts) == 1 {
			said = append(said, "it is "+word(v)+" now")
		} else {
			said = append(said, short(bare(e))+" is "+word(v))
		}
		for _, r := range reads {
			_, there := f.w.lookup(r.of, r.name)
			switch {
			case there || !mentions(e, r.name):
			case r.nowhere:
				said = append(said, r.name+" is in neither ad")
			default:
				said = append(said, f.absent(r.of, r.name))
			}
		}
	}
	return strings.Join(said, ", "), false
}

// owned is an attribute with the ad it stands in: "the job's RequestMemory".
// Of one that is not there it says that.
func (f *finder) owned(p place, x classad.Syntax) (text string, there bool) {
	s := p.s
	if x.Scope == "TARGET" {
		s = !s
	}
	if _, ok := f.w.lookup(s, x.Word); ok {
		return "the " + s.String() + "'s " + x.Word, true
	}
	if x.Scope == "" {
		if _, ok := f.w.lookup(!s, x.Word); ok {
			return "the " + (!s).String() + "'s " + x.Word, true
		}
		return x.Word + " is in neither ad", false
	}
	return f.absent(s, x.Word), false
}

func (f *finder) absent(s side, name string) string {
	if f.w.missing(name) {
		return name + " is not in the " + s.String() + "'s ad"
	}
	return name + " is not in the " + s.String() + "'s ad, only in the " + (!s).String() + "'s"
}

// Sentence says in one line or several what is missing. name is what the
// expression is called.
func (r Residual) Sentence(name string) string {
	truth := truthWord(r.Want)
	switch {
	case r.Is:
		return name + " is " + truth
	case r.Never && r.Need.Condition != "":
		return name + " is " + r.Value + ": " + r.Need.line(nil)
	case r.Never:
		return name + " is " + r.Value + ", and nothing would make it " + truth + ":\n" + strings.Join(r.Need.nevers(), "\n")
	case r.Need == nil:
		return name + " is " + r.Value
	}
	would, so := name+" would be "+truth+" if ", " were so"
	if len(r.Changes) == 0 && r.Forecast == nil && !r.Need.noJob() {
		would, so = name+" is "+r.Value+"; for "+truth+" it lacks ", ""
	}
	if len(r.Need.All) == 0 && len(r.Need.Any) == 0 {
		return would + r.Need.line(r.Forecast)
	}
	head := "all of these" + so
	if len(r.Need.Any) > 0 {
		head = "one of these" + so
	}
	if r.Forecast != nil {
		head += ", which comes " + r.Forecast.String()
	}
	return would + head + ":\n" + strings.Join(r.Need.lines("  "), "\n")
}

// nevers are the lines of what nothing changes.
func (n *Need) nevers() []string {
	if n.Never {
		return n.lines("  ")
	}
	var out []string
	for _, list := range [][]Need{n.All, n.Any} {
		for i := range list {
			if list[i].never() {
				out = append(out, list[i].nevers()...)
			}
		}
	}
	return out
}

func (n *Need) noJob() bool {
	if n.NoJob {
		return true
	}
	for _, list := range [][]Need{n.All, n.Any} {
		for i := range list {
			if list[i].noJob() {
				return true
			}
		}
	}
	return false
}

// lines prints a condition, each line behind indent.
func (n *Need) lines(indent string) []string {
	if n.Condition != "" {
		return []string{indent + n.line(n.Forecast)}
	}
	list, head := n.All, "all of these:"
	if len(n.Any) > 0 {
		list, head = n.Any, "one of these:"
	}
	var out []string
	for i := range list {
		x := &list[i]
		if x.Condition == "" {
			h := "all of these:"
			if len(x.Any) > 0 {
				h = "one of these:"
			}
			out = append(out, indent+h)
			out = append(out, x.lines(indent+"  ")...)
			continue
		}
		out = append(out, x.lines(indent)...)
	}
	if len(out) == 0 {
		return []string{indent + head}
	}
	return out
}

// line prints a single condition: "KeyboardIdle > 900; it is 34 now, in 14 min
// 27 s if nobody types".
func (n *Need) line(when *Forecast) string {
	s := n.Condition
	if n.Now != "" {
		s += "; " + n.Now
	}
	if when != nil {
		s += ", " + when.String()
	}
	if n.In != "" {
		s += " (in " + n.In + ")"
	}
	return s
}

// String says when: "in 14 min 27 s if nobody types".
func (f *Forecast) String() string {
	s := "in " + Span(f.After())
	if f.Provided != "" {
		s += " if " + f.Provided
	}
	return s
}

// Span prints a duration as people say it, to the second, beyond a day to the
// minute.
func Span(d time.Duration) string {
	sec := int64(d / time.Second)
	day, hour, minute := sec/86400, sec/3600%24, sec/60%60
	switch {
	case sec < 60:
		return fmt.Sprintf("%d s", sec)
	case sec < 3600:
		return fmt.Sprintf("%d min %d s", minute, sec%60)
	case day == 0:
		return fmt.Sprintf("%d h %d min", hour, minute)
	}
	return fmt.Sprintf("%d d %d h %d min", day, hour, minute)
}

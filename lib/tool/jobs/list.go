// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// Form is how a list of jobs looks.
type Form int

// The forms.
const (
	Table    Form = iota // a line for a job, and headings
	Long                 // ads in the old syntax, an empty line behind each
	Lines                // ads in JSON, one to a line
	Accounts             // a paragraph for a job, an empty line between them
	JSON                 // one list of ads in JSON, laid out as condor_history -json does
)

// List is a list of jobs that is being printed.
type List struct {
	w     io.Writer
	table *tabwriter.Writer
	form  Form
	place *time.Location
	shown int // so many jobs
}

// NewList begins a list. Times are those of place.
func NewList(w io.Writer, form Form, place *time.Location) *List {
	return &List{w: w, table: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), form: form, place: place}
}

// Len is how many jobs were shown so far.
func (l *List) Len() int { return l.shown }

// Show prints one job. The error is the writer's; a table is written by Close.
func (l *List) Show(ad *classad.Ad) error {
	l.shown++
	var err error
	switch l.form {
	case JSON:
		between := ",\n"
		if l.shown == 1 {
			between = "[\n"
		}
		_, err = fmt.Fprint(l.w, between, ad.JSON(), "\n")
	case Lines:
		_, err = fmt.Fprintln(l.w, ad.JSON())
	case Accounts:
		between := ""
		if l.shown > 1 {
			between = "\n"
		}
		_, err = fmt.Fprint(l.w, between, Account(ad, l.place))
	case Long:
		_, err = fmt.Fprintf(l.w, "%s\n", ad.Text(classad.Old))
	default:
		err = l.row(ad)
	}
	return err
}

// Close ends the list. The error is the writer's.
func (l *List) Close() error {
	switch {
	case l.form == JSON && l.shown == 0:
		_, err := fmt.Fprint(l.w, "[\n]\n")
		return err
	case l.form == JSON:
		_, err := fmt.Fprint(l.w, "]\n")
		return err
	}
	return l.table.Flush()
}

func (l *List) row(ad *classad.Ad) error {
	if l.shown == 1 { // a heading above nothing looks like a mistake
		fmt.Fprintln(l.table, "ID\tOWNER\tSLOT\tENDED\tWALL\tEND\tCMD")
	}
	_, err := fmt.Fprintf(l.table, "%d.%d\t%s\t%s\t%s\t%s\t%s\t%s\n", number(ad, "ClusterId"), number(ad, "ProcId"), shown(ad, "Owner"), shown(ad, "RemoteHost"),
		l.ended(ad), words.Short(Wall(ad)), End(ad), shown(ad, "Cmd"))
	return err
}

// ended is when a job ended, "-" where its ad does not say.
func (l *List) ended(ad *classad.Ad) string {
	at := number(ad, "CompletionDate")
	if at <= 0 {
		return "-"
	}
	return time.Unix(at, 0).In(l.place).Format(time.DateTime)
}

// shown is a text that others chose, for a terminal and in one column.
func shown(ad *classad.Ad, name string) string { return words.Printable(text(ad, name)) }

// mostPlaces is how many files None names.
const mostPlaces = 3

// None says that there is no job to show, and where it was looked: in histories, or
// "" for none that could be read. chosen says that only some jobs were wanted.
func None(where []string, chosen bool) string {
	said := "no job has been recorded"
	if chosen {
		said = "no recorded job meets the constraint"
	}
	switch n := len(where); {
	case n == 0:
		return said + ": no history of this user or of this machine's configuration is known; -file or -config names one"
	case n > mostPlaces:
		return fmt.Sprintf("%s; looked in %s and %s", said, words.Printable(strings.Join(where[:mostPlaces], ", ")), spelling.Count(n-mostPlaces, "other file"))
	}
	return said + "; looked in " + words.Printable(strings.Join(where, ", "))
}

func text(ad *classad.Ad, name string) string { s, _ := ad.EvalString(name, nil); return s }

func number(ad *classad.Ad, name string) int64 { n, _ := ad.EvalInt(name, nil); return n }

// End is how a job ended, in a word or two: status 0, signal 9, held, evicted, or
// lost where its ad does not say.
func End(ad *classad.Ad) string {
	switch signal, ok := ad.EvalBool("ExitBySignal", nil); {
	case text(ad, "HoldReason") != "":
		return "held"
	case text(ad, "VacateReason") != "":
		return "evicted"
	case ok && signal:
		return fmt.Sprintf("signal %d", number(ad, "ExitSignal"))
	case ok:
		return fmt.Sprintf("status %d", number(ad, "ExitCode"))
	}
	return "lost"
}

// Wall is how long a job ran.
func Wall(ad *classad.Ad) time.Duration {
	whole := number(ad, "RemoteWallClockTime")
	// That has whole seconds only; the other one is finer, where it says the same.
	if secs, ok := ad.EvalReal("JobDuration", nil); ok && secs >= 0 && int64(secs) == whole {
		return time.Duration(secs * float64(time.Second))
	}
	return time.Duration(whole) * time.Second
}

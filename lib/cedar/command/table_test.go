// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fact is a row of testdata/htcondor.tsv: a command as HTCondor 25.14 numbers and
// registers it.
type fact struct {
	number          int
	name            string
	startd, starter string // the level, "" where it is not registered
}

func facts(t *testing.T) []fact {
	t.Helper()
	f, err := os.Open("testdata/htcondor.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []fact
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if len(cells) != 4 {
			t.Fatalf("%q has %d cells, want 4", lines.Text(), len(cells))
		}
		n, err := strconv.Atoi(cells[0])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fact{n, cells[1], cells[2], cells[3]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// others are the rows whose level is not that of HTCondor's daemon, with the
// reason.
var others = map[int]string{
	StartSSHD:    "whoever may READ is not the job's owner, which the handler asks for",
	StarterPeek:  "whoever may READ is not the job's owner, which the handler asks for",
	DCQueryReady: "condor_master's, at READ; condor_who may ask any daemon",
}

// level is what a row demands, as the file writes it.
func level(r Row, ok bool) string {
	if !ok {
		return ""
	}
	text := r.Level.String()
	for _, l := range r.Alternatives {
		text += "|" + l.String()
	}
	return text
}

// Numbers, names and levels are HTCondor's.
func TestTableIsHTCondors(t *testing.T) {
	t.Parallel()
	known := map[int]fact{}
	for _, f := range facts(t) {
		known[f.number] = f
	}
	for _, e := range table {
		f, ok := known[e.number]
		if e.number == ExecpointLook || e.number == ExecpointChange {
			if ok {
				t.Errorf("%s has a number of HTCondor's %s", e.name, f.name)
			}
			continue
		}
		if !ok || f.name != e.name {
			t.Errorf("%d is %s, HTCondor has %q", e.number, e.name, f.name)
		}
		startd, isStartd := Startd.Row(e.number)
		if got := level(startd, isStartd); isStartd && (got != f.startd) != (others[e.number] != "") {
			t.Errorf("condor_startd: %s demands %q, HTCondor's %q, with the reason %q", e.name, got, f.startd, others[e.number])
		}
		starter, isStarter := Starter.Row(e.number)
		if got := level(starter, isStarter); isStarter && (got != f.starter) != (others[e.number] != "") {
			t.Errorf("condor_starter: %s demands %q, HTCondor's %q, with the reason %q", e.name, got, f.starter, others[e.number])
		}
	}
}

// The table has each number and each name once, in order.
func TestTableIsOrdered(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for i, e := range table {
		if i > 0 && e.number <= table[i-1].number {
			t.Errorf("%s (%d) stands behind %s (%d)", e.name, e.number, table[i-1].name, table[i-1].number)
		}
		if names[e.name] || e.name == "" {
			t.Errorf("the name %q of %d is empty or another's", e.name, e.number)
		}
		names[e.name] = true
	}
}

// A command without a payload proves nothing by it, one in datagrams has no
// answer and no second message: neither can have a message of its own size.
func TestTermsGoTogether(t *testing.T) {
	t.Parallel()
	for _, a := range []Answerer{Startd, Starter} {
		for _, r := range a.Rows() {
			if r.Empty && r.Message != 0 || r.Datagrams && r.Message != 0 {
				t.Errorf("%s: %+v", r.Name, r.Terms)
			}
			if r.Level >= Levels || r.Level == Default || r.Level == ClientLevel {
				t.Errorf("%s demands %v, which nobody can have", r.Name, r.Level)
			}
		}
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	if r, ok := Startd.Row(RequestClaim); !ok || r.Name != "REQUEST_CLAIM" || r.Level != Daemon || r.Message != JobMessage || !r.Acts() {
		t.Errorf("REQUEST_CLAIM: %+v, %t", r, ok)
	}
	if r, ok := Starter.Row(RequestClaim); ok || r.Number != RequestClaim || r.Name != "REQUEST_CLAIM" {
		t.Errorf("a starter answers REQUEST_CLAIM: %+v, %t", r, ok)
	}
	if r, ok := Startd.Row(4711); ok || r.Name != "" || r.Number != 4711 {
		t.Errorf("4711: %+v, %t", r, ok)
	}
	if r, _ := Startd.Row(QueryStartdAds); r.Acts() {
		t.Error("a question acts")
	}
	if got := Name(QueryScheddAds) + " " + Name(4711) + " " + Name(-1); got != "QUERY_SCHEDD_ADS 4711 -1" {
		t.Error(got)
	}
	both := []Answerer{Startd, Starter}
	if d := cmp.Diff(row(t, both[0], CCBReverseConnect), row(t, both[1], CCBReverseConnect)); d != "" {
		t.Errorf("CCB_REVERSE_CONNECT, which has one row for both: %s", d)
	}
	if !slices.IsSortedFunc(Startd.Rows(), func(a, b Row) int { return a.Number - b.Number }) {
		t.Error("the rows are not in order")
	}
}

func row(t *testing.T, a Answerer, n int) Row {
	t.Helper()
	r, ok := a.Row(n)
	if !ok {
		t.Fatalf("no row for %d", n)
	}
	return r
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// standing is what the report says of a test that carries a row.
type standing struct {
	ran bool
	why string // it did not
}

// standings are the standing of every test by the row that it carries.
type standings map[string]map[testKey]standing

func (s standings) set(row string, key testKey, as standing) {
	if s[row] == nil {
		s[row] = map[testKey]standing{}
	}
	s[row][key] = as
}

// proven says whether a test that ran carries the row.
func (s standings) proven(row string) bool {
	for _, as := range s[row] {
		if as.ran {
			return true
		}
	}
	return false
}

const notYet = "not yet run"

// hidden takes what cell escaped out of the way of those that part cells and
// entries; shown gives it back without the escapes.
var (
	hidden = strings.NewReplacer(`\|`, "\x01", `\<`, "\x02")
	shown  = strings.NewReplacer("\x01", "|", "\x02", "<", `\*`, "*", `\_`, "_")
)

var reportRow = regexp.MustCompile(`^\| (S[0-9]-[0-9]{3}) \|`)

// parseReport reads back what render wrote: which tests carry which row, and
// which of them ran. What the tests were when it was written stands nowhere else.
func parseReport(name, text string) (standings, error) {
	said := standings{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		m := reportRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		wrong := func(what string) (standings, error) {
			return nil, fmt.Errorf("%s:%d: %s; it is written by: go run ./ci/rows -results FILES", name, n, what)
		}
		row, cells := m[1], strings.Split(hidden.Replace(line), " |")
		if want := columnsBefore + int(kinds) + 2; len(cells) != want { // the last is empty
			return wrong(fmt.Sprintf("%d columns, want %d", len(cells)-1, want-1))
		}
		if said[row] != nil {
			return wrong("row " + row + " stands there twice")
		}
		said[row] = map[testKey]standing{}
		for i, cell := range cells[columnsBefore : len(cells)-1] {
			for _, entry := range strings.Split(strings.TrimSpace(cell), "<br>") {
				if entry == "" {
					continue
				}
				names, why, _ := strings.Cut(entry, ": ")
				folder, list, ok := strings.Cut(names, " ")
				if last := i == int(kinds); !ok || last != (why != "") {
					return wrong(fmt.Sprintf("cannot read %q", entry))
				}
				for _, test := range strings.Split(list, ", ") {
					said.set(row, testKey{folder, test}, standing{ran: i < int(kinds), why: shown.Replace(why)})
				}
			}
		}
	}
	return said, nil
}

// compare names each test that the report has and the comments do not, and the
// other way round.
func compare(rows table, proofs map[string][]proof, said standings) []string {
	var faults []string
	for _, r := range rows.list {
		carried := map[testKey]bool{}
		for _, p := range proofs[r.id] {
			carried[p.testKey] = true
			if _, ok := said[r.id][p.testKey]; !ok {
				faults = append(faults, fmt.Sprintf("%s: %s carries it, but %s does not say so; run: go run ./ci/rows", r.id, p.testKey, reportFile))
			}
		}
		for _, key := range sortedKeys(said[r.id]) {
			if !carried[key] {
				faults = append(faults, fmt.Sprintf("%s: %s says that %s carries it, but no comment does; run: go run ./ci/rows", r.id, reportFile, key))
			}
		}
	}
	return faults
}

func sortedKeys[V any](m map[testKey]V) []testKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b testKey) int { return strings.Compare(a.String(), b.String()) })
}

// keep gives every proof the standing that the report has for it. A test that
// is new to a row has the standing it has for others, and one that is new to
// the report was not yet run.
func keep(proofs map[string][]proof, said standings) standings {
	known := map[testKey]standing{}
	for _, row := range slices.Sorted(maps.Keys(said)) {
		maps.Copy(known, said[row])
	}
	now := standings{}
	for row, list := range proofs {
		for _, p := range list {
			as, ok := said[row][p.testKey]
			if !ok {
				as, ok = known[p.testKey]
			}
			if !ok {
				as = standing{why: notYet}
			}
			now.set(row, p.testKey, as)
		}
	}
	return now
}

// stand gives every proof the standing that the results have for it, and
// names those that no run has.
func stand(proofs map[string][]proof, r *results) (now standings, missing []string) {
	now = standings{}
	for _, row := range slices.Sorted(maps.Keys(proofs)) {
		for _, p := range proofs[row] {
			f, why := r.of(p)
			if f == notRun {
				missing = append(missing, p.testKey.String())
			}
			now.set(row, p.testKey, standing{ran: f == ran, why: why})
		}
	}
	slices.Sort(missing)
	return now, slices.Compact(missing)
}

// add keeps what was said, but for what ran or failed now, and for what there
// was nothing to say of.
func add(proofs map[string][]proof, said standings, r *results) standings {
	now := keep(proofs, said)
	for row, list := range proofs {
		for _, p := range list {
			f, why := r.of(p)
			old := now[row][p.testKey]
			if f == ran || f == failed || f == skipped && !old.ran {
				now.set(row, p.testKey, standing{ran: f == ran, why: why})
			}
		}
	}
	return now
}

// hold compares the report with results: it may neither call proven what did
// not run, nor leave out what did. One line names all the rows of a test.
func hold(rows table, proofs map[string][]proof, said standings, r *results) []string {
	lines := map[string][]string{} // the rows by what is to be said of them
	for _, row := range rows.list {
		for _, p := range proofs[row.id] {
			f, why := r.of(p)
			as, ok := said[row.id][p.testKey]
			var line string
			switch {
			case !ok || as.ran == (f == ran):
				continue
			case f == ran:
				line = fmt.Sprintf("%s ran, but %s says that it did not (%s) for", p.testKey, reportFile, as.why)
			case f == skipped:
				line = fmt.Sprintf("%s was skipped (%s), but %s says that it ran for", p.testKey, why, reportFile)
			case f == failed:
				line = fmt.Sprintf("%s failed, but %s says that it ran for", p.testKey, reportFile)
			default:
				line = fmt.Sprintf("%s is not in the results (%s), but %s says that it ran for", p.testKey, why, reportFile)
			}
			lines[line] = append(lines[line], row.id)
		}
	}
	var faults []string
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		faults = append(faults, line+" "+strings.Join(lines[line], ", "))
	}
	if len(faults) > 0 {
		faults = append(faults, "run: go run ./ci/rows -results FILES, with those of all runs")
	}
	return faults
}

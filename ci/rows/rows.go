// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// row is one line of docs/coverage.tsv: one thing that the documents ask for.
type row struct {
	id      string // S<seed>-<number>
	scope   string // EP, AP or CM: whose business it is
	section string
	feature string
	fact    string // what a test can observe
}

// table is the rows in the order of the file.
type table struct {
	list []row
	byID map[string]row
}

const head = "row\tscope\tsection\tfeature\tfact"

var idForm = regexp.MustCompile(`^S[0-9]-[0-9]{3}$`)

// parseRows reads the file of rows. Every bad line is in the error.
func parseRows(name, text string) (table, error) {
	t := table{byID: map[string]row{}}
	var bad []error
	fail := func(line int, format string, args ...any) {
		bad = append(bad, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if n == 1 {
			if line != head {
				fail(n, "the first line is not %q", head)
			}
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 5 {
			fail(n, "%d columns, want 5", len(cells))
			continue
		}
		r := row{cells[0], cells[1], cells[2], cells[3], cells[4]}
		switch {
		case !idForm.MatchString(r.id):
			fail(n, "row id %q, want the form S0-001", r.id)
		case t.byID[r.id].id != "":
			fail(n, "row %s stands there twice", r.id)
		case r.scope != "EP" && r.scope != "AP" && r.scope != "CM":
			fail(n, "scope %q of %s, want EP, AP or CM", r.scope, r.id)
		case r.feature == "" || r.fact == "":
			fail(n, "%s has no feature or no fact", r.id)
		default:
			t.list = append(t.list, r)
			t.byID[r.id] = r
		}
	}
	if n == 0 {
		fail(1, "the file is empty")
	}
	return t, errors.Join(bad...)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Number writes a number for a Resource cell: as an integer when it is one,
// else with two digits after the point.
func Number(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// Quote writes s as a ClassAd string, for a Property or an Assigned cell.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// The table's fixed measures. A name fills nameWidth characters together with
// its unit; the columns are at least this wide and grow with their cells.
const (
	nameWidth   = 20
	cellWidth   = 8
	allocWidth  = 9
	tableHeader = "\tPartitionable Resources :"
)

// resourceUnits are the units shown behind a name.
func resourceUnit(name string) string {
	switch name {
	case "Memory", "GpusMemory":
		return " (MB)"
	case "Disk":
		return " (KB)"
	case "Gpus":
		return " (Average)"
	case "TimeExecute", "TimeSlotBusy":
		return " (s)"
	}
	return ""
}

// column is one column of the table. An integer in a column that has a
// fraction gets three blanks behind it, so that the points stand in line.
type column struct {
	width    int
	fraction bool
}

func (c *column) fit(cell string) {
	if i := strings.LastIndexByte(cell, '.'); i > 0 && i == len(cell)-3 && isDigits(strings.TrimPrefix(cell[:i], "-")) && isDigits(cell[i+1:]) {
		c.fraction = true
	}
}

func (c *column) widen(cell string) {
	n := len(cell)
	if c.fraction && isDigits(cell) {
		n += 3
	}
	c.width = max(c.width, n)
}

func (c *column) append(dst []byte, cell string) []byte {
	pad := c.width - len(cell)
	after := 0
	if c.fraction && isDigits(cell) {
		after = 3
	}
	for range pad - after {
		dst = append(dst, ' ')
	}
	dst = appendText(dst, cell)
	for range after {
		dst = append(dst, ' ')
	}
	return dst
}

func isDigits(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// appendResources writes the table, nothing for no resources. Rows are sorted
// by name, ignoring case.
func appendResources(dst []byte, list []Resource) []byte {
	if len(list) == 0 {
		return dst
	}
	byName := func(a, b Resource) int { return compareFold(a.Name, b.Name) }
	if !slices.IsSortedFunc(list, byName) {
		list = slices.Clone(list)
		slices.SortStableFunc(list, byName)
	}
	use, req, alloc := column{width: cellWidth}, column{width: cellWidth}, column{}
	assigned := column{}
	name := nameWidth
	for _, r := range list {
		use.fit(r.Usage)
		req.fit(r.Request)
		alloc.fit(r.Allocated)
		name = max(name, len(r.Name)+8)
	}
	for _, r := range list {
		use.widen(r.Usage)
		req.widen(r.Request)
		alloc.widen(r.Allocated)
		assigned.widen(r.Assigned)
	}
	allocTitle, assignedTitle := "", ""
	if alloc.width > 0 {
		allocTitle = "Allocated"
	}
	if assigned.width > 0 {
		assignedTitle = "Assigned"
	}
	alloc.width = max(alloc.width, allocWidth)

	row := func(a, b, c, d string) {
		dst = use.append(append(dst, ' '), a)
		dst = req.append(append(dst, ' '), b)
		dst = alloc.append(append(dst, ' '), c)
		dst = appendText(append(dst, ' '), d)
		dst = append(dst, '\n')
	}
	dst = append(dst, tableHeader...)
	row("Usage", "Request", allocTitle, assignedTitle)
	for _, r := range list {
		dst = append(dst, "\t   "...)
		start := len(dst)
		dst = appendText(dst, r.Name)
		dst = append(dst, resourceUnit(r.Name)...)
		for len(dst)-start < name {
			dst = append(dst, ' ')
		}
		dst = append(dst, " :"...)
		row(r.Usage, r.Request, r.Allocated, r.Assigned)
	}
	return dst
}

// tableReader reads the rows of a table whose header it was made from. The
// columns are found by the right edges of their titles, counted from the
// colon, as every row has its own colon there.
type tableReader struct{ use, req, alloc, assigned int }

func newTableReader(header string) (tableReader, bool) {
	_, titles, ok := strings.Cut(header, ":")
	if !ok {
		return tableReader{}, false
	}
	var t tableReader
	edge := func(title string) int {
		if i := strings.Index(titles, title); i >= 0 {
			return i + len(title)
		}
		return 0
	}
	t.use, t.req, t.alloc = edge("Usage"), edge("Request"), edge("Allocated")
	if i := strings.Index(titles, "Assigned"); i >= 0 {
		t.assigned = i
	}
	return t, t.use > 0 && t.req > t.use && (t.alloc == 0 || t.alloc > t.req) && (t.assigned == 0 || t.assigned > t.alloc)
}

func (t tableReader) row(line string) (Resource, bool) {
	label, cells, ok := strings.Cut(line, ":")
	name, _, _ := strings.Cut(strings.TrimLeft(label, "\t "), " ")
	if !ok || name == "" {
		return Resource{}, false
	}
	cut := func(from, to int) string {
		if from > len(cells) || to <= from {
			return ""
		}
		return strings.TrimSpace(cells[from:min(to, len(cells))])
	}
	r := Resource{Name: name, Usage: cut(0, t.use), Request: cut(t.use, t.req), Allocated: cut(t.req, t.alloc)}
	if t.assigned > 0 {
		r.Assigned = cut(t.assigned, len(cells))
	}
	return r, true
}

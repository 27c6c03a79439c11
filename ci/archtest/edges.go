// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is one broken rule. From and To are packages where the rule is
// about an import; Where is file:line, or empty for what has no place.
type Violation struct {
	Where    string
	From, To string
	Rule     string
}

// String prints the place, the edge and the rule in one line.
func (v Violation) String() string {
	var b strings.Builder
	if v.Where != "" {
		b.WriteString(v.Where + ": ")
	}
	b.WriteString(v.From)
	if v.To != "" {
		b.WriteString(" → " + v.To)
	}
	return b.String() + ": " + v.Rule
}

// CheckGraph compares every import of g with the layers, and the list of
// packages with the tree.
func CheckGraph(l Layers, g Graph) []Violation {
	c := graphCheck{layers: l, graph: g}
	there := map[string]bool{}
	for _, p := range g.Packages {
		there[p.Path] = true
		r := l.Packages[p.Path]
		if r == nil {
			c.add("", p.Path, "", "the package is not in ci/layers.txt; give it a line in its level")
			continue
		}
		if r.Later {
			c.add("", p.Path, "", fmt.Sprintf("the package is there now; take the mark later off it (ci/layers.txt:%d)", r.Line))
		}
		for _, i := range p.Imports {
			c.edge(r, i, false)
		}
		for _, i := range p.TestImports {
			c.edge(r, i, true)
		}
	}
	for path, r := range l.Packages {
		if !there[path] && !r.Later {
			c.add("", path, "", fmt.Sprintf("listed in ci/layers.txt:%d but there is no such package", r.Line))
		}
	}
	slices.SortFunc(c.found, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
	return c.found
}

type graphCheck struct {
	layers Layers
	graph  Graph
	found  []Violation
}

func (c *graphCheck) add(where, from, to, rule string) {
	c.found = append(c.found, Violation{Where: where, From: from, To: to, Rule: rule})
}

// edge judges one import of the package that r describes.
func (c *graphCheck) edge(r *Rule, i Import, test bool) {
	ours := i.Path == c.graph.Module || strings.HasPrefix(i.Path, c.graph.Module+"/")
	switch {
	case ours:
		c.inside(r, i, test)
	case !strings.Contains(firstSegment(i.Path), "."): // a path without a dot in front is the standard library
		if !test {
			if why, bad := forbiddenImport(r, i.Path); bad {
				c.add(i.Where, r.Path, i.Path, why)
			}
		}
	default:
		c.module(r, i, test)
	}
}

func firstSegment(path string) string {
	s, _, _ := strings.Cut(path, "/")
	return s
}

// inside judges an import of another package of this module.
func (c *graphCheck) inside(r *Rule, i Import, test bool) {
	path := relative(c.graph.Module, i.Path)
	to := c.layers.Packages[path]
	switch {
	case to == r: // an external test imports what it tests
	case to == nil:
		c.add(i.Where, r.Path, path, "the imported package is not in ci/layers.txt")
	case to.TestOnly && test:
	case to.TestOnly && !r.TestOnly:
		c.add(i.Where, r.Path, path, fmt.Sprintf("the package is for tests only (ci/layers.txt:%d)", to.Line))
	case test && slices.Contains(r.TestMay, path):
	default:
		if why := refused(r, to); why != "" {
			c.add(i.Where, r.Path, path, why)
		}
	}
}

// refused says why from may not import to; empty means it may.
func refused(from, to *Rule) string {
	f, t := from.Group, to.Group
	switch {
	case f == t:
		if slices.Contains(from.May, to.Path) {
			return ""
		}
		return fmt.Sprintf("both are in %s, and ci/layers.txt:%d does not name this edge after <-", f.Name, from.Line)
	case f.Level && t.Level:
		if t.Order < f.Order {
			return ""
		}
		return fmt.Sprintf("%s may not import %s, which is above it", f.Name, t.Name)
	case f.Level:
		return fmt.Sprintf("%s may not import %s: levels import only levels", f.Name, t.Name)
	case slices.Contains(f.Sees, "*"), t.Level && slices.Contains(f.Sees, t.Name), slices.Contains(f.Sees, to.Path):
		return ""
	default:
		return fmt.Sprintf("%s sees only %s (ci/layers.txt:%d)", f.Name, orNothing(f.Sees), f.Line)
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "itself"
	}
	return strings.Join(names, ", ")
}

// module judges an import of a module that is not ours.
func (c *graphCheck) module(r *Rule, i Import, test bool) {
	for _, m := range c.layers.Modules {
		if i.Path != m.Path && !strings.HasPrefix(i.Path, m.Path+"/") {
			continue
		}
		for _, in := range m.In {
			folder, deep := strings.CutSuffix(in, "/...")
			if in == "tests" && (test || r.TestOnly) || r.Path == folder || deep && strings.HasPrefix(r.Path, folder+"/") {
				return
			}
		}
		c.add(i.Where, r.Path, i.Path, fmt.Sprintf("%s may be imported only in %s (ci/layers.txt:%d)", m.Path, strings.Join(m.In, ", "), m.Line))
		return
	}
	c.add(i.Where, r.Path, i.Path, "the module is not in ci/layers.txt; a new one needs a line there and in docs/dependencies.md")
}

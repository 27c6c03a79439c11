// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// testKey names a test function: the folder it stands in, and its name.
type testKey struct{ folder, test string }

func (k testKey) String() string { return k.folder + " " + k.test }

// proof is one test that carries a row.
type proof struct {
	testKey
	whole   bool     // the comment stands above the function, or its entry has no name that can be seen
	entries []string // otherwise the parts of the test that carry it
}

var (
	marker   = regexp.MustCompile(`^//\s?row:(.*)$`)
	nearMiss = regexp.MustCompile(`^//\s*(?i:rows?)\b\s*:?.*\bS[0-9]-[0-9]+`)
)

// findProofs collects the row comments of all test files: by row id, each test
// once, in the order of the files. The faults say file:line.
func findProofs(rows table, files []source.File) (map[string][]proof, []string) {
	proofs := map[string][]proof{}
	var faults []string
	for _, f := range files {
		fault := func(p token.Pos, format string, args ...any) {
			faults = append(faults, f.Where(p)+": "+fmt.Sprintf(format, args...))
		}
		for _, group := range f.AST.Comments {
			for _, c := range group.List {
				m := marker.FindStringSubmatch(c.Text)
				switch {
				case m == nil && f.IsTest() && nearMiss.MatchString(c.Text):
					fault(c.Pos(), "looks like a row comment but is not one; want \"// row: S0-001, S0-002\"")
				case m == nil:
				case !f.IsTest():
					if idList.MatchString(m[1]) {
						fault(c.Pos(), "a row comment outside a test file proves nothing")
					}
				default:
					tests := testsOf(files, f, c)
					if len(tests) == 0 {
						fault(c.Pos(), "the row comment belongs to no test; put it directly above a test function, inside one, or in a table that one ranges over")
						continue
					}
					if i := slices.IndexFunc(tests, func(t test) bool { return skipsAlways(t.fn) }); i >= 0 {
						fault(c.Pos(), "%s skips before it tests anything, so it proves no row", tests[i].fn.Name.Name)
						continue
					}
					for id := range strings.SplitSeq(m[1], ",") {
						id = strings.TrimSpace(id)
						if _, ok := rows.byID[id]; !ok {
							fault(c.Pos(), "unknown row %q", id)
							continue
						}
						for _, t := range tests {
							proofs[id] = addProof(proofs[id], testKey{f.Dir(), t.fn.Name.Name}, entryName(packageOf(files, f), f, group, t.fn))
						}
					}
				}
			}
		}
	}
	return proofs, faults
}

// addProof notes that a test carries a row, or one part of it if that is named.
func addProof(list []proof, key testKey, entry string) []proof {
	i := slices.IndexFunc(list, func(p proof) bool { return p.testKey == key })
	if i < 0 {
		i, list = len(list), append(list, proof{testKey: key})
	}
	switch p := &list[i]; {
	case entry == "":
		p.whole = true
	case !slices.Contains(p.entries, entry):
		p.entries = append(p.entries, entry)
	}
	slices.SortFunc(list, func(a, b proof) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.test, b.test))
	})
	return list
}

var idList = regexp.MustCompile(`S[0-9]-[0-9]`)

// test is a test function and the file it stands in.
type test struct {
	file string
	fn   *ast.FuncDecl
}

// packageOf are the files of f's package.
func packageOf(files []source.File, f source.File) []source.File {
	var list []source.File
	for _, other := range files {
		if other.Dir() == f.Dir() && other.AST.Name.Name == f.AST.Name.Name {
			list = append(list, other)
		}
	}
	return list
}

// testsOf returns the tests that the comment belongs to: the one that it
// documents or stands in, or those of the same folder that range over the
// table it stands in.
func testsOf(files []source.File, f source.File, c *ast.Comment) []test {
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if isTest(d) && within(c, d, d.Doc) {
				return []test{{f.Path, d}}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && len(v.Names) == 1 && within(c, v, nil) {
					return rangingOver(files, f, v.Names[0].Name)
				}
			}
		}
	}
	return nil
}

// within says whether the comment stands in the node or its documentation.
func within(c, n ast.Node, doc *ast.CommentGroup) bool {
	from := n.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	return from <= c.Pos() && c.End() <= n.End()
}

// rangingOver finds the tests in the folder and package of f that range over
// the package's variable of that name.
func rangingOver(files []source.File, f source.File, name string) []test {
	var found []test
	for _, other := range packageOf(files, f) {
		if !other.IsTest() {
			continue
		}
		for _, d := range other.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !isTest(fn) {
				continue
			}
			ranges := false
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.RangeStmt); ok {
					if x, ok := r.X.(*ast.Ident); ok && x.Name == name {
						ranges = true
					}
				}
				return !ranges
			})
			if ranges {
				found = append(found, test{other.Path, fn})
			}
		}
	}
	return found
}

// isTest recognises what the go command runs as a test: TestX(t *testing.T)
// and FuzzX(f *testing.F), whose seeds run every time.
func isTest(fn *ast.FuncDecl) bool {
	if fn.Recv != nil || fn.Body == nil || fn.Type.Results != nil || len(fn.Type.Params.List) != 1 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch sel.Sel.Name {
	case "T":
		return runnable(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
	case "F":
		return runnable(fn.Name.Name, "Fuzz")
	default:
		return false
	}
}

func runnable(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || !('a' <= rest[0] && rest[0] <= 'z'))
}

// skipsAlways sees a Skip among the statements of the test itself, outside any
// condition.
func skipsAlways(fn *ast.FuncDecl) bool {
	for _, s := range fn.Body.List {
		expr, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expr.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}

var (
	// claim is a list of ids, or a range such as S0-002…009, called true.
	claim   = regexp.MustCompile(`((?:S[0-9]-[0-9]{3}(?:(?:…|\.\.\.|-|–)[0-9]{3})?(?:\s*(?:,|and)\s*|\s+)?)+)\s*(?::|=|is|are)\s*(?i:true|proven|done)\b`)
	mention = regexp.MustCompile(`\bS[0-9]-[0-9]{3}\b`)
	ranged  = regexp.MustCompile(`(S[0-9]-)([0-9]{3})(?:…|\.\.\.|-|–)([0-9]{3})`)
)

// findClaims holds a document to the tests: every row it names exists, and a
// row it calls true, proven or done has a test that ran.
func findClaims(rows table, s standings, name, text string) []string {
	var faults []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, id := range mention.FindAllString(line, -1) {
			if _, ok := rows.byID[id]; !ok {
				faults = append(faults, fmt.Sprintf("%s:%d: unknown row %q", name, n, id))
			}
		}
		for _, m := range claim.FindAllStringSubmatch(line, -1) {
			for _, id := range expand(m[1]) {
				if !s.proven(id) {
					faults = append(faults, fmt.Sprintf("%s:%d: %s is called true, but no test that ran carries it", name, n, id))
				}
			}
		}
	}
	return faults
}

// expand lists the ids of a text with ids and ranges, each once.
func expand(text string) []string {
	var ids []string
	for _, m := range ranged.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2]) // three digits, both
		last, _ := strconv.Atoi(m[3])
		for i := first; i <= last; i++ {
			ids = append(ids, fmt.Sprintf("%s%03d", m[1], i))
		}
	}
	ids = append(ids, mention.FindAllString(text, -1)...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lawtest holds the house rules that a program can check: one package
// doc per folder, licence headers, no init functions, tests that do not sleep
// and say why they are skipped, no replace lines, nobody's own folders, nothing
// put off, one table of commands, no type that nobody can keep in mind, documents that name only what is there. Each law is a function from files to broken places; the tests
// beside it break each one, TestRepository applies all to this tree. What may import
// what is archtest's.
package lawtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// PackageDocs wants exactly one package comment per folder, beginning with
// "Package NAME", so that there is one place that says what a package owns. A
// command begins with "Command" and the name of its folder, or with that name
// as a capitalised word. A folder of tests only documents itself in a test
// file.
func PackageDocs(files []source.File) []string {
	type folder struct {
		name      string
		documents []string
		wrong     []string
	}
	folders := map[string]*folder{}
	testsOnly := map[string]bool{}
	for _, f := range files {
		if only, seen := testsOnly[f.Dir()]; !seen || only {
			testsOnly[f.Dir()] = f.IsTest()
		}
	}
	for _, f := range files {
		if f.IsTest() && !testsOnly[f.Dir()] {
			continue
		}
		d := folders[f.Dir()]
		if d == nil {
			d = &folder{name: f.AST.Name.Name}
			folders[f.Dir()] = d
		}
		if f.AST.Doc == nil {
			continue
		}
		d.documents = append(d.documents, f.Path)
		want := "Package " + strings.TrimSuffix(f.AST.Name.Name, "_test") + " "
		also := want
		if f.AST.Name.Name == "main" {
			base := path.Base(f.Dir())
			want, also = "Command "+base+" ", strings.ToUpper(base[:1])+base[1:]+" "
		}
		if text := f.AST.Doc.Text(); !strings.HasPrefix(text, want) && !strings.HasPrefix(text, also) {
			d.wrong = append(d.wrong, fmt.Sprintf("%s: the package doc does not begin with %q", f.Where(f.AST.Doc.Pos()), want))
		}
	}
	var broken []string
	for dir, d := range folders {
		switch len(d.documents) {
		case 0:
			broken = append(broken, fmt.Sprintf("%s: package %s has no package doc", dir, d.name))
		case 1:
		default:
			broken = append(broken, fmt.Sprintf("%s: package %s has %d package docs: %s", dir, d.name, len(d.documents), strings.Join(d.documents, ", ")))
		}
		broken = append(broken, d.wrong...)
	}
	slices.Sort(broken)
	return broken
}

var copyright = regexp.MustCompile(`^// Copyright 20\d\d The execpoint Authors\.$`)

// Licences wants the two header lines at the top of every Go file.
func Licences(files []source.File) []string {
	var broken []string
	for _, f := range files {
		lines := strings.SplitN(string(f.Text), "\n", 3)
		if len(lines) < 3 || !copyright.MatchString(strings.TrimSuffix(lines[0], "\r")) ||
			strings.TrimSuffix(lines[1], "\r") != "// SPDX-License-Identifier: Apache-2.0" {
			broken = append(broken, f.Path+":1: the first two lines are not the copyright and the SPDX-License-Identifier")
		}
	}
	return broken
}

// NoInit refuses init functions: what a program does begins in its main.
func NoInit(files []source.File) []string {
	var broken []string
	for _, f := range files {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				broken = append(broken, f.Where(fn.Pos())+": init function; call it from main or make it a value")
			}
		}
	}
	return broken
}

// NoSleep refuses time.Sleep in tests. Inside a testing/synctest bubble it
// costs no time and is how virtual time is moved, so there it may stand.
func NoSleep(files []source.File) []string {
	var broken []string
	for _, f := range files {
		if !f.IsTest() {
			continue
		}
		var bubbles []ast.Node
		calls(f, func(call *ast.CallExpr, pkg, name string) {
			if pkg == "synctest" && (name == "Test" || name == "Run") {
				bubbles = append(bubbles, call)
			}
		})
		calls(f, func(call *ast.CallExpr, pkg, name string) {
			inside := slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= call.Pos() && call.End() <= b.End() })
			if pkg == "time" && name == "Sleep" && !inside {
				broken = append(broken, f.Where(call.Pos())+": a test that sleeps; wait for the event itself, or use testing/synctest")
			}
		})
	}
	return broken
}

// SkipsSayWhy refuses Skip without a reason, and SkipNow, which has none.
func SkipsSayWhy(files []source.File) []string {
	var broken []string
	for _, f := range files {
		if !f.IsTest() {
			continue
		}
		calls(f, func(call *ast.CallExpr, recv, name string) {
			switch recv {
			case "t", "b", "f", "tb":
				if name == "SkipNow" || (name == "Skip" || name == "Skipf") && !says(call.Args) {
					broken = append(broken, f.Where(call.Pos())+": skipped without a word; say what is missing on this machine")
				}
			}
		})
	}
	return broken
}

// says is true for arguments that are more than an empty string.
func says(args []ast.Expr) bool {
	if len(args) == 0 {
		return false
	}
	lit, ok := args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return true
	}
	s, err := strconv.Unquote(lit.Value)
	return err == nil && strings.TrimSpace(s) != ""
}

// calls visits every call of the form x.Name(...).
func calls(f source.File, visit func(call *ast.CallExpr, x, name string)) {
	ast.Inspect(f.AST, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				visit(call, x.Name, sel.Sel.Name)
			}
		}
		return true
	})
}

var putOff = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

// NothingPutOff refuses comments that leave work for later: what is missing is
// an issue, not a comment.
func NothingPutOff(files []source.File) []string {
	var broken []string
	for _, f := range files {
		for _, group := range f.AST.Comments {
			for _, c := range group.List {
				if word := putOff.FindString(c.Text); word != "" {
					broken = append(broken, fmt.Sprintf("%s: %s in a comment; do it or open an issue", f.Where(c.Pos()), word))
				}
			}
		}
	}
	return broken
}

// NoReplace refuses replace and exclude lines in a go.mod: who depends on this
// module would build something else than we do.
func NoReplace(name, gomod string) []string {
	var broken []string
	n := 0
	for line := range strings.Lines(gomod) {
		n++
		for _, word := range []string{"replace", "exclude"} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok && strings.TrimLeft(rest, " \t(") != rest {
				broken = append(broken, fmt.Sprintf("%s:%d: %s", name, n, strings.TrimSpace(line)))
			}
		}
	}
	return broken
}

var ownFolder = regexp.MustCompile(`(?:^|[^A-Za-z0-9.$_}/-])(/root|/home/[A-Za-z0-9_.-]+|/Users/[A-Za-z0-9_.-]+|[A-Za-z]:\\Users\\[A-Za-z0-9_.-]+)[/\\]`)

// exampleHomes are the folders of nobody, for examples and tests.
var exampleHomes = []string{"/home/alice", "/home/ann", "/home/bob", "/home/condor", "/home/me", "/home/user", `C:\Users\alice`}

// NoOwnFolders refuses absolute paths into somebody's own folder, in any text:
// they hold on one machine only. here are more paths that must not appear, such as the folder of this
// checkout.
func NoOwnFolders(name, text string, here ...string) []string {
	var broken []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, m := range ownFolder.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(exampleHomes, m[1]) {
				broken = append(broken, fmt.Sprintf("%s:%d: a path in somebody's own folder: %s", name, n, m[1]))
			}
		}
		for _, h := range here {
			if strings.Contains(line, h) {
				broken = append(broken, fmt.Sprintf("%s:%d: a path that only this machine has: %s", name, n, h))
			}
		}
	}
	return broken
}

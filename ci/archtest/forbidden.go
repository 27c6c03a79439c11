// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// ban refuses one standard package, or with a name one function of it.
type ban struct {
	pkg  string // ends in /... for everything below it as well
	name string // empty for the whole package
	why  string
}

// bansInPure are what a pure package may not touch: the same values in must
// give the same values out, on every machine and at every hour. Of log/slog
// the values stay allowed, for a secret says there how it is printed.
var bansInPure = []ban{
	{"os/...", "", "a pure package reads no files, environment or processes"},
	{"net/...", "", "a pure package has no sockets"},
	{"io/ioutil", "", "a pure package reads no files"},
	{"syscall", "", "a pure package makes no system calls"},
	{"log", "", "a pure package does not log; it returns a trace"},
	{"runtime/...", "", "a pure package does not ask about the machine it runs on"},
	{"crypto/rand", "", "a pure package has no randomness of its own"},
	{"plugin", "", "a pure package loads no code"},
	{"testing/...", "", "testing belongs to tests"},

	{"time", "Now", "a pure package is told the time"},
	{"time", "Since", "a pure package is told the time"},
	{"time", "Until", "a pure package is told the time"},
	{"time", "Sleep", "a pure package does not wait"},
	{"time", "After", "a pure package does not wait"},
	{"time", "AfterFunc", "a pure package does not wait"},
	{"time", "Tick", "a pure package does not wait"},
	{"time", "NewTimer", "a pure package does not wait"},
	{"time", "NewTicker", "a pure package does not wait"},
	{"time", "LoadLocation", "a pure package reads no files, and the zone data base is some"},
	{"path/filepath", "Abs", "a pure package reads no files"},
	{"path/filepath", "EvalSymlinks", "a pure package reads no files"},
	{"path/filepath", "Glob", "a pure package reads no files"},
	{"path/filepath", "Walk", "a pure package reads no files"},
	{"path/filepath", "WalkDir", "a pure package reads no files"},
	{"log/slog", "Logger", "a pure package does not log; it returns a trace"},
	{"log/slog", "New", "a pure package does not log; it returns a trace"},
	{"log/slog", "Default", "a pure package does not log; it returns a trace"},
	{"log/slog", "Debug", "a pure package does not log; it returns a trace"},
	{"log/slog", "Info", "a pure package does not log; it returns a trace"},
	{"log/slog", "Warn", "a pure package does not log; it returns a trace"},
	{"log/slog", "Error", "a pure package does not log; it returns a trace"},
	{"fmt", "Print", "a pure package writes to no terminal"},
	{"fmt", "Printf", "a pure package writes to no terminal"},
	{"fmt", "Println", "a pure package writes to no terminal"},
}

// valuesOnly are packages below a banned folder that hold values and nothing
// else.
var valuesOnly = []string{"net/netip", "net/url"}

// bansInLib hold for every package under lib, tests included for the
// functions: the system is reached through the interfaces of lib/host.
var bansInLib = []ban{
	{"os/exec", "", "lib starts processes through lib/host"},
	{"os/signal", "", "signals are received in bin"},
	{"syscall", "", "system calls belong under platform"},
	{"plugin", "", "lib loads no code"},
	{"runtime", "GOOS", "lib knows no operating system; ask an interface of lib/host"},
}

// bansInTests hold for every test: what one run finds the next run finds too.
var bansInTests = []ban{
	{"pgregory.net/rapid", "Check", "a test draws the same on every run; use rapidtest.Check"},
	{"pgregory.net/rapid", "MakeCheck", "a test draws the same on every run; use rapidtest.Check"},
}

func (b ban) covers(pkg string) bool {
	folder, deep := strings.CutSuffix(b.pkg, "/...")
	return pkg == folder || deep && strings.HasPrefix(pkg, folder+"/")
}

func inLib(path string) bool { return path == "lib" || strings.HasPrefix(path, "lib/") }

// forbiddenImport says whether the package of r may not import the standard
// package pkg, and why.
func forbiddenImport(r *Rule, pkg string) (why string, bad bool) {
	var bans []ban
	if r.Pure && !slices.Contains(valuesOnly, pkg) {
		bans = append(bans, bansInPure...)
	}
	if inLib(r.Path) {
		bans = append(bans, bansInLib...)
	}
	for _, b := range bans {
		if b.name == "" && b.covers(pkg) {
			return b.why, true
		}
	}
	return "", false
}

// CheckSource looks inside one file for what imports do not show: forbidden
// functions and goroutines in pure packages, in tests draws without a seed, and
// in lib anything that is for one operating system only. Files of packages that layers.txt does not list
// are CheckGraph's business.
func CheckSource(l Layers, f source.File) []Violation {
	r := l.Packages[f.Dir()]
	if r == nil {
		return nil
	}
	c := sourceCheck{file: f, rule: r}
	c.cgo()
	if inLib(r.Path) {
		c.systems()
		c.functions(bansInLib)
	}
	if r.Pure && !f.IsTest() {
		c.functions(bansInPure)
		c.randomness("a pure package has no randomness of its own; take a source")
		c.goroutines()
		c.dotImports()
	}
	if f.IsTest() {
		c.functions(bansInTests)
		c.randomness("a test draws the same on every run; give rand.New a source with a seed")
	}
	return c.found
}

type sourceCheck struct {
	file  source.File
	rule  *Rule
	found []Violation
}

func (c *sourceCheck) add(where, to, why string) {
	c.found = append(c.found, Violation{Where: where, From: c.rule.Path, To: to, Rule: why})
}

// functions finds uses of the banned names, called or passed on.
func (c *sourceCheck) functions(bans []ban) {
	c.uses(func(where, pkg, name string) {
		for _, b := range bans {
			if b.name == name && b.pkg == pkg {
				c.add(where, pkg+"."+name, b.why)
			}
		}
	})
}

// randomness finds uses of the source that math/rand shares between callers;
// a source that was handed in is a value like any other.
func (c *sourceCheck) randomness(why string) {
	c.uses(func(where, pkg, name string) {
		own := strings.HasPrefix(name, "New") || name == "Rand" || name == "Source"
		if (pkg == "math/rand" || pkg == "math/rand/v2") && !own {
			c.add(where, pkg+"."+name, why)
		}
	})
}

// uses calls visit for every name that the file takes from an import.
func (c *sourceCheck) uses(visit func(where, pkg, name string)) {
	names := importNames(c.file.AST)
	ast.Inspect(c.file.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && !declaredInFile(id) && names[id.Name] != "" {
			visit(c.file.Where(sel.Pos()), names[id.Name], sel.Sel.Name)
		}
		return true
	})
}

// declaredInFile says that the name is a variable or parameter here, not an
// imported package; the parser resolves names within one file.
func declaredInFile(id *ast.Ident) bool { return id.Obj != nil }

func (c *sourceCheck) cgo() {
	for _, spec := range c.file.AST.Imports {
		if spec.Path.Value == `"C"` {
			c.add(c.file.Where(spec.Pos()), "C", "no cgo; every binary builds without a C compiler")
		}
	}
}

func (c *sourceCheck) goroutines() {
	ast.Inspect(c.file.AST, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			c.add(c.file.Where(g.Pos()), "", "a pure package starts no goroutine")
		}
		return true
	})
}

func (c *sourceCheck) dotImports() {
	for _, spec := range c.file.AST.Imports {
		if spec.Name != nil && spec.Name.Name == "." {
			c.add(c.file.Where(spec.Pos()), "", "a pure package names what it uses; no import into the file's own scope")
		}
	}
}

// systems refuses file names and build tags that pick an operating system.
func (c *sourceCheck) systems() {
	if goos := systemOfName(c.file.Path); goos != "" {
		c.add(c.file.Path+":1", "", fmt.Sprintf("the file name picks GOOS %s; code for one system belongs under platform", goos))
	}
	for _, group := range c.file.AST.Comments {
		for _, line := range group.List {
			if line.Pos() > c.file.AST.Package || !constraint.IsGoBuild(line.Text) {
				continue
			}
			expr, err := constraint.Parse(line.Text)
			if err != nil {
				c.add(c.file.Where(line.Pos()), "", "the build line does not parse: "+err.Error())
				continue
			}
			for _, tag := range tags(expr) {
				if knownSystem(tag) || tag == "unix" {
					c.add(c.file.Where(line.Pos()), "", fmt.Sprintf("the build tag picks GOOS %s; code for one system belongs under platform", tag))
				}
			}
		}
	}
}

// systemOfName is the GOOS that a file name chooses: of foo_linux.go,
// foo_linux_test.go and foo_linux_amd64.go, but not of linux.go.
func systemOfName(name string) string {
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test"), "_")
	if n := len(parts); n > 2 && knownArch(parts[n-1]) && knownSystem(parts[n-2]) {
		return parts[n-2]
	} else if n > 1 && knownSystem(parts[n-1]) {
		return parts[n-1]
	}
	return ""
}

func tags(e constraint.Expr) []string {
	switch e := e.(type) {
	case *constraint.TagExpr:
		return []string{e.Tag}
	case *constraint.NotExpr:
		return tags(e.X)
	case *constraint.AndExpr:
		return append(tags(e.X), tags(e.Y)...)
	case *constraint.OrExpr:
		return append(tags(e.X), tags(e.Y)...)
	default:
		return nil
	}
}

func knownSystem(s string) bool {
	switch s {
	case "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd", "openbsd",
		"plan9", "solaris", "wasip1", "windows", "zos":
		return true
	default:
		return false
	}
}

func knownArch(s string) bool {
	switch s {
	case "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x", "wasm":
		return true
	default:
		return false
	}
}

// importNames maps the names under which a file knows its imports to paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if p == "math/rand/v2" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

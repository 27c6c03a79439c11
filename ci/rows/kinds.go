// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// kind is how near to the world a test is.
type kind int

const (
	inCore  kind = iota // packages of ours: rules, the engine, the wire, what one system does
	program             // what a user starts
	pool                // together with HTCondor's own daemons
	kinds
)

var kindNames = [kinds]string{"in the core", "through a program of ours", "with a real pool"}

// rule says what makes the tests below a folder more than tests of the core:
// that they come to call one of these functions, themselves or by other
// functions of their folder. The first rule that fits counts.
type rule struct {
	kind   kind
	folder string
	calls  []string // by import path, without our module's name
	owns   bool     // or a function of the folder that takes the command line
}

var rules = [...]rule{
	// Nothing makes a pool or finds HTCondor's daemons but this package.
	{kind: pool, folder: "integration", calls: []string{"integration/realpool.New", "integration/realpool.Make", "integration/realpool.Find"}},
	// The programs are tested by starting them, built or as the test program
	// under another name, or by calling what main calls with a command line.
	// Other programs that such a test starts are there to look at ours.
	{kind: program, folder: "bin", calls: []string{"os/exec.Command", "os/exec.CommandContext", "os.Executable"}, owns: true},
}

// kindsOf decides for the tests of every folder that a rule names; all others
// are in the core.
func kindsOf(module string, files []source.File) map[testKey]kind {
	type group struct{ dir, name string }
	packages := map[group][]source.File{}
	for _, f := range files {
		if slices.ContainsFunc(rules[:], func(r rule) bool { return strings.HasPrefix(f.Path, r.folder+"/") }) {
			g := group{f.Dir(), f.AST.Name.Name}
			packages[g] = append(packages[g], f)
		}
	}
	found := map[testKey]kind{}
	for g, list := range packages {
		c := newCalls(module, list)
		for _, r := range rules {
			if !strings.HasPrefix(g.dir+"/", r.folder+"/") {
				continue
			}
			for _, fn := range c.tests {
				key := testKey{g.dir, fn.Name.Name}
				if found[key] == inCore && c.fits(fn, r) {
					found[key] = r.kind
				}
			}
		}
	}
	return found
}

// calls is who calls whom in one package, as far as that can be seen without
// reading what it imports.
type calls struct {
	module string
	info   types.Info
	bodies map[types.Object]ast.Node // functions and variables of the package
	owned  map[ast.Node]bool         // functions that take the command line
	tests  []*ast.FuncDecl
}

// noImports makes the type checker go on with empty packages.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

func newCalls(module string, files []source.File) *calls {
	c := &calls{
		module: module,
		info:   types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
		bodies: map[types.Object]ast.Node{},
		owned:  map[ast.Node]bool{},
	}
	set := token.NewFileSet() // one for all, which the type checker wants
	var trees []*ast.File
	for _, f := range files {
		if tree, err := parser.ParseFile(set, f.Path, f.Text, parser.SkipObjectResolution); err == nil {
			trees = append(trees, tree)
		}
	}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = conf.Check("p", set, trees, &c.info) // what is imported is unknown, so errors are the rule
	for _, tree := range trees {
		inTest := strings.HasSuffix(set.Position(tree.Pos()).Filename, "_test.go")
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				c.bodies[c.info.Defs[d.Name]] = d
				c.owned[d] = !inTest && takesCommandLine(d)
				if inTest && isTest(d) {
					c.tests = append(c.tests, d)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							c.bodies[c.info.Defs[name]] = v
						}
					}
				}
			}
		}
	}
	delete(c.bodies, nil) // the blank name
	return c
}

// takesCommandLine recognises func(args []string, ...) int: what main does,
// less os.Exit.
func takesCommandLine(fn *ast.FuncDecl) bool {
	p, r := fn.Type.Params.List, fn.Type.Results
	if fn.Recv != nil || len(p) == 0 || len(p[0].Names) != 1 || p[0].Names[0].Name != "args" || r == nil || len(r.List) != 1 {
		return false
	}
	list, ok := p[0].Type.(*ast.ArrayType)
	return ok && isNamed(list.Elt, "string") && isNamed(r.List[0].Type, "int")
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// fits says whether fn comes to call what the rule wants.
func (c *calls) fits(fn ast.Node, r rule) bool {
	seen := map[ast.Node]bool{fn: true}
	for next := []ast.Node{fn}; len(next) > 0; {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		if r.owns && c.owned[n] {
			return true
		}
		hit := false
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok {
					if p, ok := c.info.Uses[id].(*types.PkgName); ok {
						name := strings.TrimPrefix(p.Imported().Path(), c.module+"/") + "." + n.Sel.Name
						hit = hit || slices.Contains(r.calls, name)
					}
				}
			case *ast.Ident:
				obj := c.info.Uses[n]
				if f, ok := obj.(*types.Func); ok {
					obj = f.Origin()
				}
				if body := c.bodies[obj]; obj != nil && body != nil && !seen[body] {
					seen[body] = true
					next = append(next, body)
				}
			}
			return !hit
		})
		if hit {
			return true
		}
	}
	return false
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// commandTable is the package that holds the numbers of commands, replies and
// refusals, and what a command demands.
const commandTable = "lib/cedar/command"

// OneTableOfCommands refuses a second place for what the table of commands says:
// the number of a command or a refusal as a literal, a command's name, a row made
// elsewhere, and one whose terms are changed elsewhere.
//
// Where a number is passed, compared or set as a command, any literal is refused.
// Elsewhere only those that nobody writes for another reason: 512 and 60000 are
// also sizes, and 0o700 is a mode. Tests may write numbers: they are the facts that the table is held
// to. Packages for tests may make rows, for daemons that this project is not.
func OneTableOfCommands(files []source.File) []string {
	names, texts := tableNumbers(files), tableNames(files)
	var broken []string
	for _, f := range files {
		if f.IsTest() || f.Dir() == commandTable || ast.IsGenerated(f.AST) {
			continue
		}
		table, imported := tableImport(f)
		if imported && table != path.Base(commandTable) {
			broken = append(broken, fmt.Sprintf("%s: %s is imported as %s; leave it its name, by which this law finds its rows", f.Where(f.AST.Name.Pos()), commandTable, table))
		}
		asCommand := map[*ast.BasicLit]bool{}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			for _, lit := range commandLiterals(n) {
				asCommand[lit] = true
			}
			if c, ok := n.(*ast.CompositeLit); ok && isRow(c) && !strings.HasSuffix(f.Dir(), "test") {
				broken = append(broken, fmt.Sprintf("%s: a row of a command outside %s; take it by Startd.Row or listen.Answer", f.Where(c.Pos()), commandTable))
			}
			if a, ok := n.(*ast.AssignStmt); ok && imported {
				for _, to := range a.Lhs {
					if isTerm(to) {
						broken = append(broken, fmt.Sprintf("%s: what a command demands is changed outside %s; write it there", f.Where(to.Pos()), commandTable))
					}
				}
			}
			return true
		})
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && texts[lit.Value] != "" {
				broken = append(broken, fmt.Sprintf("%s: the name %s of a command; write command.Name(command.%s)", f.Where(lit.Pos()), lit.Value, texts[lit.Value]))
			}
			if !ok || lit.Kind != token.INT {
				return true
			}
			value, err := strconv.ParseInt(lit.Value, 0, 64)
			name := names[value]
			switch {
			case err != nil:
			case asCommand[lit] && name != "":
				broken = append(broken, fmt.Sprintf("%s: the command %d as a number; write command.%s", f.Where(lit.Pos()), value, name))
			case asCommand[lit]:
				broken = append(broken, fmt.Sprintf("%s: the command %d is not in %s; add it there", f.Where(lit.Pos()), value, commandTable))
			case name != "" && distinctive(value) && !octal(lit):
				broken = append(broken, fmt.Sprintf("%s: %d as a number; write command.%s", f.Where(lit.Pos()), value, name))
			}
			return true
		})
	}
	slices.Sort(broken)
	return broken
}

// tableImport returns the name under which a file knows the package of the table,
// false where it does not import it.
func tableImport(f source.File) (name string, ok bool) {
	for _, i := range f.AST.Imports {
		if of, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasSuffix(of, "/"+commandTable) {
			if i.Name != nil {
				return i.Name.Name, true
			}
			return path.Base(commandTable), true
		}
	}
	return "", false
}

// isTerm reports whether an expression is a field of a row by which a command
// demands less or more of its sender. The other fields have names that others have,
// too.
func isTerm(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Level", "Alternatives", "Authenticated", "Empty"}, sel.Sel.Name)
}

// tableNumbers are the names of the table's numbers.
func tableNumbers(files []source.File) map[int64]string {
	names := map[int64]string{}
	for _, f := range files {
		if f.Dir() != commandTable || f.IsTest() {
			continue
		}
		for _, d := range f.AST.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				v := s.(*ast.ValueSpec)
				if len(v.Names) != 1 || len(v.Values) != 1 || !v.Names[0].IsExported() {
					continue
				}
				lit, ok := v.Values[0].(*ast.BasicLit)
				if !ok {
					continue
				}
				if n, err := strconv.ParseInt(lit.Value, 0, 64); err == nil && names[n] == "" {
					names[n] = v.Names[0].Name
				}
			}
		}
	}
	return names
}

// tableNames are the constants of the table's commands by their names in quotes:
// an entry begins with both.
func tableNames(files []source.File) map[string]string {
	names := map[string]string{}
	for _, f := range files {
		if f.Dir() != commandTable || f.IsTest() {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && len(c.Elts) > 1 {
				number, ok1 := c.Elts[0].(*ast.Ident)
				name, ok2 := c.Elts[1].(*ast.BasicLit)
				if ok1 && ok2 && name.Kind == token.STRING {
					names[name.Value] = number.Name
				}
			}
			return true
		})
	}
	return names
}

// distinctive reports whether a number of the table is hardly written for
// anything else.
func distinctive(n int64) bool { return n > 400 && n%100 != 0 && n&(n-1) != 0 }

// octal reports whether a literal is written as file modes are.
func octal(lit *ast.BasicLit) bool {
	return len(lit.Value) > 1 && lit.Value[0] == '0' && (lit.Value[1] == 'o' || lit.Value[1] == 'O' || lit.Value[1] <= '9')
}

// commandLiterals are the literals that stand for a command right in n: they are
// given to a function that opens or sends one, stand in a field or an attribute
// of that name, or are compared with or given to a variable of that name.
func commandLiterals(n ast.Node) []*ast.BasicLit {
	var all []*ast.BasicLit
	take := func(values ...ast.Expr) {
		for _, v := range values {
			if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.INT {
				all = append(all, lit)
			}
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case slices.Contains([]string{"Command", "Datagrams", "Query", "Follow"}, sel.Sel.Name):
			take(n.Args...)
		case sel.Sel.Name == "SetInt" && len(n.Args) == 2:
			if key, ok := n.Args[0].(*ast.BasicLit); ok && key.Value == `"Command"` {
				take(n.Args[1])
			}
		}
	case *ast.KeyValueExpr:
		if named(n.Key) {
			take(n.Value)
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && named(n.X) {
			take(n.Y)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) && named(to) {
				take(n.Rhs[i])
			}
		}
	case *ast.SwitchStmt:
		if n.Tag == nil || !named(n.Tag) {
			break
		}
		for _, s := range n.Body.List {
			take(s.(*ast.CaseClause).List...)
		}
	}
	return all
}

// named reports whether an expression is a variable or a field for a command.
func named(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"command", "Command", "cmd"}, x.Name)
	case *ast.SelectorExpr:
		if x.Sel.Name == "Number" {
			inner, ok := x.X.(*ast.SelectorExpr)
			return ok && inner.Sel.Name == "Command" || named(x.X)
		}
		return x.Sel.Name == "command" || x.Sel.Name == "Command"
	}
	return false
}

// isRow reports whether a literal is a row of the table or its terms.
func isRow(c *ast.CompositeLit) bool {
	sel, ok := c.Type.(*ast.SelectorExpr)
	if !ok || len(c.Elts) == 0 {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == path.Base(commandTable) && (sel.Sel.Name == "Row" || sel.Sel.Name == "Terms")
}

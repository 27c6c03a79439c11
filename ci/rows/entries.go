// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"unicode"

	"github.com/execpoint/execpoint/ci/source"
)

// entryName finds the name of the part that fn runs for the entry of a table
// that the comment stands above or beside. It knows
//
//	for _, tt := range table { t.Run(tt.name, ...) }
//	for name, tt := range table { t.Run(name, ...) }
//
// with the name as a string in the entry, and answers "" for all else: then
// the whole function counts. pkg are the files of the package, which may hold
// the table and its type; t may be run at any depth.
func entryName(pkg []source.File, f source.File, c *ast.CommentGroup, fn *ast.FuncDecl) string {
	found := ""
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		loop, ok := n.(*ast.RangeStmt)
		if !ok || found != "" {
			return found == ""
		}
		lit, kind := tableOf(pkg, fn, loop.X)
		if lit == nil || !within(c, lit, nil) {
			return true
		}
		entry := entryAt(f, lit, c)
		if entry == nil {
			return true
		}
		field, byKey := runBy(loop)
		value := ast.Expr(nil)
		switch {
		case byKey:
			if kv, ok := entry.(*ast.KeyValueExpr); ok {
				value = kv.Key
			}
		case field != "":
			value = fieldOf(pkg, entry, kind, field)
		}
		if name := stringOf(value); name != "" && !twice(lit, value, name) {
			found = partName(name)
		}
		return true
	})
	return found
}

// tableOf is the literal that a loop goes through, with the type of its
// entries: one that stands in the loop, or the value of a variable.
func tableOf(pkg []source.File, fn *ast.FuncDecl, x ast.Expr) (*ast.CompositeLit, ast.Expr) {
	if id, ok := x.(*ast.Ident); ok {
		x = valueOf(pkg, fn, id.Name)
	}
	lit, ok := x.(*ast.CompositeLit)
	if !ok {
		return nil, nil
	}
	switch t := lit.Type.(type) {
	case *ast.ArrayType:
		return lit, t.Elt
	case *ast.MapType:
		return lit, t.Value
	}
	return lit, nil
}

// valueOf is what a name is given in fn or at the level of the package, nil if
// it is given none or several.
func valueOf(pkg []source.File, fn *ast.FuncDecl, name string) ast.Expr {
	var values []ast.Expr
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, l := range a.Lhs {
				if isNamed(l, name) {
					values = append(values, a.Rhs[i])
				}
			}
		}
		return true
	})
	if len(values) == 0 {
		for _, f := range pkg {
			for _, d := range f.AST.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					for _, s := range g.Specs {
						if v := s.(*ast.ValueSpec); len(v.Names) == 1 && v.Names[0].Name == name && len(v.Values) == 1 {
							values = append(values, v.Values[0])
						}
					}
				}
			}
		}
	}
	if len(values) != 1 {
		return nil
	}
	return values[0]
}

// entryAt is the entry that begins in the line after the comment's group, or
// that the comment stands in or behind.
func entryAt(f source.File, lit *ast.CompositeLit, c *ast.CommentGroup) ast.Expr {
	for _, e := range lit.Elts {
		if within(c, e, nil) || e.Pos() < c.Pos() && f.Line(e.End()) == f.Line(c.Pos()) {
			return e
		}
		if e.Pos() > c.End() {
			if f.Line(e.Pos()) == f.Line(c.End())+1 {
				return e
			}
			return nil
		}
	}
	return nil
}

// runBy finds t.Run in the loop and says by which field of an entry the part is
// named, or that it is by the key.
func runBy(loop *ast.RangeStmt) (field string, byKey bool) {
	key, entry := "", ""
	if id, ok := loop.Key.(*ast.Ident); ok {
		key = id.Name
	}
	if id, ok := loop.Value.(*ast.Ident); ok {
		entry = id.Name
	}
	runs := 0
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Run" {
			return true
		}
		switch name := call.Args[0].(type) {
		case *ast.Ident:
			if byKey = name.Name == key && key != "_"; byKey {
				runs++
			}
		case *ast.SelectorExpr:
			if entry != "" && isNamed(name.X, entry) {
				field = name.Sel.Name
				runs++
			}
		}
		return true
	})
	if runs != 1 {
		return "", false
	}
	return field, byKey
}

// fieldOf is the value of an entry's field, written with its name or by its
// place in the type.
func fieldOf(pkg []source.File, entry, kind ast.Expr, field string) ast.Expr {
	if kv, ok := entry.(*ast.KeyValueExpr); ok {
		entry = kv.Value
	}
	lit, ok := entry.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if isNamed(kv.Key, field) {
				return kv.Value
			}
			continue
		}
		if i := placeOf(pkg, kind, field); i >= 0 && i < len(lit.Elts) {
			return lit.Elts[i]
		}
		return nil
	}
	return nil
}

// placeOf counts the fields of a struct before the one of that name; -1 if
// that cannot be seen.
func placeOf(pkg []source.File, kind ast.Expr, field string) int {
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		for _, f := range pkg {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if t, ok := n.(*ast.TypeSpec); ok && t.Name.Name == id.Name {
					kind = t.Type
				}
				return true
			})
		}
	}
	s, ok := kind.(*ast.StructType)
	if !ok {
		return -1
	}
	i := 0
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if n.Name == field {
				return i
			}
			i++
		}
		if len(f.Names) == 0 {
			i++
		}
	}
	return -1
}

func stringOf(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}

// twice says whether the table has that name in another place, too: the
// testing package numbers the second part of a name.
func twice(table *ast.CompositeLit, value ast.Expr, name string) bool {
	again := false
	ast.Inspect(table, func(n ast.Node) bool {
		if e, ok := n.(*ast.BasicLit); ok && ast.Expr(e) != value && stringOf(e) == name {
			again = true
		}
		return !again
	})
	return again
}

// partName writes a name as the testing package does.
func partName(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte('_')
		case !strconv.IsPrint(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// The most that a reader keeps in mind of one type.
const (
	mostFields  = 20 // of a struct
	mostMethods = 6  // of an interface of the starter
)

// SmallTypes refuses structs of more than 20 fields: what belongs together in one
// gets a type of its own, with its methods. tables are those that are flat tables of facts
// instead, as "folder.Type", each with its reason. In lib/starter and below it an
// interface has at most 6 methods of its own; larger ones are put together from
// small ones. A table that is small, or not there, is refused as well: the list
// says what is so.
func SmallTypes(files []source.File, tables map[string]string) []string {
	var broken []string
	unused := maps.Clone(tables)
	for _, f := range files {
		if f.IsTest() {
			continue
		}
		for _, decl := range f.AST.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				name := f.Dir() + "." + typ.Name.Name
				switch t := typ.Type.(type) {
				case *ast.StructType:
					n := count(t.Fields)
					if n <= mostFields {
						continue
					}
					delete(unused, name)
					if _, is := tables[name]; !is {
						broken = append(broken, fmt.Sprintf("%s: %s has %d fields; the most is %d: give those that belong together a type, or name it in ci/lawtest/tables.tsv if it is a table of facts", f.Where(typ.Pos()), name, n, mostFields))
					}
				case *ast.InterfaceType:
					if n := count(t.Methods); n > mostMethods && (f.Dir() == "lib/starter" || strings.HasPrefix(f.Dir(), "lib/starter/")) {
						broken = append(broken, fmt.Sprintf("%s: %s has %d methods; the most is %d: put it together from small interfaces", f.Where(typ.Pos()), name, n, mostMethods))
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		broken = append(broken, fmt.Sprintf("ci/lawtest/tables.tsv: %s is no struct of more than %d fields; take it out", name, mostFields))
	}
	return broken
}

// count counts names, and what is embedded once.
func count(l *ast.FieldList) int {
	n := 0
	for _, f := range l.List {
		n += max(1, len(f.Names))
	}
	return n
}

// ReadTables reads the list of tables: lines of a type, a tab and the reason. The
// first line is their heading.
func ReadTables(text string) (map[string]string, error) {
	tables := map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i == 0 {
			continue
		}
		name, why, _ := strings.Cut(line, "\t")
		if why == "" || tables[name] != "" {
			return nil, fmt.Errorf("ci/lawtest/tables.tsv:%d: %q: not a type, a tab and a reason, or there twice", i+1, line)
		}
		tables[name] = why
	}
	return tables, nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package knobs finds out from the sources which settings of the configuration
// some code reads. It owns no list of them: a name counts as read when the text
// of the programs has it where a setting may be asked for.
package knobs

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

// Readers are the names that the programs may ask the configuration for.
type Readers struct {
	exact    map[string]bool // in lower case
	spelled  map[string]bool // those of them that have a capital letter
	packages map[string]*texts
}

// texts are those of one package.
type texts struct {
	// patterns are names that are put together, with * for what is not known.
	patterns map[string]bool
	// words are all texts, without the underscores around them.
	words map[string]bool
	// lent are the packages that types of it come from: type Level = command.Level.
	lent map[string]bool
}

// hole stands for a part of a name that is not known before the program runs.
const hole = "*"

// Find looks through files of Go.
func Find(files []source.File) *Readers {
	r := &Readers{exact: map[string]bool{}, spelled: map[string]bool{}, packages: map[string]*texts{}}
	consts := constants(files)
	for _, f := range files {
		dir := path.Dir(f.Path)
		if r.packages[dir] == nil {
			r.packages[dir] = &texts{map[string]bool{}, map[string]bool{}, map[string]bool{}}
		}
		skip := published(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || skip[n] {
				return !skip[n]
			}
			switch e := e.(type) {
			case *ast.BasicLit:
				if text, ok := literal(e); ok {
					r.add(dir, text)
				}
			case *ast.BinaryExpr:
				r.add(dir, join(e, consts[dir]))
			}
			return true
		})
		for _, p := range lenders(f.AST) {
			r.packages[dir].lent[p] = true
		}
	}
	r.lend()
	return r
}

// lenders are the import paths of packages whose types a file calls by names of
// its own.
func lenders(f *ast.File) (all []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() {
			return true
		}
		sel, ok := spec.Type.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if x, ok := sel.X.(*ast.Ident); ok && err == nil && i.Name == nil && path.Base(p) == x.Name {
				all = append(all, p)
			}
		}
		return true
	})
	return all
}

// lend adds to the words of each package those of the packages that its types
// come from: the names of levels stand in one, and the knobs that have them in
// their names are put together in another.
func (r *Readers) lend() {
	own := map[string]map[string]bool{}
	for dir, t := range r.packages {
		own[dir] = maps.Clone(t.words)
	}
	for _, t := range r.packages {
		for p := range t.lent {
			for dir, words := range own {
				if strings.HasSuffix(p, "/"+dir) {
					maps.Copy(t.words, words)
				}
			}
		}
	}
}

func (r *Readers) add(dir, text string) {
	if len(text) > 200 || text == "" || text == hole {
		return
	}
	if strings.ToLower(text) != text {
		r.spelled[strings.ToLower(text)] = true
	}
	text = strings.ToLower(verb.ReplaceAllString(text, hole))
	if !nameLike.MatchString(text) {
		return
	}
	if strings.Contains(text, hole) {
		r.packages[dir].patterns[text] = true
	} else {
		r.exact[text] = true
	}
	for word := range strings.SplitSeq(text, hole) {
		if word = strings.Trim(word, "_"); word != "" {
			r.packages[dir].words[word] = true
		}
	}
}

var (
	verb     = regexp.MustCompile(`%\[?[0-9]*\]?[sdv]`)
	nameLike = regexp.MustCompile(`^[\w.*]+$`)
)

// published finds what is the name of an attribute and not of a setting: the
// first argument of what writes and evaluates ads.
func published(f *ast.File) map[ast.Node]bool {
	skip := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && adMethods[sel.Sel.Name] {
			skip[call.Args[0]] = true
		}
		return true
	})
	return skip
}

var adMethods = map[string]bool{
	"SetString": true, "SetInt": true, "SetReal": true, "SetBool": true, "SetText": true, "SetValue": true, "Set": true, "Delete": true,
	"EvalString": true, "EvalInt": true, "EvalReal": true, "EvalBool": true, "EvalNumber": true, "Warn": true, "Info": true, "Error": true,
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// join puts the parts of a sum of texts together.
func join(e ast.Expr, consts map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := literal(e)
		return text
	case *ast.Ident:
		if text, ok := consts[e.Name]; ok {
			return text
		}
	case *ast.ParenExpr:
		return join(e.X, consts)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return strings.ReplaceAll(join(e.X, consts)+join(e.Y, consts), hole+hole, hole)
		}
	}
	return hole
}

// constants are the named texts of each package.
func constants(files []source.File) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, f := range files {
		dir := path.Dir(f.Path)
		if out[dir] == nil {
			out[dir] = map[string]string{}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, v := range spec.Values {
				if text, ok := literal(v); ok && i < len(spec.Names) {
					out[dir][spec.Names[i].Name] = text
				}
			}
			return true
		})
	}
	return out
}

// placeholder is a part of a family's name that its user chooses.
var placeholder = regexp.MustCompile(`<[^>]+>`)

// chosen stands for it while a name is looked for.
const chosen = "\x01"

// Read reports whether the programs may ask for a knob or for one of a family.
// Some knobs have the name of a submit command, which is in small letters.
func (r *Readers) Read(name string) bool {
	if strings.Contains(name, "<SUBSYS>") {
		return r.Read(strings.ReplaceAll(name, "<SUBSYS>", "STARTD")) || r.Read(strings.ReplaceAll(name, "<SUBSYS>", "STARTER"))
	}
	if r.spelled[strings.ToLower(name)] {
		return true
	}
	name = placeholder.ReplaceAllString(strings.ToLower(name), chosen)
	for _, t := range r.packages {
		for p := range t.patterns {
			if t.makes(p, name, r.exact, 1) {
				return true
			}
		}
		if strings.Contains(name, chosen) && !strings.HasPrefix(name, "slot") && t.knows(name, r.exact, 0) {
			return true
		}
	}
	return false
}

// makes reports whether a pattern can become a name with what is known to stand
// in its holes: texts of the same package, our own daemons, what the user chose,
// or in the names of one slot or slot type a knob that is asked for by itself as
// well.
func (t *texts) makes(pattern, name string, exact map[string]bool, deep int) bool {
	parts := strings.Split(pattern, hole)
	if len(strings.Trim(strings.Join(parts, ""), "_.")) < 3 {
		return false
	}
	own := func(s string) bool { return s == "startd" || s == "starter" }
	ofSlot := strings.HasPrefix(pattern, "slot") && strings.HasSuffix(pattern, "_"+hole)
	rest, ok := strings.CutPrefix(name, parts[0])
	for i := 1; ok && i < len(parts); i++ {
		at := len(rest) - len(parts[i])
		if i < len(parts)-1 {
			at = strings.Index(rest, parts[i])
		}
		if at <= 0 || !strings.HasPrefix(rest[at:], parts[i]) {
			return false
		}
		filled := rest[:at]
		ok = own(filled) || t.knows(filled, exact, deep) || ofSlot && i == len(parts)-1 && exact[filled]
		rest = rest[at+len(parts[i]):]
	}
	return ok && rest == ""
}

// knows reports whether each part of a text that is not the user's choice is one
// of the package's, or deep times put together from such.
func (t *texts) knows(text string, exact map[string]bool, deep int) bool {
	for part := range strings.SplitSeq(text, chosen) {
		if trimmed := strings.Trim(part, "_"); trimmed == "" || t.words[trimmed] {
			continue
		}
		if deep == 0 {
			return false
		}
		made := false
		for p := range t.patterns {
			made = made || t.makes(p, part, exact, deep-1)
		}
		if !made {
			return false
		}
	}
	return true
}

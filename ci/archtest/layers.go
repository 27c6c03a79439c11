// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tree to ci/layers.txt: who may import whom, which
// packages stay pure, and that lib knows no operating system. The rules are
// functions over values (Layers, Graph, source.File), so that their own tests
// feed them forbidden trees; TestRepository feeds them this one. It decides
// nothing about style, which is lawtest's, and has no list of exceptions of
// its own: an exception is a line in layers.txt.
package archtest

import (
	"fmt"
	"strings"
)

// Layers is layers.txt as read.
type Layers struct {
	Groups   []*Group
	Modules  []ModuleRule
	Packages map[string]*Rule // by path relative to the module
}

// Group is one level or area.
type Group struct {
	Name  string
	Level bool
	Order int      // place among the levels, lowest first; areas have none
	Sees  []string // of an area: names of levels, package paths, or *
	Line  int
}

// Rule is what layers.txt says of one package.
type Rule struct {
	Path     string
	Group    *Group
	Pure     bool
	TestOnly bool
	Later    bool
	May      []string // same-group packages it may import
	TestMay  []string // packages its tests may import beyond that
	Line     int
}

// ModuleRule says who may import a module that is not ours.
type ModuleRule struct {
	Path string
	In   []string
	Line int
}

// ParseLayers reads the format that the head of layers.txt describes. Every
// bad line is in the error, as name:line: what is wrong.
func ParseLayers(name, text string) (Layers, error) {
	p := layerParser{file: name, layers: Layers{Packages: map[string]*Rule{}}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			p.line(n, words)
		}
	}
	p.names()
	if len(p.problems) > 0 {
		return Layers{}, fmt.Errorf("%s", strings.Join(p.problems, "\n"))
	}
	return p.layers, nil
}

type layerParser struct {
	file     string
	layers   Layers
	group    *Group
	levels   int
	problems []string
}

func (p *layerParser) fail(line int, format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}

func (p *layerParser) line(n int, words []string) {
	switch words[0] {
	case "level":
		if len(words) != 2 {
			p.fail(n, "want: level NAME")
			return
		}
		p.group = &Group{Name: words[1], Level: true, Order: p.levels, Line: n}
		p.levels++
		p.layers.Groups = append(p.layers.Groups, p.group)
	case "area":
		if len(words) < 3 || words[2] != "sees" {
			p.fail(n, "want: area NAME sees X...")
			return
		}
		p.group = &Group{Name: words[1], Order: -1, Sees: words[3:], Line: n}
		p.layers.Groups = append(p.layers.Groups, p.group)
	case "module":
		if len(words) < 4 || words[2] != "in" {
			p.fail(n, "want: module PATH in X...")
			return
		}
		p.layers.Modules = append(p.layers.Modules, ModuleRule{Path: words[1], In: words[3:], Line: n})
	default:
		p.pkg(n, words)
	}
}

func (p *layerParser) pkg(n int, words []string) {
	if p.group == nil {
		p.fail(n, "%s stands before the first level", words[0])
		return
	}
	if old, ok := p.layers.Packages[words[0]]; ok {
		p.fail(n, "%s is listed twice, first in line %d", words[0], old.Line)
		return
	}
	r := &Rule{Path: words[0], Group: p.group, Line: n}
	var list *[]string
	for _, w := range words[1:] {
		switch {
		case w == "<-":
			list = &r.May
		case w == "test<-":
			list = &r.TestMay
		case list != nil:
			*list = append(*list, strings.TrimSuffix(w, ","))
		case w == "pure":
			r.Pure = true
		case w == "testonly":
			r.TestOnly = true
		case w == "later":
			r.Later = true
		default:
			p.fail(n, "unknown mark %q; want pure, testonly, later, <- or test<-", w)
		}
	}
	p.layers.Packages[r.Path] = r
}

// names checks that whatever a line refers to is listed itself, so that a
// renamed package cannot leave a permission behind.
func (p *layerParser) names() {
	levels := map[string]bool{}
	for _, g := range p.layers.Groups {
		if g.Level {
			levels[g.Name] = true
		}
	}
	for _, g := range p.layers.Groups {
		for _, s := range g.Sees {
			if s != "*" && !levels[s] && p.layers.Packages[s] == nil {
				p.fail(g.Line, "area %s sees %s, which is no level and no listed package", g.Name, s)
			}
		}
	}
	for _, r := range p.layers.Packages {
		for _, m := range r.May {
			switch to := p.layers.Packages[m]; {
			case to == nil:
				p.fail(r.Line, "%s may import %s, which is not listed", r.Path, m)
			case to.Group != r.Group:
				p.fail(r.Line, "%s and %s are not in the same level or area; <- is for neighbours", r.Path, m)
			}
		}
		for _, m := range r.TestMay {
			if p.layers.Packages[m] == nil {
				p.fail(r.Line, "tests of %s may import %s, which is not listed", r.Path, m)
			}
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	link   = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	quoted = regexp.MustCompile("`([^`]+)`")
	ours   = regexp.MustCompile(`^\.?(?:lib|bin|platform|ci|docs|examples|hibernate|vmgahp|integration)/`)
)

// DocPaths wants every path that a Markdown document names to be there: the
// targets of links, relative to the document, and the paths in `code` that
// begin with one of our folders. A symbol after a colon, as in
// `lib/ep/step.go:Step`, must stand in that file. read returns the text of a
// file by its path in the repository, and whether there is such a file or
// folder. Names with a star, an ellipsis, angle brackets or braces are
// patterns, not paths.
func DocPaths(name, text string, read func(path string) (string, bool)) []string {
	var broken []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			if _, ok := read(path.Join(path.Dir(name), m[1])); !ok {
				broken = append(broken, fmt.Sprintf("%s:%d: a link to %s, which is not there", name, n, m[1]))
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			target, _, _ := strings.Cut(m[1], " ")
			if !ours.MatchString(target) || strings.ContainsAny(target, "*…<{[") || strings.Contains(target, "...") {
				continue
			}
			file, symbol, _ := strings.Cut(target, ":")
			switch body, ok := read(strings.TrimSuffix(file, "/")); {
			case !ok:
				broken = append(broken, fmt.Sprintf("%s:%d: names %s, which is not there", name, n, file))
			case symbol != "" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(symbol)+`\b`).MatchString(body):
				broken = append(broken, fmt.Sprintf("%s:%d: names %s, but %s does not contain it", name, n, symbol, file))
			}
		}
	}
	return broken
}

var aTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*\b`)

// DocTests wants every test that a Markdown document names to be there, so that a
// promise does not outlive its proof. there says whether a package has a test of that name.
// The package that is meant stands in `code` before it, or before the list that it is in;
// without one any will do.
func DocTests(name, text string, there func(pkg, test string) bool) []string {
	var broken []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		for cell := range strings.SplitSeq(line, "|") {
			pkg, end := "", 0
			listed := false // a test stands before
			for _, at := range quotedOrTest.FindAllStringIndex(cell, -1) {
				if between := strings.TrimSpace(cell[end:at[0]]); between != "" && (between != "," || !listed) {
					pkg = ""
				}
				end, listed = at[1], false
				word := strings.Trim(cell[at[0]:at[1]], "`")
				if folder, _, _ := strings.Cut(word, ":"); ours.MatchString(folder) && !strings.ContainsAny(folder, "*…<{[ ") {
					if pkg = strings.TrimSuffix(folder, "/"); strings.HasSuffix(pkg, ".go") {
						pkg = path.Dir(pkg)
					}
				}
				for _, test := range aTest.FindAllString(word, -1) {
					listed = true
					if !there(pkg, test) {
						broken = append(broken, fmt.Sprintf("%s:%d: names the test %s, which %s does not have", name, n, test, cmp.Or(pkg, "the tree")))
					}
				}
			}
		}
	}
	return broken
}

// quotedOrTest finds code and the tests beside it.
var quotedOrTest = regexp.MustCompile("`[^`]+`|" + aTest.String())

var required = regexp.MustCompile(`^(?:require\s+)?([A-Za-z0-9.\-]+\.[A-Za-z0-9./\-]+) v\S+( // indirect)?$`)

// ModulesExplained wants a row in the document about dependencies for every
// module that go.mod requires of our own accord.
func ModulesExplained(gomod, document string) []string {
	var broken []string
	n := 0
	for line := range strings.Lines(gomod) {
		n++
		m := required.FindStringSubmatch(strings.TrimSpace(line))
		if m != nil && m[2] == "" && !strings.Contains(document, "| `"+m[1]+"` |") {
			broken = append(broken, fmt.Sprintf("go.mod:%d: %s has no row in docs/dependencies.md", n, m[1]))
		}
	}
	return broken
}

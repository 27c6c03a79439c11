// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
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

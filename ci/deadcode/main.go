// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command deadcode holds the functions that no program reaches to the list
// beside it: code that nothing runs is wired in, deleted, or stands there with who
// uses it all the same (an Example of the library, a program of others, tests of
// another package) and why.
//
//	deadcode ./bin/... | go run ./ci/deadcode
//
// It reads what golang.org/x/tools/cmd/deadcode prints, which ci/check installs.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(found io.Reader) error {
	root, err := source.Root()
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(root, "ci", "deadcode", "allowed.tsv"))
	if err != nil {
		return err
	}
	allowed, err := parseList(string(list))
	if err != nil {
		return err
	}
	dead, err := parseFound(found)
	if err != nil {
		return err
	}
	return compare(dead, allowed, func(file string) (string, error) {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		return string(b), err
	})
}

// function is one that no program reaches: "Reader.Next" in lib/eventlog/reader.go.
type function struct{ file, name string }

// entry is one line of the list. A name of * is every function of the file.
type entry struct {
	function
	user string // file in which it is used
	why  string
}

// foundLine is a line of deadcode's.
var foundLine = regexp.MustCompile(`^([^:]+):\d+:\d+: unreachable func: (\S+)$`)

func parseFound(r io.Reader) ([]function, error) {
	var all []function
	in := bufio.NewScanner(r)
	for in.Scan() {
		if in.Text() == "" {
			continue
		}
		m := foundLine.FindStringSubmatch(in.Text())
		if m == nil {
			return nil, fmt.Errorf("not a line of deadcode: %q", in.Text())
		}
		all = append(all, function{file: filepath.ToSlash(m[1]), name: m[2]})
	}
	return all, in.Err()
}

func parseList(text string) ([]entry, error) {
	var all []entry
	seen := make(map[function]bool)
	i := 0
	for line := range strings.Lines(text) {
		i++
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || f[0] == "" || f[1] == "" || f[2] == "" || f[3] == "" {
			return nil, fmt.Errorf("allowed.tsv:%d: want file, function, file that uses it and why, with tabs between them", i)
		}
		one := function{f[0], f[1]}
		if seen[one] {
			return nil, fmt.Errorf("allowed.tsv:%d: %s %s stands there twice", i, one.file, one.name)
		}
		seen[one] = true
		all = append(all, entry{one, f[2], f[3]})
	}
	return all, nil
}

// compare says which functions are not on the list, and which lines of it are
// not true any more. read returns the text of a file of the repository.
func compare(dead []function, allowed []entry, read func(file string) (string, error)) error {
	var all error
	used := make([]bool, len(allowed))
	for _, d := range dead {
		known := false
		for i, a := range allowed {
			if a.file == d.file && (a.name == d.name || a.name == "*") {
				used[i], known = true, true
			}
		}
		if !known {
			all = errors.Join(all, fmt.Errorf("%s: no program reaches %s: wire it in, delete it, or say in ci/deadcode/allowed.tsv who uses it", d.file, d.name))
		}
	}
	for i, a := range allowed {
		if !used[i] {
			all = errors.Join(all, fmt.Errorf("ci/deadcode/allowed.tsv: %s %s is reached by a program, or gone: take the line out", a.file, a.name))
			continue
		}
		text, err := read(a.user)
		if err != nil {
			all = errors.Join(all, fmt.Errorf("ci/deadcode/allowed.tsv: %s %s: %w", a.file, a.name, err))
			continue
		}
		if word := a.mentioned(); !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(text) {
			all = errors.Join(all, fmt.Errorf("ci/deadcode/allowed.tsv: %s does not mention %s of %s", a.user, word, a.file))
		}
	}
	return all
}

// mentioned is the word that a file which uses the entry has: the function, or the
// package for a whole file.
func (e entry) mentioned() string {
	if e.name == "*" {
		return path.Base(path.Dir(e.file))
	}
	return e.name[strings.LastIndexByte(e.name, '.')+1:]
}

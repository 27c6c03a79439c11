// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// UserMap is a map file (CERTIFICATE_MAPFILE): lines of
//
//	method principal canonical
//
// that say which user somebody is who was authenticated by a method. The
// method is one of FS, IDTOKENS, SSL, ... in any case. The principal is a
// regular expression that fits anywhere in the name or, when keys are assumed
// to be names (CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS), a name, and a regular
// expression only between slashes, with i and U behind for no regard to case
// and shortest matches. The canonical name may refer to groups as \1. The
// first line that fits wins. "@include path" reads another file, or all files
// of a directory; those include no further. A '#' begins a comment line.
//
// A UserMap is immutable and safe for concurrent use.
type UserMap struct {
	methods map[string][]mapEntry
}

type mapEntry struct {
	name      string   // compared exactly if match is nil
	match     *pattern // a regular expression
	canonical string
}

// MapOptions say how a map file is read.
type MapOptions struct {
	// AssumeNames is CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS.
	AssumeNames bool
	// ReadFile and ReadDir serve @include; nil refuses it.
	ReadFile func(path string) ([]byte, error)
	ReadDir  func(path string) ([]string, error)
}

// The bounds of a map file.
const (
	maxMapFile    = 16 << 20
	maxMapEntries = 200_000
	maxMapFiles   = 1000
)

// ParseMap reads a map file; path is where it lies, for messages and for the
// files it includes. Each line that cannot be used is an error with its place;
// all of them come together.
func ParseMap(path, text string, o MapOptions) (*UserMap, error) {
	r := mapReader{o: o, m: &UserMap{methods: map[string][]mapEntry{}}}
	r.read(path, text, true)
	if len(r.problems) > 0 {
		return nil, errs.E("security.ParseMap", errs.Invalid, path, errors.Join(r.problems...))
	}
	return r.m, nil
}

// readMap reads the map file, nil where the configuration has none.
func (c *Knobs) readMap(from Sources) (*UserMap, error) {
	if c.MapFile == "" {
		return nil, nil
	}
	if from.ReadFile == nil {
		return nil, errs.E("security.Configure", errs.Invalid, "CERTIFICATE_MAPFILE", fmt.Errorf("no files can be read here"))
	}
	text, err := from.ReadFile(c.MapFile)
	if err != nil {
		return nil, errs.E("security.Configure", errs.NotFound, "CERTIFICATE_MAPFILE", err)
	}
	return ParseMap(c.MapFile, string(text), MapOptions{AssumeNames: c.MapNames, ReadFile: from.ReadFile, ReadDir: from.ReadDir})
}

// mapReader is the reading of one map file and what it includes.
type mapReader struct {
	o        MapOptions
	m        *UserMap
	entries  int
	files    int
	problems []error
}

// maxMapProblems bounds what is told of a broken file.
const maxMapProblems = 20

func (r *mapReader) problem(path string, line, column int, format string, args ...any) {
	if len(r.problems) < maxMapProblems {
		r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s", path, line, column, fmt.Sprintf(format, args...)))
	}
}

func (r *mapReader) read(path, text string, mayInclude bool) {
	if len(text) > maxMapFile {
		r.problem(path, 1, 1, "the file has %d bytes, at most %d are read", len(text), maxMapFile)
		return
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if r.entries > maxMapEntries || len(r.problems) >= maxMapProblems {
			return
		}
		r.line(path, n, strings.TrimRight(line, "\r\n"), mayInclude)
	}
}

func (r *mapReader) line(path string, n int, line string, mayInclude bool) {
	f := mapFields{s: line}
	method, _ := f.next(false)
	switch {
	case method == "" || method[0] == '#':
		return
	case method == "@include":
		column := f.i + 1
		name, _ := f.next(false)
		switch {
		case !mayInclude:
			r.problem(path, n, 1, "an included file cannot include another")
		case name == "":
			r.problem(path, n, column, "@include wants a file or directory")
		default:
			r.include(path, n, column, name)
		}
		return
	}
	column := f.i + 1
	principal, how := f.next(r.o.AssumeNames)
	canonical, _ := f.next(false)
	if principal == "" || canonical == "" {
		r.problem(path, n, column, "want: method principal canonical")
		return
	}
	if r.entries++; r.entries > maxMapEntries {
		r.problem(path, n, 1, "more than %d lines", maxMapEntries)
		return
	}
	e := mapEntry{name: principal, canonical: canonical}
	if how.regexp || !r.o.AssumeNames {
		p, err := compile(principal, how)
		if err != nil {
			r.problem(path, n, column, "%v", err)
			return
		}
		e.match = p
	}
	key := strings.ToUpper(method)
	r.m.methods[key] = append(r.m.methods[key], e)
}

// include reads what @include names: a file, or the files of a directory in
// the order of their names.
func (r *mapReader) include(from string, n, column int, name string) {
	if r.o.ReadFile == nil {
		r.problem(from, n, column, "@include is not possible here")
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	paths := []string{name}
	if r.o.ReadDir != nil {
		if names, err := r.o.ReadDir(name); err == nil {
			names = slices.Sorted(slices.Values(names))
			paths = paths[:0]
			for _, file := range names {
				paths = append(paths, filepath.Join(name, file))
			}
		}
	}
	for _, p := range paths {
		if r.files++; r.files > maxMapFiles {
			r.problem(from, n, column, "more than %d files are included", maxMapFiles)
			return
		}
		text, err := r.o.ReadFile(p)
		if err != nil {
			r.problem(from, n, column, "@include %s: %v", p, err)
			continue
		}
		r.read(p, string(text), false)
	}
}

// Lookup returns the canonical name of a peer that was authenticated by a method.
func (m *UserMap) Lookup(method, name string) (string, bool) {
	if m == nil || len(name) > maxName {
		return "", false
	}
	all := m.methods[strings.ToUpper(method)]
	for i := range all {
		e := &all[i]
		if e.match == nil {
			if e.name == name {
				return expandGroups(e.canonical, []string{name}), true
			}
			continue
		}
		if groups := e.match.find(name); groups != nil {
			return expandGroups(e.canonical, groups), true
		}
	}
	return "", false
}

// maxName bounds a name that a peer may have.
const maxName = 4096

// expandGroups replaces \0 to \9 by groups; one that does not exist stays.
func expandGroups(text string, groups []string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
			if g := int(text[i+1] - '0'); g < len(groups) {
				b.WriteString(groups[g])
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// fileParts is what the letters of $F ask for.
type fileParts struct {
	path, name, ext bool
	full            bool // absolute
	dirs            int  // how many of the last directories
	quote           byte // 0 for none
	bare            bool // without the / of a directory and the . of an extension
	slash           byte // if not 0, what / and \ become
}

// parseFileParts reads the letters. The letter f asks for the full path of a
// relative one; a configuration has no directory of its own, so it does
// nothing there.
func parseFileParts(letters string) fileParts {
	var p fileParts
	args := false
	for i := range len(letters) {
		switch lower(letters[i]) {
		case 'f':
			p.full = true
		case 'p':
			p.path = true
		case 'd':
			p.dirs++
		case 'n':
			p.name = true
		case 'x':
			p.ext = true
		case 'q':
			p.quote = '"'
		case 'a':
			args = true
		case 'b':
			p.bare = true
		case 'w':
			p.slash = '\\'
		case 'u':
			p.slash = '/'
		}
	}
	if p.quote != 0 && args {
		p.quote = '\''
	}
	return p
}

// fileFunction is $F..(NAME), $DIRNAME(NAME) and $BASENAME(NAME [, suffix]).
// NAME may also be a path itself.
func (x *expansion) fileFunction(fn function, letters, body string) string {
	var p fileParts
	suffix := ""
	switch fn {
	case fnDirname:
		p.path = true
	case fnBasename:
		p.name, p.ext = true, true
		if i := strings.LastIndexByte(body, ','); i >= 0 {
			suffix = trimLeft(body[i+1:])
			body = body[:i]
		}
	default:
		p = parseFileParts(letters[1:])
	}
	path := x.argument(body)
	if p.full && x.absolute != nil && path != "" {
		path = x.absolute(unquote(path))
	}
	return p.cut(path, suffix)
}

// cut returns the parts of a path.
func (p fileParts) cut(path, suffix string) string {
	path = unquote(path)
	if strings.HasPrefix(path, `"`) || p.quote != 0 && strings.HasPrefix(path, string(p.quote)) {
		path = path[1:]
	}
	if p.slash != 0 {
		path = strings.Map(func(r rune) rune {
			if r == '/' || r == '\\' {
				return rune(p.slash)
			}
			return r
		}, path)
	}
	base := strings.LastIndexAny(path, `/\`) + 1
	dot := extensionAt(path, base)
	if suffix != "" && len(path)-len(suffix) >= base && equalFold(path[len(path)-len(suffix):], suffix) {
		dot = len(path) - len(suffix)
		p.ext = false
	}
	if base == 0 && (p.name || p.ext) {
		p.path, p.dirs = false, 0
	}

	start, end := 0, len(path)
	switch {
	case p.dirs > 0 && base == 0:
		start, end = 0, 0
	case p.dirs > 0:
		start = directoriesAt(path, p.dirs)
	case !p.path && p.name:
		start = base
	case !p.path && p.ext:
		start = dot
		if p.bare && dot < end {
			start++
		}
	}
	switch {
	case p.name && !p.ext:
		end = max(dot, start)
	case !p.ext && (p.path || p.dirs > 0) && base > 0:
		end = base
		if p.bare {
			end--
		}
		end = max(end, start)
	case !p.ext && p.path:
		end = 0
	}
	out := path[start:end]
	if p.quote != 0 {
		q := string(p.quote)
		out = q + strings.TrimSuffix(out, q) + q
	}
	return out
}

// unquote drops a pair of like quotes around s.
func unquote(s string) string {
	if n := len(s); n > 1 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// extensionAt returns the offset of the dot of the extension of the file name
// at base, or the end. A dot that begins the name begins no extension.
func extensionAt(path string, base int) int {
	if i := strings.LastIndexByte(path[base:], '.'); i > 0 {
		return base + i
	}
	return len(path)
}

// directoriesAt returns where the last n directories of path begin.
func directoriesAt(path string, n int) int {
	at := strings.LastIndexAny(path, `/\`)
	for ; n > 0 && at >= 0; n-- {
		at = strings.LastIndexAny(path[:at], `/\`)
	}
	return at + 1
}

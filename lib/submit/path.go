// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"io/fs"
	"path"
	"strings"
)

// isAbs reports whether name is absolute on Unix or on Windows.
func isAbs(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`) || len(name) > 1 && name[1] == ':' && isLetter(name[0])
}

// fullPath makes name absolute by what it is relative to. Slashes in a row
// become one; . and .. stay, as they do in HTCondor.
func fullPath(dir, name string) string {
	if !isAbs(name) {
		sep := "/"
		if strings.Contains(dir, `\`) || len(dir) > 1 && dir[1] == ':' {
			sep = `\`
		}
		name = dir + sep + name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		slash := name[i] == '/' || name[i] == '\\'
		if slash && i > 0 && (name[i-1] == '/' || name[i-1] == '\\') && !(i == 1 && name[0] == '\\') {
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// isURL reports whether a file to transfer is fetched from elsewhere.
func isURL(name string) bool {
	scheme, rest, ok := strings.Cut(name, "://")
	return ok && rest != "" && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// splitDir parts an absolute name for a fs.FS of its directory.
func splitDir(name string) (dir, base string) {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	return path.Split(name)
}

// stat looks at a file; ok is false when there is none or no way to look.
func (o *Options) stat(name string) (info fs.FileInfo, ok bool) {
	if o.DirFS == nil {
		return nil, false
	}
	dir, base := splitDir(name)
	if base == "" {
		base = "."
	}
	info, err := fs.Stat(o.DirFS(dir), base)
	return info, err == nil
}

// kib returns the size of a file or of all files below a directory, each
// rounded up to KiB; 0 when it cannot be known.
func (o *Options) kib(name string) int64 {
	info, ok := o.stat(name)
	if !ok {
		return 0
	}
	if !info.IsDir() {
		return (info.Size() + 1023) / 1024
	}
	total, seen := int64(0), 0
	// What cannot be read has no size here; the transfer will report it.
	_ = fs.WalkDir(o.DirFS(path.Clean(name)), ".", func(_ string, e fs.DirEntry, err error) error {
		if seen++; seen > 100000 {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			total += (info.Size() + 1023) / 1024
		}
		return nil
	})
	return total
}

// pathPart is $F: parts of a path, chosen by letters. p is the directory, each
// d one directory above the name, n the name and x the extension; f makes it
// absolute, b takes off what only separates, q puts double quotes around it
// (with a, single ones), w and u choose the slashes.
func pathPart(path, letters, cwd string) string {
	letters = strings.ToLower(letters)
	has := func(c string) bool { return strings.Contains(letters, c) }
	path = unquote(path)
	if has("f") && path != "" {
		path = fullPath(cwd, path)
	}
	slash := strings.LastIndexAny(path, `/\`)
	dir, name := path[:slash+1], path[slash+1:]
	extension := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name, extension = name[:dot], name[dot:]
	}
	out := path
	if strings.Trim(letters, "fbqawu") != "" {
		out = ""
		switch {
		case has("p"):
			out = dir
		case has("d"):
			from := len(dir)
			for range strings.Count(letters, "d") {
				from = strings.LastIndexAny(strings.TrimRight(dir[:from], `/\`), `/\`) + 1
			}
			if strings.Trim(dir[from:], `/\`) != "" && strings.Trim(dir[:from], `/\`) == "" && strings.Count(letters, "d") > depthOf(dir) {
				from = 0 // the root counts as a directory of its own
			}
			out = dir[from:]
		}
		if has("n") {
			out += name
		}
		if has("x") {
			out += extension
		}
		if has("b") {
			if has("n") || has("x") {
				if !has("n") && !has("p") && !has("d") {
					out = strings.TrimPrefix(out, ".")
				}
			} else if trimmed := strings.TrimRight(out, `/\`); trimmed != "" {
				out = trimmed
			}
		}
	}
	switch {
	case has("w"):
		out = strings.ReplaceAll(out, "/", `\`)
	case has("u"):
		out = strings.ReplaceAll(out, `\`, "/")
	}
	if has("q") {
		quote := `"`
		if has("a") {
			quote = "'"
		}
		out = quote + out + quote
	}
	return out
}

// depthOf counts the directories in a path that ends with a slash.
func depthOf(dir string) int {
	return len(strings.FieldsFunc(dir, func(r rune) bool { return r == '/' || r == '\\' }))
}

// unquote takes double quotes off both ends.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

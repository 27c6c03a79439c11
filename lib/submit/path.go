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
	info, err := o.look(name)
	return info, err == nil
}

// look is stat where there is a way to look, and says what is wrong.
func (o *Options) look(name string) (fs.FileInfo, error) {
	dir, base := splitDir(name)
	if base == "" {
		base = "."
	}
	return fs.Stat(o.DirFS(dir), base)
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

// unquote takes double quotes off both ends.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

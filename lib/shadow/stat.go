// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Stat is what is known of a file. Times are Unix seconds.
type Stat struct {
	Dev, Ino, Mode, Nlink, UID, GID, Rdev, Size, BlockSize, Blocks, Atime, Mtime, Ctime int64
}

func (s *Stat) fields() []*int64 {
	return []*int64{&s.Dev, &s.Ino, &s.Mode, &s.Nlink, &s.UID, &s.GID, &s.Rdev, &s.Size, &s.BlockSize, &s.Blocks, &s.Atime, &s.Mtime, &s.Ctime}
}

// String returns the numbers in the order in which shadow and Chirp send them,
// without the end of the line.
func (s Stat) String() string { return numbers(s.fields()) }

// ParseStat reads a line of such numbers.
func ParseStat(line string) (s Stat, err error) {
	return s, parseNumbers(line, s.fields())
}

// Statfs is what is known of a file system.
type Statfs struct {
	Type, BlockSize, Blocks, Free, Available, Files, FilesFree int64
}

func (s *Statfs) fields() []*int64 {
	return []*int64{&s.Type, &s.BlockSize, &s.Blocks, &s.Free, &s.Available, &s.Files, &s.FilesFree}
}

// String returns the numbers in the order in which shadow and Chirp send them,
// without the end of the line.
func (s Statfs) String() string { return numbers(s.fields()) }

// ParseStatfs reads a line of such numbers.
func ParseStatfs(line string) (s Statfs, err error) {
	return s, parseNumbers(line, s.fields())
}

func numbers(fields []*int64) string {
	var b []byte
	for i, f := range fields {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, *f, 10)
	}
	return string(b)
}

func parseNumbers(line string, fields []*int64) error {
	words := strings.Fields(line)
	if len(words) != len(fields) {
		return fmt.Errorf("%d numbers in %.80q, want %d", len(words), line, len(fields))
	}
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil { // devices and the like are unsigned there
			u, err := strconv.ParseUint(w, 10, 64)
			if err != nil {
				return fmt.Errorf("%.40q is no number", w)
			}
			n = int64(u)
		}
		*fields[i] = n
	}
	return nil
}

// Entry is a file in a directory.
type Entry struct {
	Name string
	Stat Stat
}

// maxName bounds the name of a file in a directory, as file systems do.
const maxName = 1024

// ParseDir reads the text of a directory: a name on each line, then an empty
// line.
func ParseDir(text string) ([]string, error) {
	var names []string
	for {
		name, rest, ok := strings.Cut(text, "\n")
		switch {
		case !ok:
			return nil, fmt.Errorf("the list does not end with an empty line")
		case name == "":
			return names, nil
		case len(name) > maxName:
			return nil, fmt.Errorf("a name of %d bytes, at most %d can be", len(name), maxName)
		}
		names = append(names, name)
		text = rest
	}
}

// ParseLongDir reads the text of a directory with a line about the file after
// each name.
func ParseLongDir(text string) ([]Entry, error) {
	lines, err := ParseDir(text)
	if err != nil {
		return nil, err
	}
	if len(lines)%2 != 0 {
		return nil, fmt.Errorf("nothing is said about %.80q", lines[len(lines)-1])
	}
	entries := make([]Entry, 0, len(lines)/2)
	for i := 0; i < len(lines); i += 2 {
		s, err := ParseStat(lines[i+1])
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", lines[i], err)
		}
		entries = append(entries, Entry{Name: lines[i], Stat: s})
	}
	return entries, nil
}

// GetDir lists a directory.
func (c *Caller) GetDir(ctx context.Context, path string) ([]string, error) {
	return parsed(ctx, c, &Request{Call: CallGetdir, Texts: [2]string{path}}, ParseDir)
}

// GetLongDir lists a directory with what is known of each file.
func (c *Caller) GetLongDir(ctx context.Context, path string) ([]Entry, error) {
	return parsed(ctx, c, &Request{Call: CallGetlongdir, Texts: [2]string{path}}, ParseLongDir)
}

// Stat tells of a file, through symbolic links.
func (c *Caller) Stat(ctx context.Context, path string) (Stat, error) {
	return parsed(ctx, c, &Request{Call: CallStat, Texts: [2]string{path}}, ParseStat)
}

// Lstat tells of a file or of the symbolic link itself.
func (c *Caller) Lstat(ctx context.Context, path string) (Stat, error) {
	return parsed(ctx, c, &Request{Call: CallLstat, Texts: [2]string{path}}, ParseStat)
}

// Fstat tells of an open file.
func (c *Caller) Fstat(ctx context.Context, fd int) (Stat, error) {
	return parsed(ctx, c, &Request{Call: CallFstat, Ints: [5]int64{int64(fd)}}, ParseStat)
}

// Statfs tells of the file system of a file.
func (c *Caller) Statfs(ctx context.Context, path string) (Statfs, error) {
	return parsed(ctx, c, &Request{Call: CallStatfs, Texts: [2]string{path}}, ParseStatfs)
}

// Fstatfs tells of the file system of an open file.
func (c *Caller) Fstatfs(ctx context.Context, fd int) (Statfs, error) {
	return parsed(ctx, c, &Request{Call: CallFstatfs, Ints: [5]int64{int64(fd)}}, ParseStatfs)
}

// parsed makes a call whose answer is a text with a form.
func parsed[T any](ctx context.Context, c *Caller, r *Request, parse func(string) (T, error)) (t T, err error) {
	reply, err := c.ask(ctx, r)
	if err != nil {
		return t, err
	}
	text := reply.Text
	if reply.Data != nil { // a block, padded
		line, _, _ := bytes.Cut(reply.Data, []byte{0})
		text = string(line)
	}
	t, err = parse(text)
	if err != nil {
		return t, c.useless(r.Call, err.Error())
	}
	return t, nil
}

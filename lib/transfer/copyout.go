// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Listing is the plain files at the top of a scratch directory, to see later
// which of them are new or changed.
type Listing map[string]stamp

type stamp struct {
	size int64
	time time.Time
	mode fs.FileMode
}

// List looks at the top of scratch.
func List(scratch *os.Root) (Listing, error) {
	entries, err := top(scratch)
	if err != nil {
		return nil, err
	}
	all := make(Listing, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all[e.Name()] = stampOf(info)
		}
	}
	return all, nil
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{size: info.Size(), time: info.ModTime(), mode: info.Mode().Perm()}
}

func top(scratch *os.Root) ([]fs.DirEntry, error) {
	dir, err := scratch.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// CopyOut copies to the submit side the standard files, and then either the
// files that the job listed or what is new or changed against before: plain
// files at the top, dot files and empty ones too, and a link to a file as a
// copy of it. A failure to write ends it; a listed file that is not there is
// counted, and the others are still sent. The error is a *Failure or ctx's.
func (o Output) CopyOut(ctx context.Context, scratch *os.Root, before Listing) (Result, error) {
	s := sender{ctx: ctx, from: scratch, submit: o.Submit, guarded: o.Guarded, progress: o.Progress}
	for _, std := range o.Std {
		if f := s.file(std.Name, std.Dest); f != nil {
			return s.got, f.orCancelled()
		}
	}
	names := o.Names
	if !o.Listed {
		var err error
		names, err = o.changed(scratch, before)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a job may remove the directory: nothing is left in it
			return s.got, &Failure{Path: scratch.Name(), Total: 1, Err: cause(err)}
		}
		sort.Strings(names)
	}
	var bad failures
	for _, name := range names {
		rel, err := inside(scratch, name)
		if err != nil {
			bad.add(&Failure{Path: name, Err: err})
			continue
		}
		f := s.any(rel, o.Destination(name))
		if f == nil {
			continue
		}
		if f.Writing || errors.Is(f.Err, context.Canceled) {
			return s.got, f.orCancelled()
		}
		bad.add(f)
	}
	return s.got, bad.err()
}

func (f *Failure) orCancelled() error {
	if errors.Is(f.Err, context.Canceled) {
		return f.Err
	}
	f.Total++
	return f
}

// changed lists what comes back by itself, in the order of the directory.
func (o Output) changed(scratch *os.Root, before Listing) ([]string, error) {
	entries, err := top(scratch)
	if err != nil {
		return nil, err
	}
	std := map[string]bool{}
	for _, s := range o.Std {
		std[s.Name] = true
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if std[name] || o.Quiet[name] {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			// A link that leads out, or to nothing, is not ours to follow.
			info, err = scratch.Stat(name)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if was, known := before[name]; !known || was != stampOf(info) {
			names = append(names, name)
		}
	}
	return names, nil
}

// inside turns a name of the job's list into one relative to scratch.
func inside(scratch *os.Root, name string) (string, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(scratch.Name(), name)
		if err != nil || !filepath.IsLocal(rel) {
			return "", errors.New("not in the scratch directory")
		}
		return rel, nil
	}
	rel := filepath.Clean(name)
	if !filepath.IsLocal(rel) {
		return "", errors.New("not in the scratch directory")
	}
	return rel, nil
}

// sender reads below a root.
type sender struct {
	ctx  context.Context
	from *os.Root
	got  Result
	// These are Output's.
	submit   SubmitSide
	guarded  bool
	progress func(int64)
}

func (s *sender) any(name, dest string) *Failure {
	info, err := s.from.Stat(name)
	if err != nil {
		return &Failure{Path: filepath.Join(s.from.Name(), name), Err: cause(err)}
	}
	if !info.IsDir() {
		return s.file(name, dest)
	}
	return s.dir(name, dest, 0)
}

func (s *sender) dir(name, dest string, depth int) *Failure {
	path := filepath.Join(s.from.Name(), name)
	if depth > maxDepth {
		return &Failure{Path: path, Err: errors.New("directories are nested too deep")}
	}
	if err := s.submit.do(dest, func() error { return os.Mkdir(dest, 0o755) }); err != nil && !errors.Is(err, fs.ErrExist) {
		return &Failure{Path: dest, Writing: true, Err: cause(err)}
	}
	dir, err := s.from.Open(name)
	if err != nil {
		return &Failure{Path: path, Err: cause(err)}
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return &Failure{Path: path, Err: cause(err)}
	}
	for _, e := range entries {
		from, to := filepath.Join(name, e.Name()), filepath.Join(dest, e.Name())
		var f *Failure
		switch {
		case e.IsDir():
			f = s.dir(from, to, depth+1)
		case e.Type().IsRegular():
			f = s.file(from, to)
		case e.Type()&fs.ModeSymlink != 0:
			if info, err := s.from.Stat(from); err == nil && info.Mode().IsRegular() {
				f = s.file(from, to)
			}
		}
		if f != nil {
			return f
		}
	}
	return nil
}

var errPlain = errors.New("not a plain file")

// file copies one plain file to dest: beside it first, then in its place, so
// that dest is never half a file.
func (s *sender) file(name, dest string) *Failure {
	path := filepath.Join(s.from.Name(), name)
	if info, err := s.from.Stat(name); err == nil && !info.Mode().IsRegular() { // to open a pipe is to wait for who writes to it
		return &Failure{Path: path, Err: errPlain}
	}
	from, err := s.from.Open(name)
	if err != nil {
		return &Failure{Path: path, Err: cause(err)}
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return &Failure{Path: path, Err: cause(err)}
	}
	if !info.Mode().IsRegular() {
		return &Failure{Path: path, Err: errPlain}
	}
	mode := info.Mode().Perm()
	if s.guarded {
		mode &^= 0o022
	}
	var to *os.File
	var commit func(error) error
	if err := s.submit.do(dest, func() (err error) {
		to, commit, err = create(dest, mode)
		return err
	}); err != nil {
		return &Failure{Path: dest, Writing: true, Err: cause(err)}
	}
	n, err := copyAll(s.ctx, to, from, s.progress)
	if err = s.submit.do(dest, func() error { return commit(err) }); err != nil {
		return &Failure{Path: dest, Writing: true, Err: cause(err)}
	}
	s.got.Files++
	s.got.Bytes += n
	return nil
}

// create opens what becomes dest when commit is called without an error. With
// one, nothing is left. Set-uid and its like are not passed on. A dest that is
// no plain file, or in a directory where nothing can be made, is written
// directly.
func create(dest string, mode fs.FileMode) (f *os.File, commit func(error) error, err error) {
	if target, err := filepath.EvalSymlinks(dest); err == nil {
		dest = target
	}
	old, err := os.Stat(dest)
	if err == nil && !old.Mode().IsRegular() {
		return direct(dest, mode)
	}
	exists := err == nil
	dir, base := filepath.Split(dest)
	part := filepath.Join(dir, "."+clip(base)+"."+strconv.FormatUint(uint64(rand.Uint32()), 36)+".part")
	f, err = os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if exists && errors.Is(err, fs.ErrPermission) {
			return direct(dest, mode)
		}
		return nil, nil, err
	}
	return f, func(err error) error {
		if err == nil {
			err = f.Chmod(mode)
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(part, dest)
		}
		if err != nil {
			_ = os.Remove(part)
		}
		return err
	}, nil
}

func direct(dest string, mode fs.FileMode) (*os.File, func(error) error, error) {
	f, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return nil, nil, err
	}
	return f, func(err error) error { return errors.Join(err, f.Close()) }, nil
}

// clip keeps a temporary name within what file systems allow.
func clip(base string) string {
	if len(base) > 200 {
		base = base[:200]
	}
	return strings.ToValidUTF8(base, "_")
}

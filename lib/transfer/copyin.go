// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxDepth bounds directories that are copied: a link may lead back up.
const maxDepth = 64

// CopyIn copies every item into scratch. It goes on after a failure, to count;
// then, or when ctx ends, the error is a *Failure or ctx's.
func (in Input) CopyIn(ctx context.Context, scratch *os.Root) (Result, error) {
	var got Result
	var bad failures
	for _, item := range in.Items {
		if err := ctx.Err(); err != nil {
			return got, err
		}
		c := copier{ctx: ctx, into: scratch, submit: in.Submit, got: &got}
		if f := c.item(item); f != nil {
			if errors.Is(f.Err, context.Canceled) {
				return got, f.Err
			}
			bad.add(f)
		}
	}
	return got, bad.err()
}

// copier writes below a root.
type copier struct {
	ctx    context.Context
	into   *os.Root
	submit SubmitSide
	got    *Result
}

// stat follows links.
func (s SubmitSide) stat(path string) (info fs.FileInfo, err error) {
	err = s.do(path, func() (err error) {
		info, err = os.Stat(path)
		return err
	})
	return info, err
}

func (s SubmitSide) readDir(path string) (entries []fs.DirEntry, err error) {
	err = s.do(path, func() (err error) {
		entries, err = os.ReadDir(path)
		return err
	})
	return entries, err
}

// open opens a plain file and nothing else.
func (s SubmitSide) open(path string) (f *os.File, err error) {
	err = s.do(path, func() (err error) {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // to open a pipe is to wait for who writes to it
			return errPlain
		}
		f, err = os.Open(path)
		return err
	})
	return f, err
}

func (c copier) item(item Item) *Failure {
	info, err := c.submit.stat(item.Source)
	if err != nil {
		return &Failure{Path: item.Source, Err: cause(err)}
	}
	if info.IsDir() {
		return c.dir(item.Source, item.Name, 0)
	}
	if item.Name == "" {
		return &Failure{Path: item.Source, Err: errors.New("not a directory")}
	}
	return c.file(item.Source, item.Name, item.Executable)
}

// dir copies the directory source as name, or its contents if name is "".
func (c copier) dir(source, name string, depth int) *Failure {
	if depth > maxDepth {
		return &Failure{Path: source, Err: errors.New("directories are nested too deep")}
	}
	if name != "" {
		info, err := c.submit.stat(source)
		if err != nil {
			return &Failure{Path: source, Err: cause(err)}
		}
		// the job must be able to write into what it is given
		if err := c.into.Mkdir(name, info.Mode().Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return &Failure{Path: name, Writing: true, Err: cause(err)}
		}
	}
	entries, err := c.submit.readDir(source)
	if err != nil {
		return &Failure{Path: source, Err: cause(err)}
	}
	for _, e := range entries {
		from, to := filepath.Join(source, e.Name()), filepath.Join(name, e.Name())
		info, err := c.submit.stat(from) // of a link: what it leads to
		switch {
		case err != nil:
			return &Failure{Path: from, Err: cause(err)}
		case info.IsDir() && e.Type()&fs.ModeSymlink != 0:
			continue // a link to a directory may lead anywhere, back up as well
		case info.IsDir():
			if f := c.dir(from, to, depth+1); f != nil {
				return f
			}
		case info.Mode().IsRegular():
			if f := c.file(from, to, false); f != nil {
				return f
			}
		}
	}
	return nil
}

// file copies one plain file. The copy has the mode and the time of the
// original, so that a change of it by the job shows.
func (c copier) file(source, name string, executable bool) *Failure {
	from, err := c.submit.open(source)
	if err != nil {
		return &Failure{Path: source, Err: cause(err)}
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return &Failure{Path: source, Err: cause(err)}
	}
	if !info.Mode().IsRegular() {
		return &Failure{Path: source, Err: errPlain}
	}
	mode := info.Mode().Perm()
	if executable {
		mode |= 0o100 | mode&0o044>>2 // who may read it may execute it
	}
	target := filepath.Join(c.into.Name(), name)
	const create = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	to, err := c.into.OpenFile(name, create, mode)
	if errors.Is(err, fs.ErrExist) { // listed twice: the last one counts, as in HTCondor
		if err = c.into.Remove(name); err == nil {
			to, err = c.into.OpenFile(name, create, mode)
		}
	}
	if err != nil {
		return &Failure{Path: target, Writing: true, Err: cause(err)}
	}
	n, err := copyAll(c.ctx, to, from, nil)
	if err == nil && mode&^0o755 != 0 { // the umask took these away
		err = to.Chmod(mode)
	}
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = c.into.Chtimes(name, time.Time{}, info.ModTime())
	}
	if err != nil {
		return &Failure{Path: target, Writing: true, Err: cause(err)}
	}
	c.got.Files++
	c.got.Bytes += n
	return nil
}

// chunk is how much is copied before looking whether to go on.
const chunk = 8 << 20

// copyAll copies from to to. Between files the kernel does it, by sharing
// blocks where the file system can.
func copyAll(ctx context.Context, to io.Writer, from io.Reader, progress func(int64)) (int64, error) {
	var total int64
	for {
		n, err := io.CopyN(to, from, chunk)
		total += n
		if progress != nil && n > 0 {
			progress(n)
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
	}
}

// cause takes the path away from an error that will be printed with one.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return fmt.Errorf("%w", err)
}

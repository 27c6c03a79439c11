// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxWalk bounds how many names a measurement looks at. A job that makes more
// is reported with what was seen so far.
const maxWalk = 200_000

const (
	// maxDeep bounds how deep it goes: each name is reached from the top anew.
	maxDeep = 500
	// batch is how many names of a directory are held at a time.
	batch = 1000
)

// Usage is what the scratch directory holds.
type Usage struct {
	KiB   int64 // sizes of plain files, each rounded up to a KiB
	Files int   // plain files
	Cut   bool  // there is more than was counted
	Full  bool  // a file system of its own has no room left
}

// Usage measures the scratch directory: by what a file system of its own says, or by
// the files' sizes. Files that vanish meanwhile are not counted; directories that cannot
// be read neither. Where there is more than is looked at, what its file system counts is
// told, if that is more.
func (s *Sandbox) Usage() Usage {
	if u, ok := s.volume.usage(); ok {
		return u
	}
	w := walk{left: maxWalk, elsewhere: s.isShared}
	if s.scratch != nil {
		w.dir(s.scratch, ".", 0)
	}
	if w.Cut {
		if u, ok := s.Counted(); ok {
			w.KiB, w.Files = max(w.KiB, u.KiB), max(w.Files, u.Files)
		}
	}
	return w.Usage
}

// walk is one measurement.
type walk struct {
	Usage
	left int // how many names it may still look at
	// elsewhere reports whether a file is counted in another sandbox.
	elsewhere func(name string, info fs.FileInfo) bool
}

func (w *walk) dir(root *os.Root, name string, deep int) {
	if deep > maxDeep {
		w.Cut = true
		return
	}
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	defer dir.Close()
	var below []string
	for {
		entries, err := dir.ReadDir(batch)
		for _, e := range entries {
			if w.left == 0 {
				w.Cut = true
				return
			}
			w.left--
			switch {
			case e.IsDir():
				below = append(below, e.Name())
			case e.Type() == fs.FileMode(0):
				if info, err := e.Info(); err == nil && (w.elsewhere == nil || !w.elsewhere(filepath.Join(name, e.Name()), info)) {
					w.Files++
					w.KiB += (info.Size() + 1023) / 1024
				}
			}
		}
		if err != nil {
			break
		}
	}
	dir.Close() // however deep the job goes, one descriptor is open
	for _, at := range below {
		if name != "." {
			at = name + "/" + at
		}
		if w.dir(root, at, deep+1); w.Cut && w.left == 0 {
			return
		}
	}
}

// Written returns when the job's standard files in the scratch directory were
// written last, zero for one that is not there.
func (s *Sandbox) Written() (stdout, stderr time.Time) {
	at := func(name string) time.Time {
		if s.scratch == nil {
			return time.Time{}
		}
		info, err := s.scratch.Lstat(name)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	return at(StdoutFile), at(StderrFile)
}

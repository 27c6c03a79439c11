// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io/fs"
	"os"
	"time"
)

// maxWalk bounds how many files a measurement looks at. A job that makes more
// is reported with what was seen so far.
const maxWalk = 200_000

// Usage is what the scratch directory holds.
type Usage struct {
	KiB   int64 // sizes of plain files, each rounded up to a KiB
	Files int   // plain files
	Cut   bool  // there is more than was counted
}

// Usage measures the scratch directory by the files' sizes. Files that vanish
// meanwhile are not counted; directories that cannot be read neither.
func (s *Sandbox) Usage() Usage {
	var u Usage
	if s.scratch != nil {
		u.walk(s.scratch, ".")
	}
	return u
}

func (u *Usage) walk(root *os.Root, name string) {
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1)
	dir.Close()
	for _, e := range entries {
		if u.Files >= maxWalk {
			u.Cut = true
			return
		}
		at := e.Name()
		if name != "." {
			at = name + "/" + at
		}
		switch {
		case e.IsDir():
			u.walk(root, at)
		case e.Type() == fs.FileMode(0):
			if info, err := e.Info(); err == nil {
				u.Files++
				u.KiB += (info.Size() + 1023) / 1024
			}
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

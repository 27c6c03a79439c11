// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/errs"
)

// Manifest writes a file of the job's user into dir, a name in the scratch
// directory, which is made if it is not there. A link in place of either is
// replaced or refused, never followed out of the scratch directory. With write
// nil it lists what the scratch directory holds, itself too: a name a line in
// the order of the directories, a slash behind those of directories.
func (s *Sandbox) Manifest(dir, name string, write func(io.Writer) error) error {
	err := s.as(func() error {
		if err := s.scratch.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		at := filepath.Join(dir, name)
		const create = os.O_WRONLY | os.O_CREATE | os.O_EXCL
		f, err := s.scratch.OpenFile(at, create, 0o644)
		if errors.Is(err, fs.ErrExist) {
			if err = s.scratch.RemoveAll(at); err == nil {
				f, err = s.scratch.OpenFile(at, create, 0o644)
			}
		}
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		if write == nil {
			left := maxWalk
			s.list(w, ".", &left)
		} else {
			err = write(w)
		}
		return errors.Join(err, w.Flush(), f.Close())
	})
	if err != nil {
		return errs.E("sandbox.Manifest", kindOf(err), filepath.Join(dir, name), err)
	}
	return nil
}

// list writes the names below dir, and no more than left. What cannot be read
// is left out. Errors of w are kept by it.
func (s *Sandbox) list(w *bufio.Writer, dir string, left *int) {
	f, err := s.scratch.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if *left == 0 {
			return
		}
		*left--
		at := dir + "/" + e.Name()
		_, _ = w.WriteString(at)
		if e.IsDir() {
			_, _ = w.WriteString("/\n")
			s.list(w, at, left)
			continue
		}
		_ = w.WriteByte('\n')
	}
}

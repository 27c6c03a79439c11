// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Outside opens a file or a directory by its absolute path, to be read with the
// rights of the job's user and no others.
type Outside func(path string) (*os.File, error)

// mostOutside bounds what is looked at outside: nothing else bounds a path as /.
const mostOutside = 100_000

var errTooMany error = &sysError{cedar.EINVAL, "More than 100000 files and directories outside of the scratch directory"}

// outsideTree is what a path outside leads to. Links are followed, as the opener
// allows it.
type outsideTree struct{ open Outside }

func (t outsideTree) Stat(name string) (fs.FileInfo, error) {
	f, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

func (t outsideTree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

func (t outsideTree) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.ReadDir(mostOutside)
	if len(all) == mostOutside {
		return nil, errTooMany
	}
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

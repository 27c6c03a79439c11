// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Files that several jobs share are brought into a staging directory in the sandbox
// of a starter that does nothing else, EXECUTE/dir_<pid>/scratch/staging/<catalog>, and
// mapped from there into the sandboxes of the jobs. All of it is done with the rights
// of the job's user: a staging directory of another user cannot be entered, so the
// kernel decides who may map what. Paths below EXECUTE are reached through the handle
// of EXECUTE alone: what the access point says of a path leads to no other place.
//
// A staging directory that is complete has the mode 0500, and so have the directories
// below it; files have 0444. Nothing else is in there. A job's user owns the files,
// and could write to what others of its jobs have mapped; HTCondor's does the same.
const (
	stagingDir   = "staging"
	sealedDir    = 0o500
	sealedFile   = 0o444
	mappedDir    = 0o755
	maxNameBytes = 255
)

// staged is where a catalog of that name is, below the scratch directory.
func staged(catalog string) (string, error) {
	if len(catalog) > maxNameBytes || strings.ContainsAny(catalog, "/\\\x00\n") || !filepath.IsLocal(catalog) || catalog == "." || catalog == "" {
		return "", errs.E("sandbox.Stage", errs.Invalid, fmt.Sprintf("%.300q", catalog), errors.New("this cannot be the name of a directory"))
	}
	return filepath.Join(stagingDir, catalog), nil
}

// Stage makes an empty staging directory for a catalog, and returns a handle of it
// that the caller closes, and its path.
func (s *Sandbox) Stage(catalog string) (dir *os.Root, path string, err error) {
	name, err := staged(catalog)
	if err != nil {
		return nil, "", err
	}
	err = s.as(func() error {
		if err := s.scratch.Mkdir(stagingDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := removeAll(s.scratch, name); err != nil {
			return err
		}
		if err := s.scratch.Mkdir(name, 0o700); err != nil {
			return err
		}
		dir, err = s.scratch.OpenRoot(name)
		return err
	})
	path = filepath.Join(s.Scratch(), name)
	if err != nil {
		return nil, "", errs.E("sandbox.Stage", kindOf(err), path, err)
	}
	return dir, path, nil
}

// Seal says that all files of a catalog are in its staging directory: from now on they
// are to be read only. What is neither a file nor a directory is refused.
func (s *Sandbox) Seal(catalog string) error {
	name, err := staged(catalog)
	if err == nil {
		err = s.as(func() error { return seal(s.scratch, name, 0) })
	}
	if err != nil {
		return errs.E("sandbox.Seal", kindOf(err), name, err)
	}
	return nil
}

func seal(root *os.Root, name string, deep int) error {
	entries, err := list(root, name, deep)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := name + "/" + e.Name()
		switch {
		case e.IsDir():
			err = seal(root, at, deep+1)
		case e.Type().IsRegular():
			err = root.Chmod(at, sealedFile)
		default:
			err = fmt.Errorf("%s is a %v, not a file or directory", at, e.Type())
		}
		if err != nil {
			return err
		}
	}
	return root.Chmod(name, sealedDir)
}

func list(root *os.Root, name string, deep int) ([]fs.DirEntry, error) {
	if deep > maxDeep {
		return nil, fmt.Errorf("%.200s: more than %d directories below one another", name, maxDeep)
	}
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// ErrNotStaged says that a path is not that of a staging directory below EXECUTE.
var ErrNotStaged = errors.New("it is no staging directory of this EXECUTE")

// Map puts the files of the staging directory at path into the scratch directory, as
// hard links, or as copies where copies says so or no link can be made. A file that
// is there already is an error, a directory is not. It reports how many files it has
// linked and copied.
func (s *Sandbox) Map(ctx context.Context, path string, copies bool) (linked, copied int, err error) {
	const op = "sandbox.Map"
	from, err := s.stagedBelow(path)
	if err != nil {
		return 0, 0, errs.E(op, errs.Invalid, fmt.Sprintf("%.300q", path), err)
	}
	m := mapping{ctx: ctx, in: s.execute, copies: copies, to: filepath.Join(s.name, scratchDir), links: make(map[string]fs.FileInfo)}
	err = s.as(func() error { return m.dir(from, ".", 0) })
	s.shareFiles(m.links)
	if err != nil {
		return len(m.links), m.copied, errs.E(op, kindOf(err), path, err)
	}
	return len(m.links), m.copied, nil
}

// stagedBelow is the name of a staging directory below EXECUTE.
func (s *Sandbox) stagedBelow(path string) (string, error) {
	rel, err := filepath.Rel(filepath.Dir(s.dir), filepath.Clean(path))
	if err != nil {
		return "", ErrNotStaged
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if !filepath.IsAbs(path) || len(parts) != 4 || !strings.HasPrefix(parts[0], prefix) || parts[1] != scratchDir || parts[2] != stagingDir {
		return "", ErrNotStaged
	}
	if _, err := staged(parts[3]); err != nil {
		return "", ErrNotStaged
	}
	return rel, nil
}

// mapping is one call of Map, with the rights of the job's user.
type mapping struct {
	ctx    context.Context
	in     *os.Root // EXECUTE
	to     string   // the scratch directory, below it
	copies bool
	links  map[string]fs.FileInfo // by the names in the scratch directory
	copied int
}

func (m *mapping) dir(from, name string, deep int) error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	info, err := m.in.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm() != sealedDir {
		return fmt.Errorf("%s is %v: want a directory of mode %04o, for it is not complete before", from, info.Mode(), sealedDir)
	}
	entries, err := list(m.in, from, deep)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at, to := filepath.Join(from, e.Name()), filepath.Join(name, e.Name())
		if !e.IsDir() {
			err = m.file(at, to)
		} else if err = m.mkdir(to); err == nil {
			err = m.dir(at, to, deep+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *mapping) mkdir(name string) error {
	at := filepath.Join(m.to, name)
	err := m.in.Mkdir(at, mappedDir)
	if errors.Is(err, fs.ErrExist) {
		if info, lerr := m.in.Lstat(at); lerr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

func (m *mapping) file(from, name string) error {
	info, err := m.in.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm() != sealedFile {
		return fmt.Errorf("%s is %v: want a file of mode %04o", from, info.Mode(), sealedFile)
	}
	to := filepath.Join(m.to, name)
	if !m.copies {
		err := m.in.Link(from, to)
		if err == nil {
			m.links[name] = info
			return nil
		}
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// A file system that counts by directory links nothing from one to the other
		// (EXDEV), some link nothing at all, and a file has a most of links (EMLINK).
	}
	if err := m.copyFile(from, to); err != nil {
		return err
	}
	m.copied++
	return nil
}

func (m *mapping) copyFile(from, to string) error {
	in, err := m.in.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := m.in.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, sealedFile)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// shareFiles notes that files of the scratch directory are counted elsewhere: in the
// sandbox in which they were staged. A job that gives one another name has it counted
// twice; one that links its own files hides none of them.
func (s *Sandbox) shareFiles(links map[string]fs.FileInfo) {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.shared == nil {
		s.shared = make(map[string]fs.FileInfo, len(links))
	}
	for name, info := range links {
		s.shared[name] = info
	}
}

// isShared reports whether the file of that name in the scratch directory is still the
// one that was mapped there.
func (s *Sandbox) isShared(name string, info fs.FileInfo) bool {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	was, ok := s.shared[name]
	return ok && os.SameFile(was, info)
}

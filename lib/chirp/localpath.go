// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/shadow"
)

// below calls f with the submit directory.
func (l *Local) below(call string, f func(root *os.Root) error) error {
	return l.as(call, func() error {
		root, err := l.open()
		if err != nil {
			return err
		}
		return f(root)
	})
}

// open returns the submit directory. It is opened when a file is first asked
// for: most jobs never do.
func (l *Local) open() (*os.Root, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.root != nil {
		return l.root, nil
	}
	root, err := os.OpenRoot(l.Dir)
	if err == nil {
		l.root = root
	}
	return root, err
}

// name returns a path as one below the directory.
func (l *Local) name(path string) string {
	if filepath.IsAbs(path) {
		if rel, err := filepath.Rel(l.Dir, path); err == nil {
			return rel
		}
	}
	return filepath.Clean(path)
}

// Unlink removes a file.
func (l *Local) Unlink(_ context.Context, path string) error {
	return l.below("unlink", func(root *os.Root) error {
		name := l.name(path)
		if info, err := root.Lstat(name); err == nil && info.IsDir() {
			return failed("unlink", cedar.EISDIR)
		}
		return root.Remove(name)
	})
}

// Rename gives a file another name.
func (l *Local) Rename(_ context.Context, from, to string) error {
	return l.below("rename", func(root *os.Root) error { return root.Rename(l.name(from), l.name(to)) })
}

// Mkdir makes a directory.
func (l *Local) Mkdir(_ context.Context, path string, mode int) error {
	return l.below("mkdir", func(root *os.Root) error { return root.Mkdir(l.name(path), fs.FileMode(mode)&fs.ModePerm) })
}

// Rmdir removes an empty directory.
func (l *Local) Rmdir(_ context.Context, path string) error {
	return l.below("rmdir", func(root *os.Root) error {
		name := l.name(path)
		if info, err := root.Lstat(name); err == nil && !info.IsDir() {
			return failed("rmdir", cedar.ENOTDIR)
		}
		return root.Remove(name)
	})
}

// RmAll removes a file or a directory with what is in it.
func (l *Local) RmAll(_ context.Context, path string) error {
	return l.below("rmall", func(root *os.Root) error {
		name := l.name(path)
		if name == "." {
			return failed("rmall", cedar.EINVAL)
		}
		if _, err := root.Lstat(name); err != nil {
			return err
		}
		return root.RemoveAll(name)
	})
}

// Link makes another name for a file.
func (l *Local) Link(_ context.Context, old, name string) error {
	return l.below("link", func(root *os.Root) error { return root.Link(l.name(old), l.name(name)) })
}

// Symlink makes a symbolic link.
func (l *Local) Symlink(_ context.Context, old, name string) error {
	return l.below("symlink", func(root *os.Root) error { return root.Symlink(old, l.name(name)) })
}

// Readlink returns at most n bytes of where a symbolic link leads.
func (l *Local) Readlink(_ context.Context, path string, n int) (to string, err error) {
	err = l.below("readlink", func(root *os.Root) (err error) {
		to, err = root.Readlink(l.name(path))
		return err
	})
	return to[:min(len(to), max(n, 0))], err
}

// Access asks whether a file is there and its owner may use it.
func (l *Local) Access(_ context.Context, path string, mode int) error {
	return l.below("access", func(root *os.Root) error {
		info, err := root.Stat(l.name(path))
		if err == nil && int(info.Mode().Perm()>>6)&mode&7 != mode&7 {
			err = fs.ErrPermission
		}
		return err
	})
}

// Chmod changes permissions.
func (l *Local) Chmod(_ context.Context, path string, mode int) error {
	return l.below("chmod", func(root *os.Root) error { return root.Chmod(l.name(path), fs.FileMode(mode)&fs.ModePerm) })
}

// Chown changes the owner.
func (l *Local) Chown(_ context.Context, path string, uid, gid int) error {
	return l.below("chown", func(root *os.Root) error { return root.Chown(l.name(path), uid, gid) })
}

// Lchown changes the owner of a symbolic link itself.
func (l *Local) Lchown(_ context.Context, path string, uid, gid int) error {
	return l.below("lchown", func(root *os.Root) error { return root.Lchown(l.name(path), uid, gid) })
}

// Truncate cuts a file or makes it longer.
func (l *Local) Truncate(ctx context.Context, path string, size int64) error {
	fd, err := l.Open(ctx, path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(l.Ftruncate(ctx, fd, size), l.Close(ctx, fd))
}

// Utime sets when a file was read and changed.
func (l *Local) Utime(_ context.Context, path string, read, changed int64) error {
	return l.below("utime", func(root *os.Root) error {
		return root.Chtimes(l.name(path), time.Unix(read, 0), time.Unix(changed, 0))
	})
}

// Stat tells of a file.
func (l *Local) Stat(_ context.Context, path string) (shadow.Stat, error) {
	return l.look("stat", path, (*os.Root).Stat)
}

// Lstat tells of a file or of the symbolic link itself.
func (l *Local) Lstat(_ context.Context, path string) (shadow.Stat, error) {
	return l.look("lstat", path, (*os.Root).Lstat)
}

func (l *Local) look(call, path string, at func(*os.Root, string) (fs.FileInfo, error)) (s shadow.Stat, err error) {
	err = l.below(call, func(root *os.Root) error {
		info, err := at(root, l.name(path))
		if err == nil {
			s = l.statOf(info)
		}
		return err
	})
	return s, err
}

// Statfs tells of the file system that a file is in.
func (l *Local) Statfs(ctx context.Context, path string) (s shadow.Statfs, err error) {
	fd, err := l.Open(ctx, path, os.O_RDONLY, 0)
	if err != nil {
		return s, err
	}
	s, err = l.Fstatfs(ctx, fd)
	return s, errors.Join(err, l.Close(ctx, fd))
}

// GetDir lists a directory.
func (l *Local) GetDir(ctx context.Context, path string) ([]string, error) {
	entries, err := l.GetLongDir(ctx, path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, nil
}

// GetLongDir lists a directory with what is known of each file. Names that a
// list cannot hold are left out.
func (l *Local) GetLongDir(_ context.Context, path string) (all []shadow.Entry, err error) {
	err = l.below("getlongdir", func(root *os.Root) error {
		list, err := fs.ReadDir(root.FS(), filepath.ToSlash(l.name(path)))
		if err != nil {
			return err
		}
		for _, e := range list {
			info, err := e.Info()
			if err != nil || strings.Contains(e.Name(), "\n") {
				continue
			}
			all = append(all, shadow.Entry{Name: e.Name(), Stat: l.statOf(info)})
		}
		return nil
	})
	return all, err
}

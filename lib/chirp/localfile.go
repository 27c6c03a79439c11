// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/shadow"
)

// with calls do with an open file.
func (l *Local) with(call string, fd int, do func(f *os.File) error) error {
	l.mu.Lock()
	f, ok := l.files[fd]
	l.mu.Unlock()
	if !ok {
		return failed(call, ebadf)
	}
	return l.as(call, func() error { return do(f) })
}

// Open opens a regular file or a directory.
func (l *Local) Open(_ context.Context, path string, flags, mode int) (int, error) {
	const call = "open"
	var f *os.File
	err := l.below(call, func(root *os.Root) (err error) {
		// Writing at a place is not possible with a file that is appended to, so
		// that is done by hand: the last byte there is now is where it begins.
		f, err = root.OpenFile(l.name(path), flags&^os.O_APPEND|l.System.NoWait, fs.FileMode(mode)&fs.ModePerm)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			err = failed(call, cedar.EACCES) // a pipe or a device may never answer
		}
		if err == nil && flags&os.O_APPEND != 0 {
			_, err = f.Seek(0, io.SeekEnd)
		}
		if err != nil {
			_ = f.Close()
		}
		return err
	})
	if err != nil {
		return -1, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for fd := range mostFiles {
		if _, used := l.files[fd]; !used {
			l.files[fd] = f
			return fd, nil
		}
	}
	_ = f.Close()
	return -1, failed(call, cedar.EMFILE)
}

// Close closes a file.
func (l *Local) Close(_ context.Context, fd int) error {
	return l.with("close", fd, func(f *os.File) error {
		l.mu.Lock()
		delete(l.files, fd)
		l.mu.Unlock()
		return f.Close()
	})
}

// Fsync has a file written to its disk.
func (l *Local) Fsync(_ context.Context, fd int) error {
	return l.with("fsync", fd, (*os.File).Sync)
}

// ended takes the end of a file for no error.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Read reads at most n bytes.
func (l *Local) Read(_ context.Context, fd, n int) ([]byte, error) {
	b := make([]byte, n)
	err := l.with("read", fd, func(f *os.File) (err error) {
		n, err = io.ReadFull(f, b)
		return ended(err)
	})
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// Pread reads at most n bytes at an offset.
func (l *Local) Pread(_ context.Context, fd, n int, offset int64) ([]byte, error) {
	b := make([]byte, n)
	err := l.with("pread", fd, func(f *os.File) (err error) {
		n, err = f.ReadAt(b, offset)
		return ended(err)
	})
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// Sread reads n bytes in all: length of them at offset, and so on every skip
// bytes.
func (l *Local) Sread(ctx context.Context, fd, n int, offset, length, skip int64) ([]byte, error) {
	var all []byte
	for len(all) < n && length > 0 {
		want := int(min(int64(n-len(all)), length))
		b, err := l.Pread(ctx, fd, want, offset)
		if err != nil {
			return nil, err
		}
		if all = append(all, b...); len(b) < want {
			break
		}
		offset += skip
	}
	return all, nil
}

// Write writes.
func (l *Local) Write(_ context.Context, fd int, b []byte) (n int, err error) {
	err = l.with("write", fd, func(f *os.File) (err error) {
		n, err = f.Write(b)
		return err
	})
	return n, err
}

// Pwrite writes at an offset.
func (l *Local) Pwrite(_ context.Context, fd int, b []byte, offset int64) (n int, err error) {
	err = l.with("pwrite", fd, func(f *os.File) (err error) {
		n, err = f.WriteAt(b, offset)
		return err
	})
	return n, err
}

// Swrite writes length bytes at offset, and so on every skip bytes.
func (l *Local) Swrite(ctx context.Context, fd int, b []byte, offset, length, skip int64) (int, error) {
	done := 0
	for done < len(b) && length > 0 {
		n, err := l.Pwrite(ctx, fd, b[done:min(int64(len(b)), int64(done)+length)], offset)
		done += n
		if err != nil {
			return done, err
		}
		offset += skip
	}
	return done, nil
}

// Seek moves the place where a file is read and written.
func (l *Local) Seek(_ context.Context, fd int, offset int64, whence int) (at int64, err error) {
	err = l.with("lseek", fd, func(f *os.File) (err error) {
		at, err = f.Seek(offset, whence)
		return err
	})
	return at, err
}

// Fchmod changes the permissions of an open file.
func (l *Local) Fchmod(_ context.Context, fd, mode int) error {
	return l.with("fchmod", fd, func(f *os.File) error { return f.Chmod(fs.FileMode(mode) & fs.ModePerm) })
}

// Fchown changes the owner of an open file.
func (l *Local) Fchown(_ context.Context, fd, uid, gid int) error {
	return l.with("fchown", fd, func(f *os.File) error { return f.Chown(uid, gid) })
}

// Ftruncate cuts an open file or makes it longer.
func (l *Local) Ftruncate(_ context.Context, fd int, size int64) error {
	return l.with("ftruncate", fd, func(f *os.File) error { return f.Truncate(size) })
}

// Fstat tells of an open file.
func (l *Local) Fstat(_ context.Context, fd int) (s shadow.Stat, err error) {
	err = l.with("fstat", fd, func(f *os.File) error {
		info, err := f.Stat()
		s = l.statOf(info)
		return err
	})
	return s, err
}

// Fstatfs tells of the file system that an open file is in.
func (l *Local) Fstatfs(_ context.Context, fd int) (s shadow.Statfs, err error) {
	err = l.with("fstatfs", fd, func(f *os.File) (err error) {
		s, err = l.statfsOf(f)
		return err
	})
	return s, err
}

func (l *Local) statfsOf(f *os.File) (shadow.Statfs, error) {
	if l.System.Statfs == nil {
		return shadow.Statfs{}, failed("statfs", cedar.ENOSYS)
	}
	return l.System.Statfs(f)
}

// statOf makes what the wire tells of a file; without the system that is its
// type, permissions, size and time.
func (l *Local) statOf(info fs.FileInfo) shadow.Stat {
	switch {
	case info == nil:
		return shadow.Stat{}
	case l.System.Stat != nil:
		return l.System.Stat(info)
	}
	mode := int64(info.Mode().Perm())
	switch {
	case info.IsDir():
		mode |= 0o040000
	case info.Mode()&fs.ModeSymlink != 0:
		mode |= 0o120000
	case info.Mode().IsRegular():
		mode |= 0o100000
	}
	at := info.ModTime().Unix()
	return shadow.Stat{
		Mode: mode, Nlink: 1, Size: info.Size(), BlockSize: 4096, Blocks: (info.Size() + 511) / 512, Atime: at, Mtime: at, Ctime: at,
	}
}

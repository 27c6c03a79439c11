// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Local is a submit side on this machine: a directory and the ad of the job,
// for jobs without a shadow. Nothing outside the directory is reached, whatever
// a path or a symbolic link says. Files are opened with the rights of this
// process. Its methods may be called from any goroutine.
type Local struct {
	// Root is the submit directory. Absolute paths are taken as below Dir,
	// which is its path.
	Root *os.Root
	Dir  string
	// Changed is told of each attribute that the job sets, and Event of each
	// line for its log; nil drops them.
	Changed func(name string, e *classad.Expr)
	Event   func(event *classad.Ad)

	mu    sync.Mutex
	job   *classad.Ad
	files map[int]*os.File
}

var _ Remote = (*Local)(nil)

// mostFiles bounds the files that a job has open at the submit side.
const mostFiles = 1000

// NewLocal returns a submit side with a copy of the job's ad.
func NewLocal(root *os.Root, dir string, job *classad.Ad) *Local {
	l := &Local{Root: root, Dir: dir, job: classad.NewAd(), files: map[int]*os.File{}}
	if job != nil {
		l.job.Update(job)
	}
	return l
}

// Shut closes the files that the job left open.
func (l *Local) Shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for fd, f := range l.files {
		_ = f.Close()
		delete(l.files, fd)
	}
}

// refused makes the error of a call, nil for none.
func refused(call string, err error) error {
	if err == nil {
		return nil
	}
	n := cedar.ErrnoOf(err)
	text := err.Error()
	for _, e := range [...]struct {
		end string
		n   cedar.Errno
	}{
		{"not a directory", cedar.ENOTDIR}, {"is a directory", cedar.EISDIR}, {"directory not empty", cedar.ENOTEMPTY},
		{"no space left on device", cedar.ENOSPC}, {"file too large", cedar.EFBIG}, {"path escapes from parent", cedar.EACCES},
	} {
		if strings.HasSuffix(text, e.end) {
			n = e.n
		}
	}
	if errors.Is(err, os.ErrClosed) {
		n = ebadf
	}
	return &shadow.CallError{Call: call, Errno: n}
}

// name returns a path as one below Root.
func (l *Local) name(path string) string {
	if filepath.IsAbs(path) {
		if rel, err := filepath.Rel(l.Dir, path); err == nil {
			return rel
		}
	}
	return filepath.Clean(path)
}

func (l *Local) file(call string, fd int) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, ok := l.files[fd]; ok {
		return f, nil
	}
	return nil, &shadow.CallError{Call: call, Errno: ebadf}
}

// FileInfo returns the path as it is.
func (l *Local) FileInfo(_ context.Context, logical string) (string, error) {
	return "remote:" + logical, nil
}

// Open opens a regular file or a directory.
func (l *Local) Open(_ context.Context, path string, flags, mode int) (int, error) {
	name := l.name(path)
	if info, err := l.Root.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return -1, &shadow.CallError{Call: "open", Errno: cedar.EACCES} // a pipe would wait
	}
	// Writing at a place is not possible with a file that is appended to, so
	// that is done by hand: the last byte there is now is where it begins.
	f, err := l.Root.OpenFile(name, flags&^os.O_APPEND, fs.FileMode(mode)&fs.ModePerm)
	if err == nil && flags&os.O_APPEND != 0 {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return -1, refused("open", err)
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
	return -1, &shadow.CallError{Call: "open", Errno: cedar.EMFILE}
}

// Close closes a file.
func (l *Local) Close(_ context.Context, fd int) error {
	f, err := l.file("close", fd)
	if err != nil {
		return err
	}
	l.mu.Lock()
	delete(l.files, fd)
	l.mu.Unlock()
	return refused("close", f.Close())
}

// Fsync has a file written to its disk.
func (l *Local) Fsync(_ context.Context, fd int) error {
	f, err := l.file("fsync", fd)
	if err != nil {
		return err
	}
	return refused("fsync", f.Sync())
}

// filled is what a read returned, whose end is no error.
func filled(call string, b []byte, n int, err error) ([]byte, error) {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, refused(call, err)
	}
	return b[:n], nil
}

// Read reads at most n bytes.
func (l *Local) Read(_ context.Context, fd, n int) ([]byte, error) {
	f, err := l.file("read", fd)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	n, err = io.ReadFull(f, b)
	return filled("read", b, n, err)
}

// Pread reads at most n bytes at an offset.
func (l *Local) Pread(_ context.Context, fd, n int, offset int64) ([]byte, error) {
	f, err := l.file("pread", fd)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	n, err = f.ReadAt(b, offset)
	return filled("pread", b, n, err)
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
func (l *Local) Write(_ context.Context, fd int, b []byte) (int, error) {
	f, err := l.file("write", fd)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, refused("write", err)
}

// Pwrite writes at an offset.
func (l *Local) Pwrite(_ context.Context, fd int, b []byte, offset int64) (int, error) {
	f, err := l.file("pwrite", fd)
	if err != nil {
		return 0, err
	}
	n, err := f.WriteAt(b, offset)
	return n, refused("pwrite", err)
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
func (l *Local) Seek(_ context.Context, fd int, offset int64, whence int) (int64, error) {
	f, err := l.file("lseek", fd)
	if err != nil {
		return -1, err
	}
	at, err := f.Seek(offset, whence)
	return at, refused("lseek", err)
}

// Fchmod changes the permissions of an open file.
func (l *Local) Fchmod(_ context.Context, fd, mode int) error {
	f, err := l.file("fchmod", fd)
	if err != nil {
		return err
	}
	return refused("fchmod", f.Chmod(fs.FileMode(mode)&fs.ModePerm))
}

// Fchown changes the owner of an open file.
func (l *Local) Fchown(_ context.Context, fd, uid, gid int) error {
	f, err := l.file("fchown", fd)
	if err != nil {
		return err
	}
	return refused("fchown", f.Chown(uid, gid))
}

// Ftruncate cuts an open file or makes it longer.
func (l *Local) Ftruncate(_ context.Context, fd int, size int64) error {
	f, err := l.file("ftruncate", fd)
	if err != nil {
		return err
	}
	return refused("ftruncate", f.Truncate(size))
}

// Fstat tells of an open file.
func (l *Local) Fstat(_ context.Context, fd int) (shadow.Stat, error) {
	f, err := l.file("fstat", fd)
	if err != nil {
		return shadow.Stat{}, err
	}
	return statOf("fstat")(f.Stat())
}

// Fstatfs is not known.
func (l *Local) Fstatfs(context.Context, int) (shadow.Statfs, error) {
	return shadow.Statfs{}, &shadow.CallError{Call: "fstatfs", Errno: cedar.ENOSYS}
}

// statOf makes what the wire tells of a file: its type, permissions, size and
// time.
func statOf(call string) func(fs.FileInfo, error) (shadow.Stat, error) {
	return func(info fs.FileInfo, err error) (shadow.Stat, error) {
		if err != nil {
			return shadow.Stat{}, refused(call, err)
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
		}, nil
	}
}

// Unlink removes a file.
func (l *Local) Unlink(_ context.Context, path string) error {
	name := l.name(path)
	if info, err := l.Root.Lstat(name); err == nil && info.IsDir() {
		return &shadow.CallError{Call: "unlink", Errno: cedar.EISDIR}
	}
	return refused("unlink", l.Root.Remove(name))
}

// Rename gives a file another name.
func (l *Local) Rename(_ context.Context, from, to string) error {
	return refused("rename", l.Root.Rename(l.name(from), l.name(to)))
}

// Mkdir makes a directory.
func (l *Local) Mkdir(_ context.Context, path string, mode int) error {
	return refused("mkdir", l.Root.Mkdir(l.name(path), fs.FileMode(mode)&fs.ModePerm))
}

// Rmdir removes an empty directory.
func (l *Local) Rmdir(_ context.Context, path string) error {
	name := l.name(path)
	if info, err := l.Root.Lstat(name); err == nil && !info.IsDir() {
		return &shadow.CallError{Call: "rmdir", Errno: cedar.ENOTDIR}
	}
	return refused("rmdir", l.Root.Remove(name))
}

// RmAll removes a file or a directory with what is in it.
func (l *Local) RmAll(_ context.Context, path string) error {
	name := l.name(path)
	if name == "." {
		return &shadow.CallError{Call: "rmall", Errno: cedar.EINVAL}
	}
	if _, err := l.Root.Lstat(name); err != nil {
		return refused("rmall", err)
	}
	return refused("rmall", l.Root.RemoveAll(name))
}

// Link makes another name for a file.
func (l *Local) Link(_ context.Context, old, name string) error {
	return refused("link", l.Root.Link(l.name(old), l.name(name)))
}

// Symlink makes a symbolic link.
func (l *Local) Symlink(_ context.Context, old, name string) error {
	return refused("symlink", l.Root.Symlink(old, l.name(name)))
}

// Readlink returns at most n bytes of where a symbolic link leads.
func (l *Local) Readlink(_ context.Context, path string, n int) (string, error) {
	to, err := l.Root.Readlink(l.name(path))
	return to[:min(len(to), max(n, 0))], refused("readlink", err)
}

// Access asks whether a file is there and its owner may use it.
func (l *Local) Access(_ context.Context, path string, mode int) error {
	info, err := l.Root.Stat(l.name(path))
	if err == nil && int(info.Mode().Perm()>>6)&mode&7 != mode&7 {
		err = fs.ErrPermission
	}
	return refused("access", err)
}

// Chmod changes permissions.
func (l *Local) Chmod(_ context.Context, path string, mode int) error {
	return refused("chmod", l.Root.Chmod(l.name(path), fs.FileMode(mode)&fs.ModePerm))
}

// Chown changes the owner.
func (l *Local) Chown(_ context.Context, path string, uid, gid int) error {
	return refused("chown", l.Root.Chown(l.name(path), uid, gid))
}

// Lchown changes the owner of a symbolic link itself.
func (l *Local) Lchown(_ context.Context, path string, uid, gid int) error {
	return refused("lchown", l.Root.Lchown(l.name(path), uid, gid))
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
	return refused("utime", l.Root.Chtimes(l.name(path), time.Unix(read, 0), time.Unix(changed, 0)))
}

// Stat tells of a file.
func (l *Local) Stat(_ context.Context, path string) (shadow.Stat, error) {
	return statOf("stat")(l.Root.Stat(l.name(path)))
}

// Lstat tells of a file or of the symbolic link itself.
func (l *Local) Lstat(_ context.Context, path string) (shadow.Stat, error) {
	return statOf("lstat")(l.Root.Lstat(l.name(path)))
}

// Statfs is not known.
func (l *Local) Statfs(context.Context, string) (shadow.Statfs, error) {
	return shadow.Statfs{}, &shadow.CallError{Call: "statfs", Errno: cedar.ENOSYS}
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
func (l *Local) GetLongDir(_ context.Context, path string) ([]shadow.Entry, error) {
	list, err := fs.ReadDir(l.Root.FS(), filepath.ToSlash(l.name(path)))
	if err != nil {
		return nil, refused("getlongdir", err)
	}
	var all []shadow.Entry
	for _, e := range list {
		info, err := e.Info()
		if err != nil || strings.Contains(e.Name(), "\n") {
			continue
		}
		s, err := statOf("getlongdir")(info, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, shadow.Entry{Name: e.Name(), Stat: s})
	}
	return all, nil
}

// Whoami returns what the submit side calls itself.
func (l *Local) Whoami(_ context.Context, n int) (string, error) {
	const self = "CONDOR"
	return self[:min(len(self), max(n, 0))], nil
}

// WhoAreYou returns what the submit side calls a host.
func (l *Local) WhoAreYou(ctx context.Context, _ string, n int) (string, error) {
	return l.Whoami(ctx, n)
}

// JobAttr returns an attribute of the job.
func (l *Local) JobAttr(_ context.Context, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.job.Lookup(name); ok && !classad.IsPrivate(name) {
		return e.Text(classad.Old), nil
	}
	return "UNDEFINED", nil
}

// SetJobAttr sets an attribute of the job.
func (l *Local) SetJobAttr(_ context.Context, name, expr string) error {
	e, err := classad.ParseExpr(expr, classad.Old)
	if err != nil || !attributeName(name) {
		return &shadow.CallError{Call: "set_job_attr", Errno: cedar.EINVAL}
	}
	l.mu.Lock()
	l.job.Set(name, e)
	l.mu.Unlock()
	if l.Changed != nil {
		l.Changed(name, e)
	}
	return nil
}

// Constrain sets the job's requirements.
func (l *Local) Constrain(ctx context.Context, expr string) error {
	return l.SetJobAttr(ctx, "Requirements", expr)
}

// Log hands an event on.
func (l *Local) Log(_ context.Context, event *classad.Ad) error {
	if l.Event != nil {
		l.Event(event)
	}
	return nil
}

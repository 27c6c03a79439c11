// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/shadow"
)

// mostOpen is how many files a job may have open.
const mostOpen = 256

// files are the files of a job, below a root.
type files struct {
	root *os.Root
	open map[int64]*os.File
	next int64
}

var errNoFile = errors.New("bad file descriptor")

// errnoBadFile is EBADF.
const errnoBadFile cedar.Errno = 9

func failed(err error) shadow.Reply {
	if errors.Is(err, errNoFile) {
		return refuse(errnoBadFile)
	}
	return refuse(cedar.ErrnoOf(err))
}

func result(n int64, err error) shadow.Reply {
	if err != nil {
		return failed(err)
	}
	return shadow.Reply{Value: n}
}

func bytesOf(b []byte, err error) shadow.Reply {
	if err != nil {
		return failed(err)
	}
	return shadow.Reply{Value: int64(len(b)), Data: b}
}

// name turns a path of the job into one below the root; an absolute one must
// lead there.
func (f *files) name(path string) string {
	if f.root == nil || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(f.root.Name(), path); err == nil {
		return rel // one that leads out is refused by the root
	}
	return path
}

// answer acts on a call for files.
func (f *files) answer(r *shadow.Request) shadow.Reply {
	if f.root == nil {
		return refuse(cedar.EACCES)
	}
	if r.Data == nil {
		switch r.Call {
		case shadow.CallWrite, shadow.CallPwrite, shadow.CallSwrite:
			return refuse(cedar.EINVAL) // a length that cannot be
		case shadow.CallRead, shadow.CallPread, shadow.CallSread:
			if r.Ints[1] < 1 || r.Ints[1] > shadow.MaxData {
				return refuse(cedar.EINVAL)
			}
		}
	}
	switch r.Call {
	case shadow.CallOpen:
		return f.openFile(r)
	case shadow.CallPutfile:
		return f.create(r)
	case shadow.CallClose, shadow.CallFsync, shadow.CallRead, shadow.CallWrite, shadow.CallPread, shadow.CallPwrite, shadow.CallSread,
		shadow.CallSwrite, shadow.CallLseek, shadow.CallFstat, shadow.CallFstatfs, shadow.CallFchmod, shadow.CallFchown, shadow.CallFtruncate:
		file, ok := f.open[r.Ints[0]]
		if !ok {
			return failed(errNoFile)
		}
		return f.onFile(r, file)
	}
	return f.onName(r, f.name(r.Texts[0]))
}

func (f *files) openFile(r *shadow.Request) shadow.Reply {
	if len(f.open) >= mostOpen {
		return refuse(cedar.EMFILE)
	}
	mode := fs.FileMode(r.Ints[1]).Perm()
	file, err := f.root.OpenFile(f.name(r.Texts[0]), cedar.OpenFlagsFromWire(r.Ints[0]), mode)
	if err != nil {
		return failed(err)
	}
	f.next++
	f.open[f.next+2] = file
	return shadow.Reply{Value: f.next + 2}
}

func (f *files) onFile(r *shadow.Request, file *os.File) shadow.Reply {
	switch r.Call {
	case shadow.CallClose:
		delete(f.open, r.Ints[0])
		return result(0, file.Close())
	case shadow.CallFsync:
		return result(0, file.Sync())
	case shadow.CallRead:
		return bytesOf(io.ReadAll(io.LimitReader(file, r.Ints[1])))
	case shadow.CallPread:
		if r.Ints[2] < 0 {
			return refuse(cedar.EINVAL)
		}
		return bytesOf(io.ReadAll(io.NewSectionReader(file, r.Ints[2], r.Ints[1])))
	case shadow.CallWrite:
		n, err := file.Write(r.Data)
		return result(int64(n), err)
	case shadow.CallPwrite:
		n, err := file.WriteAt(r.Data, r.Ints[2])
		return result(int64(n), err)
	case shadow.CallSread, shadow.CallSwrite:
		return strides(r, file)
	case shadow.CallLseek:
		return result(file.Seek(r.Ints[1], int(r.Ints[2])))
	case shadow.CallFstat:
		info, err := file.Stat()
		return statOf(info, err)
	case shadow.CallFstatfs:
		return statfs()
	case shadow.CallFchmod:
		return result(0, file.Chmod(fs.FileMode(r.Ints[1]).Perm()))
	case shadow.CallFchown:
		return result(0, file.Chown(int(r.Ints[1]), int(r.Ints[2])))
	}
	return result(0, file.Truncate(r.Ints[1]))
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// strides reads or writes pieces of length bytes every skip bytes.
func strides(r *shadow.Request, file *os.File) shadow.Reply {
	size, offset, length, skip := r.Ints[1], r.Ints[2], r.Ints[3], r.Ints[4]
	if length < 1 || length > shadow.MaxData {
		return refuse(cedar.EINVAL)
	}
	b := r.Data
	if r.Call == shadow.CallSread {
		b = make([]byte, size)
	}
	var total int64
	for total < size {
		piece := b[total:min(total+length, size)]
		var n int
		var err error
		if r.Call == shadow.CallSread {
			n, err = file.ReadAt(piece, offset)
			err = notEOF(err)
		} else {
			n, err = file.WriteAt(piece, offset)
		}
		if err != nil {
			return failed(err)
		}
		total += int64(n)
		if n < len(piece) {
			break
		}
		offset += skip
	}
	if r.Call == shadow.CallSread {
		return bytesOf(b[:total], nil)
	}
	return result(total, nil)
}

func (f *files) onName(r *shadow.Request, name string) shadow.Reply {
	root := f.root
	switch r.Call {
	case shadow.CallUnlink, shadow.CallRmdir:
		info, err := root.Lstat(name)
		if err == nil && info.IsDir() != (r.Call == shadow.CallRmdir) {
			if info.IsDir() {
				return refuse(cedar.EISDIR)
			}
			return refuse(cedar.ENOTDIR)
		}
		return result(0, root.Remove(name))
	case shadow.CallRename:
		return result(0, root.Rename(name, f.name(r.Texts[1])))
	case shadow.CallMkdir:
		return result(0, root.Mkdir(name, fs.FileMode(r.Ints[0]).Perm()))
	case shadow.CallRmall:
		return result(0, root.RemoveAll(name))
	case shadow.CallLink:
		return result(0, root.Link(name, f.name(r.Texts[1])))
	case shadow.CallSymlink:
		return result(0, root.Symlink(r.Texts[0], f.name(r.Texts[1])))
	case shadow.CallReadlink:
		to, err := root.Readlink(name)
		if n := r.Ints[0]; n >= 0 && int64(len(to)) > n {
			to = to[:n]
		}
		return bytesOf([]byte(to), err)
	case shadow.CallGetfile:
		if info, err := root.Stat(name); err == nil && info.Size() > shadow.MaxData {
			return refuse(cedar.EFBIG)
		}
		return bytesOf(root.ReadFile(name))
	case shadow.CallGetdir, shadow.CallGetlongdir:
		return f.list(name, r.Call == shadow.CallGetlongdir)
	case shadow.CallWhoami:
		return bytesOf(cutTo("CONDOR", r.Ints[0]), nil)
	case shadow.CallWhoareyou:
		return bytesOf(cutTo("UNKNOWN", r.Ints[0]), nil)
	case shadow.CallStat:
		return statOf(root.Stat(name))
	case shadow.CallLstat:
		return statOf(root.Lstat(name))
	case shadow.CallStatfs:
		if _, err := root.Stat(name); err != nil {
			return failed(err)
		}
		return statfs()
	case shadow.CallAccess:
		_, err := root.Stat(name)
		return result(0, err)
	case shadow.CallChmod:
		return result(0, root.Chmod(name, fs.FileMode(r.Ints[0]).Perm()))
	case shadow.CallChown:
		return result(0, root.Chown(name, int(r.Ints[0]), int(r.Ints[1])))
	case shadow.CallLchown:
		return result(0, root.Lchown(name, int(r.Ints[0]), int(r.Ints[1])))
	case shadow.CallTruncate:
		file, err := root.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return failed(err)
		}
		return result(0, errors.Join(file.Truncate(r.Ints[0]), file.Close()))
	case shadow.CallUtime:
		return result(0, root.Chtimes(name, time.Unix(r.Ints[0], 0), time.Unix(r.Ints[1], 0)))
	}
	return refuse(cedar.ENOSYS)
}

func cutTo(text string, n int64) []byte { return []byte(text[:max(0, min(n, int64(len(text))))]) }

// list lists a directory in the order of names.
func (f *files) list(name string, long bool) shadow.Reply {
	dir, err := f.root.Open(name)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return failed(err)
	}
	var text strings.Builder
	for _, e := range entries {
		text.WriteString(e.Name() + "\n")
		if long {
			info, err := e.Info()
			if err != nil {
				return failed(err)
			}
			text.WriteString(stat(info).String() + "\n")
		}
	}
	text.WriteString("\n")
	return shadow.Reply{Value: int64(text.Len()), Text: text.String()}
}

// stat is what every system tells of a file.
func stat(info fs.FileInfo) shadow.Stat {
	mode := int64(info.Mode().Perm())
	switch {
	case info.Mode().IsRegular():
		mode |= 0o100000
	case info.IsDir():
		mode |= 0o040000
	case info.Mode()&fs.ModeSymlink != 0:
		mode |= 0o120000
	}
	at := info.ModTime().Unix()
	return shadow.Stat{Mode: mode, Nlink: 1, Size: info.Size(), BlockSize: 4096, Blocks: (info.Size() + 511) / 512, Atime: at, Mtime: at, Ctime: at}
}

func statOf(info fs.FileInfo, err error) shadow.Reply {
	if err != nil {
		return failed(err)
	}
	return shadow.Reply{Text: stat(info).String() + "\n"}
}

// statfs tells of a file system that is half full.
func statfs() shadow.Reply {
	s := shadow.Statfs{Type: 61267, BlockSize: 4096, Blocks: 1 << 20, Free: 1 << 19, Available: 1 << 19, Files: 1 << 16, FilesFree: 1 << 15}
	return shadow.Reply{Text: s.String() + "\n"}
}

// create makes the file of putfile.
func (f *files) create(r *shadow.Request) shadow.Reply {
	if r.Ints[1] > shadow.MaxData {
		return refuse(cedar.EFBIG)
	}
	return f.openFile(&shadow.Request{
		Ints: [5]int64{cedar.OpenFlagsToWire(os.O_CREATE | os.O_WRONLY | os.O_TRUNC), r.Ints[0]}, Texts: r.Texts,
	})
}

// putfile answers, takes the bytes of a file and answers again.
func (s *Shadow) putfile(conn *cedar.Conn, r *shadow.Request, first shadow.Reply) error {
	first.Put(conn, r.Call)
	if err := conn.EndMessage(); err != nil || first.Value < 0 {
		return err
	}
	s.mu.Lock()
	file, ok := s.files.open[first.Value]
	delete(s.files.open, first.Value)
	s.mu.Unlock()
	if !ok { // mischief
		return nil
	}
	defer func() { _ = file.Close() }()
	if r.Ints[1] <= 0 {
		return nil
	}
	b, err := conn.Bytes(int(r.Ints[1]))
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	n, err := file.Write(b)
	second := result(int64(n), err)
	second.Put(conn, shadow.CallWrite)
	return conn.EndMessage()
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Modes of files on the wire that are no permissions.
const (
	ModeDefault = 0       // leave the permissions as they are
	ModeMissing = 1 << 24 // the file was missing at its source
)

// PutFileMode puts the permissions of a file. A file without any is sent as
// one without permissions to set, for that is what 0 means.
func (c *Conn) PutFileMode(m fs.FileMode) { c.PutInt(int64(m.Perm())) }

// FileMode reads the permissions of a file. Only one of the results tells
// something: whether the file was missing, or which permissions it has, 0 for
// those that a new file gets.
func (c *Conn) FileMode() (m fs.FileMode, missing bool, err error) {
	i, err := c.Int()
	if err != nil || i == ModeMissing {
		return 0, err == nil, err
	}
	if i < 0 || i > ModeMissing {
		return 0, false, c.malformed("FileMode", "no mode of a file")
	}
	return fs.FileMode(i).Perm(), false, nil
}

// The flags of opening a file as they stand on the wire. There is one more,
// 0x800, for terminals.
const (
	wireWriteOnly = 0x1
	wireReadWrite = 0x2
	wireCreate    = 0x100
	wireTruncate  = 0x200
	wireExclusive = 0x400
	wireAppend    = 0x1000
)

var openFlags = [...]struct{ local, wire int }{
	{os.O_WRONLY, wireWriteOnly},
	{os.O_RDWR, wireReadWrite},
	{os.O_CREATE, wireCreate},
	{os.O_TRUNC, wireTruncate},
	{os.O_EXCL, wireExclusive},
	{os.O_APPEND, wireAppend},
}

// OpenFlagsToWire turns flags of os.OpenFile into those of the wire.
func OpenFlagsToWire(flags int) int64 {
	wire := 0
	for _, f := range openFlags {
		if flags&f.local != 0 {
			wire |= f.wire
		}
	}
	return int64(wire)
}

// OpenFlagsFromWire turns flags of the wire into those of os.OpenFile. Those
// that have no meaning here are dropped.
func OpenFlagsFromWire(wire int64) int {
	flags := os.O_RDONLY
	for _, f := range openFlags {
		if wire&int64(f.wire) != 0 {
			flags |= f.local
		}
	}
	return flags
}

// Errno is the number of an error on the wire: that of Linux up to 34, and a
// few of HTCondor's own.
type Errno int64

// The numbers. Others are errors without a particular meaning.
const (
	EPERM        Errno = 1
	ENOENT       Errno = 2
	EINTR        Errno = 4
	EIO          Errno = 5
	EAGAIN       Errno = 11
	ENOMEM       Errno = 12
	EACCES       Errno = 13
	EEXIST       Errno = 17
	ENOTDIR      Errno = 20
	EISDIR       Errno = 21
	EINVAL       Errno = 22
	EMFILE       Errno = 24
	EFBIG        Errno = 27
	ENOSPC       Errno = 28
	EROFS        Errno = 30
	EPIPE        Errno = 32
	EDEADLK      Errno = 36
	ENAMETOOLONG Errno = 38
	ENOLCK       Errno = 39
	ENOSYS       Errno = 40
	ENOTEMPTY    Errno = 41
	EILSEQ       Errno = 42
	ETXTBSY      Errno = 43
)

// linuxErrno are the numbers that are others on Linux than on the wire.
var linuxErrno = [...]struct {
	linux int
	wire  Errno
}{
	{35, EDEADLK}, {36, ENAMETOOLONG}, {37, ENOLCK}, {38, ENOSYS}, {39, ENOTEMPTY}, {84, EILSEQ}, {26, ETXTBSY},
}

// ErrnoFromLinux turns a number of Linux into that of the wire. A number
// without one goes out as it is.
func ErrnoFromLinux(n int) Errno {
	for _, e := range linuxErrno {
		if e.linux == n {
			return e.wire
		}
	}
	return Errno(n)
}

// Linux returns the number that Linux has for e.
func (e Errno) Linux() int {
	for _, l := range linuxErrno {
		if l.wire == e {
			return l.linux
		}
	}
	return int(e)
}

// ErrnoOf returns the number for an error of Go's library, EIO for one that
// has no better.
func ErrnoOf(err error) Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return ENOENT
	case errors.Is(err, fs.ErrExist):
		return EEXIST
	case errors.Is(err, fs.ErrPermission):
		return EACCES
	case errors.Is(err, fs.ErrInvalid):
		return EINVAL
	case errors.Is(err, io.ErrClosedPipe):
		return EPIPE
	}
	return EIO
}

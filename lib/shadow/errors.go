// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// ErrLost is in the error of a call that found no conversation, or broke it.
var ErrLost = errors.New("no conversation with the shadow")

// errClosed is the cause when the starter itself ended the conversation.
var errClosed = errors.New("it was ended here")

// errGivenUp is the cause when bytes that were announced do not come.
var errGivenUp = errors.New("a file that was begun was given up")

// CallError is a call that the shadow refused. It is fs.ErrNotExist and its
// kin where the number says so.
type CallError struct {
	Call  string // as "open"
	Errno cedar.Errno
}

// Error says what was refused and why.
func (e *CallError) Error() string {
	return fmt.Sprintf("the shadow refused %s: %s", e.Call, errnoText(e.Errno))
}

// Is makes errors.Is work with the errors of package fs.
func (e *CallError) Is(target error) bool {
	switch e.Errno {
	case cedar.ENOENT:
		return target == fs.ErrNotExist
	case cedar.EEXIST, cedar.ENOTEMPTY:
		return target == fs.ErrExist
	case cedar.EPERM, cedar.EACCES:
		return target == fs.ErrPermission
	case cedar.EINVAL:
		return target == fs.ErrInvalid
	}
	return false
}

// kind says what can be done about it.
func (e *CallError) kind() errs.Kind {
	switch e.Errno {
	case cedar.ENOENT:
		return errs.NotFound
	case cedar.EPERM, cedar.EACCES, cedar.EROFS:
		return errs.Denied
	case cedar.EEXIST, cedar.ENOTEMPTY, cedar.EISDIR, cedar.ENOTDIR, cedar.ETXTBSY:
		return errs.Conflict
	case cedar.EINVAL, cedar.ENAMETOOLONG, cedar.EILSEQ:
		return errs.Invalid
	case cedar.EMFILE, cedar.ENOMEM, cedar.ENOSPC, cedar.EFBIG, cedar.ENOLCK:
		return errs.Exhausted
	case cedar.EAGAIN, cedar.EINTR:
		return errs.Transient
	case cedar.ENOSYS:
		return errs.Unsupported
	}
	return errs.Broken
}

// errnoText names an error number as strerror does, where it has a name.
func errnoText(n cedar.Errno) string {
	for _, e := range [...]struct {
		n    cedar.Errno
		text string
	}{
		{cedar.EPERM, "operation not permitted"},
		{cedar.ENOENT, "no such file or directory"},
		{cedar.EINTR, "interrupted system call"},
		{cedar.EIO, "input/output error"},
		{9, "bad file descriptor"},
		{cedar.EAGAIN, "resource temporarily unavailable"},
		{cedar.ENOMEM, "cannot allocate memory"},
		{cedar.EACCES, "permission denied"},
		{cedar.EEXIST, "file exists"},
		{18, "invalid cross-device link"},
		{cedar.ENOTDIR, "not a directory"},
		{cedar.EISDIR, "is a directory"},
		{cedar.EINVAL, "invalid argument"},
		{cedar.EMFILE, "too many open files"},
		{cedar.EFBIG, "file too large"},
		{cedar.ENOSPC, "no space left on device"},
		{29, "illegal seek"},
		{cedar.EROFS, "read-only file system"},
		{cedar.EPIPE, "broken pipe"},
		{cedar.ENAMETOOLONG, "file name too long"},
		{cedar.ENOSYS, "function not implemented"},
		{cedar.ENOTEMPTY, "directory not empty"},
		{cedar.ETXTBSY, "text file busy"},
	} {
		if e.n == n {
			return e.text
		}
	}
	return fmt.Sprintf("error %d", int64(n))
}

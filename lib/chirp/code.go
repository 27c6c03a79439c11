// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Code is the negative number that answers a request that failed.
type Code int

// The codes of the protocol.
const (
	NotAuthenticated Code = -1
	NotAuthorized    Code = -2
	DoesNotExist     Code = -3
	AlreadyExists    Code = -4
	TooBig           Code = -5
	NoSpace          Code = -6
	NoMemory         Code = -7
	InvalidRequest   Code = -8
	TooManyOpen      Code = -9
	Busy             Code = -10
	TryAgain         Code = -11
	BadFD            Code = -12
	IsDir            Code = -13
	NotDir           Code = -14
	NotEmpty         Code = -15
	CrossDevice      Code = -16
	Offline          Code = -17
	Unknown          Code = -127
)

// Error prints the number.
func (c Code) Error() string { return fmt.Sprintf("chirp error %d", int(c)) }

// Numbers of errors that package cedar has no name for; they are the same on
// the wire as on Linux.
const (
	e2big    cedar.Errno = 7
	ebadf    cedar.Errno = 9
	ebusy    cedar.Errno = 16
	exdev    cedar.Errno = 18
	enfile   cedar.Errno = 23
	etimeout cedar.Errno = 110
)

// codeOf returns the code of a call that failed.
func codeOf(err error) Code {
	var code Code
	var refused *shadow.CallError
	switch {
	case errors.As(err, &code):
		return code
	case errors.As(err, &refused):
		return codeOfErrno(refused.Errno)
	case errors.Is(err, shadow.ErrLost), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Offline
	}
	return codeOfErrno(cedar.ErrnoOf(err))
}

func codeOfErrno(n cedar.Errno) Code {
	switch n {
	case cedar.EPERM, cedar.EACCES:
		return NotAuthorized
	case cedar.ENOENT:
		return DoesNotExist
	case cedar.EEXIST:
		return AlreadyExists
	case cedar.EFBIG:
		return TooBig
	case cedar.ENOSPC:
		return NoSpace
	case cedar.ENOMEM:
		return NoMemory
	case ebadf:
		return BadFD
	case e2big, cedar.EINVAL:
		return InvalidRequest
	case enfile, cedar.EMFILE:
		return TooManyOpen
	case ebusy, cedar.ETXTBSY:
		return Busy
	case cedar.EAGAIN, cedar.EINTR:
		return TryAgain
	case cedar.EISDIR:
		return IsDir
	case cedar.ENOTDIR:
		return NotDir
	case cedar.ENOTEMPTY:
		return NotEmpty
	case exdev:
		return CrossDevice
	case etimeout:
		return Offline
	}
	return Unknown
}

func appendNumber(b []byte, n int64) []byte {
	return append(strconv.AppendInt(b, n, 10), '\n')
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Errno finds the errno in err. Go's texts are the C library's but for the
// capital letter.
func Errno(err error) (number int, text string, ok bool) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return 0, "", false
	}
	text = errno.Error()
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return int(errno), text, true
}

// Home finds the home directory of uid in the text of /etc/passwd, "" if it is
// not there.
func Home(passwd []byte, uid int) string {
	want := strconv.Itoa(uid)
	for line := range bytes.Lines(passwd) {
		fields := strings.Split(strings.TrimSpace(string(line)), ":")
		if len(fields) >= 7 && fields[2] == want {
			return fields[5]
		}
	}
	return ""
}

// SignalNumber is a host.SignalNumber: the number of "SIGTERM" and its likes.
func SignalNumber(name string) (int, bool) {
	n := unix.SignalNum(strings.ToUpper(name))
	return int(n), n != 0
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/shadow"
)

// version is the one of the protocol that HTCondor speaks.
const version = 2

// serve carries out a request. An error ends the connection.
func (c *client) serve(r request) error {
	ctx, remote, w, n := c.p.ctx, c.p.cfg.Remote, r.words, r.ints
	fd := int(n[0])
	switch r.verb.name {
	case "open":
		return c.open(w[0], w[1], int(n[0]))
	case "close":
		return c.done(remote.Close(ctx, fd))
	case "fsync":
		return c.done(remote.Fsync(ctx, fd))
	case "lseek":
		if n[2] < 0 || n[2] > 2 {
			return c.fail(InvalidRequest)
		}
		at, err := remote.Seek(ctx, fd, n[1], int(n[2]))
		if err != nil {
			return c.fail(codeOf(err))
		}
		return c.number(at)
	case "read", "pread", "sread":
		return c.read(r)
	case "write", "pwrite", "swrite":
		return c.write(r)
	case "getfile":
		return c.getFile(w[0])
	case "putfile":
		return c.putFile(w[0], int(n[0]), n[1])
	case "unlink":
		return c.done(remote.Unlink(ctx, w[0]))
	case "rename":
		return c.done(remote.Rename(ctx, w[0], w[1]))
	case "mkdir":
		return c.done(remote.Mkdir(ctx, w[0], int(n[0])))
	case "rmdir":
		return c.done(remote.Rmdir(ctx, w[0]))
	case "rmall":
		return c.done(remote.RmAll(ctx, w[0]))
	case "link":
		return c.done(remote.Link(ctx, w[0], w[1]))
	case "symlink":
		return c.done(remote.Symlink(ctx, w[0], w[1]))
	case "access":
		return c.done(remote.Access(ctx, w[0], int(n[0])))
	case "chmod":
		return c.done(remote.Chmod(ctx, w[0], int(n[0])))
	case "fchmod":
		return c.done(remote.Fchmod(ctx, fd, int(n[1])))
	case "chown":
		return c.done(remote.Chown(ctx, w[0], int(n[0]), int(n[1])))
	case "lchown":
		return c.done(remote.Lchown(ctx, w[0], int(n[0]), int(n[1])))
	case "fchown":
		return c.done(remote.Fchown(ctx, fd, int(n[1]), int(n[2])))
	case "truncate":
		return c.done(remote.Truncate(ctx, w[0], n[0]))
	case "ftruncate":
		return c.done(remote.Ftruncate(ctx, fd, n[1]))
	case "utime":
		return c.done(remote.Utime(ctx, w[0], n[0], n[1]))
	}
	return c.tell(r)
}

// tell carries out the requests that are answered with a text.
func (c *client) tell(r request) error {
	ctx, remote, w, n := c.p.ctx, c.p.cfg.Remote, r.words, r.ints
	switch r.verb.name {
	case "stat":
		s, err := remote.Stat(ctx, w[0])
		return c.stat(s.String(), err)
	case "lstat":
		s, err := remote.Lstat(ctx, w[0])
		return c.stat(s.String(), err)
	case "fstat":
		s, err := remote.Fstat(ctx, int(n[0]))
		return c.stat(s.String(), err)
	case "statfs":
		s, err := remote.Statfs(ctx, w[0])
		return c.stat(s.String(), err)
	case "fstatfs":
		s, err := remote.Fstatfs(ctx, int(n[0]))
		return c.stat(s.String(), err)
	case "readlink":
		if n[0] < 1 || n[0] > mostText {
			return c.fail(InvalidRequest)
		}
		s, err := remote.Readlink(ctx, w[0], int(n[0]))
		return c.told(s, err)
	case "whoami":
		if n[0] < 1 || n[0] > mostText {
			return c.fail(InvalidRequest)
		}
		s, err := remote.Whoami(ctx, int(n[0]))
		return c.told(s, err)
	case "whoareyou":
		if n[0] < 1 || n[0] > mostText {
			return c.fail(InvalidRequest)
		}
		s, err := remote.WhoAreYou(ctx, w[0], int(n[0]))
		return c.told(s, err)
	case "getdir":
		names, err := remote.GetDir(ctx, w[0])
		return c.told(dirText(names), err)
	case "getlongdir":
		entries, err := remote.GetLongDir(ctx, w[0])
		return c.told(longDirText(entries), err)
	case "lookup":
		url, err := remote.FileInfo(ctx, w[0])
		return c.told(url, err)
	case "get_job_attr":
		s, err := remote.JobAttr(ctx, w[0])
		return c.told(s, err)
	case "set_job_attr":
		return c.done(remote.SetJobAttr(ctx, w[0], w[1]))
	case "constrain":
		return c.done(remote.Constrain(ctx, w[0]))
	case "ulog":
		return c.done(remote.Log(ctx, event(w[0])))
	case "version":
		return c.number(version)
	case "set_job_attr_delayed":
		return c.setDelayed(w[0], w[1])
	case "get_job_attr_delayed":
		return c.getDelayed(w[0])
	}
	return c.fail(InvalidRequest)
}

// mostText bounds the answers whose length the job chooses.
const mostText = 64 << 10

func (c *client) told(s string, err error) error {
	if err != nil {
		return c.fail(codeOf(err))
	}
	return c.text(s)
}

// stat answers 0 and a line of numbers.
func (c *client) stat(line string, err error) error {
	if err != nil {
		return c.fail(codeOf(err))
	}
	c.out = append(append(appendNumber(c.out[:0], 0), line...), '\n')
	return c.send(c.out)
}

// dirText is a list of names as it is sent: a line each, then an empty one.
func dirText(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(n)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.String()
}

func longDirText(entries []shadow.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name)
		b.WriteByte('\n')
		b.WriteString(e.Stat.String())
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.String()
}

// openFlags reads the letters of an open request.
func openFlags(letters string) int {
	flags := os.O_RDONLY
	if strings.Contains(letters, "w") {
		if flags = os.O_WRONLY; strings.Contains(letters, "r") {
			flags = os.O_RDWR
		}
	}
	for _, f := range [...]struct {
		letter string
		flag   int
	}{{"c", os.O_CREATE}, {"t", os.O_TRUNC}, {"x", os.O_EXCL}, {"a", os.O_APPEND}} {
		if strings.Contains(letters, f.letter) {
			flags |= f.flag
		}
	}
	return flags
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/shadow"
)

// Data goes through in pieces, so that no request makes the proxy hold a file.
const (
	pieceSize = 1 << 20
	mostRead  = 4 << 20 // one answer to read: it must be whole before its length is sent
)

// open opens a file at the place that the shadow says it is at.
func (c *client) open(path, letters string, mode int) error {
	ctx, remote := c.p.ctx, c.p.cfg.Remote
	url, err := remote.FileInfo(ctx, path)
	if err != nil {
		return c.fail(codeOf(err))
	}
	url = strings.TrimPrefix(url, "buffer:")
	url = strings.TrimPrefix(url, "remote:")
	fd, err := remote.Open(ctx, url, openFlags(letters), mode)
	if err != nil {
		return c.fail(codeOf(err))
	}
	s, err := remote.Fstat(ctx, fd)
	if err != nil {
		s = shadow.Stat{} // the client waits for a line
	}
	c.out = append(append(appendNumber(c.out[:0], int64(fd)), s.String()...), '\n')
	return c.send(c.out)
}

// read answers read, pread and sread. Fewer bytes than asked for are the end
// of the file, or more than one answer carries.
func (c *client) read(r request) error {
	ctx, remote, n := c.p.ctx, c.p.cfg.Remote, r.ints
	fd, size := int(n[0]), n[1]
	if size < 1 {
		return c.fail(InvalidRequest)
	}
	if r.verb.name == "sread" {
		if n[3] < 1 || size > mostRead {
			return c.fail(InvalidRequest)
		}
		b, err := remote.Sread(ctx, fd, int(size), n[2], n[3], n[4])
		return c.told(string(b), err)
	}
	size = min(size, mostRead)
	var all []byte
	for int64(len(all)) < size {
		want := int(min(size-int64(len(all)), pieceSize))
		var b []byte
		var err error
		if r.verb.name == "read" {
			b, err = remote.Read(ctx, fd, want)
		} else {
			b, err = remote.Pread(ctx, fd, want, n[2]+int64(len(all)))
		}
		if err != nil && len(all) == 0 {
			return c.fail(codeOf(err))
		}
		all = append(all, b...)
		if err != nil || len(b) < want {
			break
		}
	}
	return c.told(string(all), nil)
}

// write answers write, pwrite and swrite: the bytes follow the request.
func (c *client) write(r request) error {
	ctx, remote, n := c.p.ctx, c.p.cfg.Remote, r.ints
	fd, size := int(n[0]), n[1]
	step := int64(pieceSize)
	if r.verb.name == "swrite" && n[3] > 0 {
		step = max(step/n[3], 1) * n[3] // whole strides
	}
	switch {
	case size < 1:
		return c.fail(InvalidRequest)
	case r.verb.name == "swrite" && (n[3] < 1 || n[3] > mostRead):
		if err := c.skip(size); err != nil {
			return err
		}
		return c.fail(InvalidRequest)
	}
	put := func(b []byte, done int64) (int, error) {
		switch r.verb.name {
		case "pwrite":
			return remote.Pwrite(ctx, fd, b, n[2]+done)
		case "swrite":
			return remote.Swrite(ctx, fd, b, n[2]+done/n[3]*n[4], n[3], n[4])
		}
		return remote.Write(ctx, fd, b)
	}
	done, err := c.pour(size, step, put)
	switch {
	case err != nil:
		return err
	case done < 0:
		return c.fail(Code(done))
	}
	return c.number(done)
}

// pour reads size bytes from the client and puts them piece by piece. It
// returns how many were written, or a code if none was; an error is one of the
// connection.
func (c *client) pour(size, step int64, put func(b []byte, done int64) (int, error)) (done int64, err error) {
	buf := make([]byte, min(size, step))
	for left := size; left > 0; {
		b := buf[:min(left, int64(len(buf)))]
		if err := c.piece(b); err != nil {
			return 0, err
		}
		left -= int64(len(b))
		n, err := put(b, done)
		done += int64(n)
		if err == nil && n == len(b) {
			continue
		}
		if err := c.skip(left); err != nil {
			return 0, err
		}
		if err != nil && done == 0 {
			return int64(codeOf(err)), nil
		}
		return done, nil
	}
	return done, nil
}

// getFile sends a whole file.
func (c *client) getFile(path string) error {
	ctx, remote := c.p.ctx, c.p.cfg.Remote
	fd, err := remote.Open(ctx, path, os.O_RDONLY, 0)
	if err != nil {
		return c.fail(codeOf(err))
	}
	defer func() { _ = remote.Close(ctx, fd) }()
	s, err := remote.Fstat(ctx, fd)
	if err != nil {
		return c.fail(codeOf(err))
	}
	const isDir, format = 0o040000, 0o170000
	if s.Mode&format == isDir {
		return c.fail(IsDir)
	}
	if err := c.number(s.Size); err != nil {
		return err
	}
	for sent := int64(0); sent < s.Size; {
		b, err := remote.Read(ctx, fd, int(min(s.Size-sent, pieceSize)))
		if err != nil {
			return err // what was announced cannot be kept
		}
		if len(b) == 0 {
			return errShrunk
		}
		if err := c.send(b); err != nil {
			return err
		}
		sent += int64(len(b))
	}
	return nil
}

// putFile makes a file of the bytes that the client sends after the first
// answer.
func (c *client) putFile(path string, mode int, size int64) error {
	ctx, remote := c.p.ctx, c.p.cfg.Remote
	if size < 0 {
		return c.fail(InvalidRequest)
	}
	fd, err := remote.Open(ctx, path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return c.fail(codeOf(err))
	}
	closed := false
	shut := func() error { closed = true; return remote.Close(ctx, fd) }
	defer func() {
		if !closed {
			_ = shut()
		}
	}()
	if err := c.number(int64(fd)); err != nil {
		return err
	}
	if size == 0 {
		return nil
	}
	done, err := c.pour(size, pieceSize, func(b []byte, _ int64) (int, error) { return remote.Write(ctx, fd, b) })
	if err != nil {
		return err
	}
	if err := shut(); err != nil && done >= 0 {
		done = int64(codeOf(err))
	}
	return c.number(done)
}

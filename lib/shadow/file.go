// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"

	"github.com/execpoint/execpoint/lib/cedar"
)

// The calls for files act at the submit machine, relative to the directory of
// the job, and only if the shadow lets the job do so. Flags, whence and modes
// are those of package os.

func (c *Caller) number(ctx context.Context, r *Request) (int64, error) {
	reply, err := c.ask(ctx, r)
	if err != nil {
		return -1, err
	}
	return reply.Value, nil
}

func (c *Caller) done(ctx context.Context, r *Request) error {
	_, err := c.ask(ctx, r)
	return err
}

func (c *Caller) data(ctx context.Context, r *Request) ([]byte, error) {
	reply, err := c.ask(ctx, r)
	return reply.Data, err
}

// Open opens a file and returns its descriptor there.
func (c *Caller) Open(ctx context.Context, path string, flags, mode int) (fd int, err error) {
	n, err := c.number(ctx, &Request{Call: CallOpen, Ints: [5]int64{cedar.OpenFlagsToWire(flags), int64(mode)}, Texts: [2]string{path}})
	return int(n), err
}

// Close closes a file there. End ends the conversation.
func (c *Caller) Close(ctx context.Context, fd int) error {
	return c.done(ctx, &Request{Call: CallClose, Ints: [5]int64{int64(fd)}})
}

// Fsync has a file written to its disk.
func (c *Caller) Fsync(ctx context.Context, fd int) error {
	return c.done(ctx, &Request{Call: CallFsync, Ints: [5]int64{int64(fd)}})
}

// Read reads at most n bytes; none is the end of the file.
func (c *Caller) Read(ctx context.Context, fd, n int) ([]byte, error) {
	return c.data(ctx, &Request{Call: CallRead, Ints: [5]int64{int64(fd), int64(n)}})
}

// Pread reads at most n bytes at an offset.
func (c *Caller) Pread(ctx context.Context, fd, n int, offset int64) ([]byte, error) {
	return c.data(ctx, &Request{Call: CallPread, Ints: [5]int64{int64(fd), int64(n), offset}})
}

// Sread reads n bytes in all: length of them at offset, and so on every skip
// bytes.
func (c *Caller) Sread(ctx context.Context, fd, n int, offset, length, skip int64) ([]byte, error) {
	return c.data(ctx, &Request{Call: CallSread, Ints: [5]int64{int64(fd), int64(n), offset, length, skip}})
}

// Write writes, and returns how many bytes were.
func (c *Caller) Write(ctx context.Context, fd int, b []byte) (int, error) {
	n, err := c.number(ctx, &Request{Call: CallWrite, Ints: [5]int64{int64(fd), int64(len(b))}, Data: b})
	return int(max(n, 0)), err
}

// Pwrite writes at an offset.
func (c *Caller) Pwrite(ctx context.Context, fd int, b []byte, offset int64) (int, error) {
	n, err := c.number(ctx, &Request{Call: CallPwrite, Ints: [5]int64{int64(fd), int64(len(b)), offset}, Data: b})
	return int(max(n, 0)), err
}

// Swrite writes length bytes at offset, and so on every skip bytes.
func (c *Caller) Swrite(ctx context.Context, fd int, b []byte, offset, length, skip int64) (int, error) {
	n, err := c.number(ctx, &Request{Call: CallSwrite, Ints: [5]int64{int64(fd), int64(len(b)), offset, length, skip}, Data: b})
	return int(max(n, 0)), err
}

// Seek moves the place where a file is read and written, and returns it.
func (c *Caller) Seek(ctx context.Context, fd int, offset int64, whence int) (int64, error) {
	return c.number(ctx, &Request{Call: CallLseek, Ints: [5]int64{int64(fd), offset, int64(whence)}})
}

// Unlink removes a file.
func (c *Caller) Unlink(ctx context.Context, path string) error {
	return c.done(ctx, &Request{Call: CallUnlink, Texts: [2]string{path}})
}

// Rename gives a file another name.
func (c *Caller) Rename(ctx context.Context, from, to string) error {
	return c.done(ctx, &Request{Call: CallRename, Texts: [2]string{from, to}})
}

// Mkdir makes a directory.
func (c *Caller) Mkdir(ctx context.Context, path string, mode int) error {
	return c.done(ctx, &Request{Call: CallMkdir, Texts: [2]string{path}, Ints: [5]int64{int64(mode)}})
}

// Rmdir removes an empty directory.
func (c *Caller) Rmdir(ctx context.Context, path string) error {
	return c.done(ctx, &Request{Call: CallRmdir, Texts: [2]string{path}})
}

// RmAll removes a directory with what is in it.
func (c *Caller) RmAll(ctx context.Context, path string) error {
	return c.done(ctx, &Request{Call: CallRmall, Texts: [2]string{path}})
}

// Link makes another name for a file.
func (c *Caller) Link(ctx context.Context, old, name string) error {
	return c.done(ctx, &Request{Call: CallLink, Texts: [2]string{old, name}})
}

// Symlink makes a symbolic link.
func (c *Caller) Symlink(ctx context.Context, old, name string) error {
	return c.done(ctx, &Request{Call: CallSymlink, Texts: [2]string{old, name}})
}

// Readlink returns at most n bytes of where a symbolic link leads.
func (c *Caller) Readlink(ctx context.Context, path string, n int) (string, error) {
	b, err := c.data(ctx, &Request{Call: CallReadlink, Texts: [2]string{path}, Ints: [5]int64{int64(n)}})
	return string(b), err
}

// GetFile returns a whole file of at most MaxData bytes.
func (c *Caller) GetFile(ctx context.Context, path string) ([]byte, error) {
	return c.data(ctx, &Request{Call: CallGetfile, Texts: [2]string{path}})
}

// PutFile makes a file, or empties it, and returns how many of the bytes were
// written to it. Once it has begun it takes no notice of ctx.
func (c *Caller) PutFile(ctx context.Context, path string, mode int, b []byte) (int, error) {
	w, err := c.BeginFile(ctx, path, mode, len(b))
	if err != nil {
		return 0, err
	}
	return w(b)
}

// BeginFile is the first half of PutFile. The other half must be called, with
// exactly size bytes, or none to give up; other calls wait until then. Giving
// up ends the conversation, since the shadow waits for the bytes.
func (c *Caller) BeginFile(ctx context.Context, path string, mode, size int) (put func([]byte) (int, error), err error) {
	r := &Request{Call: CallPutfile, Texts: [2]string{path}, Ints: [5]int64{int64(mode), int64(size)}}
	l := c.current()
	if err := r.check(); err != nil {
		return nil, c.invalid(CallPutfile, err)
	}
	if err := l.take(ctx); err != nil {
		return nil, c.failed(l, CallPutfile, err)
	}
	reply, err := c.step(l, r, r.Put, true)
	if err != nil {
		<-l.turn
		return nil, err
	}
	return func(b []byte) (int, error) {
		defer func() { <-l.turn }()
		if len(b) != size {
			l.fail(errGivenUp)
			return 0, c.failed(l, CallPutfile, ErrLost)
		}
		if size == 0 {
			return 0, nil
		}
		sent := &Request{Call: CallWrite, Data: b} // the answer is one to a write
		reply, err = c.step(l, sent, func(conn *cedar.Conn) { conn.PutBytes(b) }, true)
		return int(max(reply.Value, 0)), err
	}, nil
}

// step is one half of PutFile, under the turn.
func (c *Caller) step(l *line, r *Request, put func(*cedar.Conn), more bool) (Reply, error) {
	p := &pending{request: r, more: more, done: make(chan Reply, 1)}
	if err := l.send(p, put); err != nil {
		return Reply{}, c.failed(l, CallPutfile, err)
	}
	reply, err := l.answer(context.Background(), p)
	if err != nil {
		return Reply{}, c.failed(l, CallPutfile, err)
	}
	return reply, c.refused(l, CallPutfile, reply)
}

// Whoami returns what the shadow calls itself, at most n bytes.
func (c *Caller) Whoami(ctx context.Context, n int) (string, error) {
	b, err := c.data(ctx, &Request{Call: CallWhoami, Ints: [5]int64{int64(n)}})
	return string(b), err
}

// WhoAreYou returns what the shadow calls a host, at most n bytes.
func (c *Caller) WhoAreYou(ctx context.Context, host string, n int) (string, error) {
	b, err := c.data(ctx, &Request{Call: CallWhoareyou, Texts: [2]string{host}, Ints: [5]int64{int64(n)}})
	return string(b), err
}

// Access asks whether a file may be used: 4 read, 2 write, 1 run, 0 is there.
func (c *Caller) Access(ctx context.Context, path string, mode int) error {
	return c.done(ctx, &Request{Call: CallAccess, Texts: [2]string{path}, Ints: [5]int64{int64(mode)}})
}

// Chmod changes permissions.
func (c *Caller) Chmod(ctx context.Context, path string, mode int) error {
	return c.done(ctx, &Request{Call: CallChmod, Texts: [2]string{path}, Ints: [5]int64{int64(mode)}})
}

// Fchmod changes permissions of an open file.
func (c *Caller) Fchmod(ctx context.Context, fd, mode int) error {
	return c.done(ctx, &Request{Call: CallFchmod, Ints: [5]int64{int64(fd), int64(mode)}})
}

// Chown changes the owner.
func (c *Caller) Chown(ctx context.Context, path string, uid, gid int) error {
	return c.done(ctx, &Request{Call: CallChown, Texts: [2]string{path}, Ints: [5]int64{int64(uid), int64(gid)}})
}

// Lchown changes the owner of a symbolic link itself.
func (c *Caller) Lchown(ctx context.Context, path string, uid, gid int) error {
	return c.done(ctx, &Request{Call: CallLchown, Texts: [2]string{path}, Ints: [5]int64{int64(uid), int64(gid)}})
}

// Fchown changes the owner of an open file.
func (c *Caller) Fchown(ctx context.Context, fd, uid, gid int) error {
	return c.done(ctx, &Request{Call: CallFchown, Ints: [5]int64{int64(fd), int64(uid), int64(gid)}})
}

// Truncate cuts a file or makes it longer.
func (c *Caller) Truncate(ctx context.Context, path string, size int64) error {
	return c.done(ctx, &Request{Call: CallTruncate, Texts: [2]string{path}, Ints: [5]int64{size}})
}

// Ftruncate cuts an open file or makes it longer.
func (c *Caller) Ftruncate(ctx context.Context, fd int, size int64) error {
	return c.done(ctx, &Request{Call: CallFtruncate, Ints: [5]int64{int64(fd), size}})
}

// Utime sets when a file was read and changed, in Unix seconds.
func (c *Caller) Utime(ctx context.Context, path string, read, changed int64) error {
	return c.done(ctx, &Request{Call: CallUtime, Texts: [2]string{path}, Ints: [5]int64{read, changed}})
}

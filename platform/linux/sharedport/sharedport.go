// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package sharedport is the Linux side of a shared port: the named socket on
// which an endpoint waits, and the descriptors that come through it. It must
// never read what is said on a passed connection, or take one from a process
// that has no business with it.
//
//	l, err := sharedport.Listen(sharedport.Place{Cookie: cookie, Dir: dir, ID: "startd_1234_ab12"})
//	c, err := l.Accept()
//	// … the request was read …
//	nc, err := l.Receive(c)
package sharedport

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Place says where an endpoint listens.
type Place struct {
	Cookie string // of condor_master; "" for a file
	Dir    string // DAEMON_SOCKET_DIR; may be "" with a cookie
	ID     string
}

// name returns the address to bind; abstract ones begin with '@'.
func (p Place) name() (string, error) {
	name := filepath.Join(p.Dir, p.ID)
	if p.Cookie != "" {
		name = "@" + p.Cookie + "/" + p.ID
	} else if p.Dir == "" {
		return "", errs.E("sharedport.Listen", errs.Invalid, p.ID, errors.New("neither a cookie nor a directory for the socket"))
	}
	if len(name) > 107 {
		return "", errs.E("sharedport.Listen", errs.Invalid, p.ID, fmt.Errorf("the socket's name has %d bytes, 107 is the most; set DAEMON_SOCKET_DIR to something shorter", len(name)))
	}
	return name, nil
}

// Listener is the named socket of an endpoint. It is safe for concurrent use.
type Listener struct {
	l    *net.UnixListener
	file string // "" when abstract
}

// Listen binds the socket. A file of that name which nobody listens on any
// more is replaced, and the directory made if it is missing.
func Listen(p Place) (*Listener, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if p.Cookie != "" {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return nil, errs.E("sharedport.Listen", errs.Broken, p.ID, hideName(err))
		}
		return &Listener{l: l}, nil
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, errs.E("sharedport.Listen", errs.Broken, p.Dir, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if errors.Is(err, unix.EADDRINUSE) && !alive(name) {
		if err := os.Remove(name); err != nil {
			return nil, errs.E("sharedport.Listen", errs.Broken, name, err)
		}
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	}
	if err != nil {
		return nil, errs.E("sharedport.Listen", errs.Broken, name, err)
	}
	if err := yield(name); err != nil {
		_ = l.Close()
		return nil, errs.E("sharedport.Listen", errs.Broken, name, err)
	}
	return &Listener{l: l, file: name}, nil
}

// yield gives a socket that root has made to the owner of its directory: the
// shared port runs as that user and has to connect.
func yield(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var dir, st unix.Stat_t
	if err := unix.Stat(filepath.Dir(name), &dir); err != nil {
		return err
	}
	if dir.Uid == 0 {
		return nil
	}
	// The owner may put anything in its place; only a socket is given away.
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Nlink != 1 {
		return errors.New("it is no socket any more")
	}
	return unix.Fchownat(fd, "", int(dir.Uid), int(dir.Gid), unix.AT_EMPTY_PATH)
}

// Inherited makes a Listener of a socket that the parent made for us. name is
// where it listens, file says that this is a path.
func Inherited(descriptor int, name string) (*Listener, error) {
	f := os.NewFile(uintptr(descriptor), "shared port endpoint")
	if f == nil {
		return nil, errs.E("sharedport.Inherited", errs.Invalid, "", fmt.Errorf("%d is no descriptor", descriptor))
	}
	defer f.Close() // FileListener takes a copy
	any, err := net.FileListener(f)
	if err != nil {
		return nil, errs.E("sharedport.Inherited", errs.Broken, "", fmt.Errorf("descriptor %d: %w", descriptor, err))
	}
	l, ok := any.(*net.UnixListener)
	if !ok {
		_ = any.Close()
		return nil, errs.E("sharedport.Inherited", errs.Invalid, "", fmt.Errorf("descriptor %d is not a Unix socket that listens", descriptor))
	}
	l.SetUnlinkOnClose(false)
	inherited := &Listener{l: l}
	if st, err := os.Lstat(name); err == nil && st.Mode()&fs.ModeSocket != 0 {
		inherited.file = name
	}
	return inherited, nil
}

// alive reports whether somebody listens on a socket file.
func alive(name string) bool {
	c, err := net.DialTimeout("unix", name, time.Second)
	if err != nil {
		return !errors.Is(err, unix.ECONNREFUSED)
	}
	_ = c.Close()
	return true
}

// hideName drops the address from an error: it holds the cookie.
func hideName(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return errors.New("cannot listen")
}

// Accept waits for a shared port server. At a file, connections of users other
// than root, the owner of its directory and ourselves are closed and not
// returned; at an abstract socket whoever knows the cookie is trusted.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if l.file == "" || l.trusts(c) {
			return c, nil
		}
		_ = c.Close()
	}
}

// trusts reports whether c comes from root, from ourselves or from the owner of
// the directory.
func (l *Listener) trusts(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || cerr != nil {
		return false
	}
	if cred.Uid == 0 || int(cred.Uid) == os.Geteuid() {
		return true
	}
	var st unix.Stat_t
	return unix.Stat(filepath.Dir(l.file), &st) == nil && st.Uid == cred.Uid && st.Mode&0o022 == 0
}

// Close stops listening and removes the file.
func (l *Listener) Close() error {
	err := l.l.Close()
	if l.file != "" {
		if rerr := os.Remove(l.file); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = rerr
		}
	}
	return err
}

// Addr returns a name for logs, without the cookie.
func (l *Listener) Addr() net.Addr {
	if l.file != "" {
		return l.l.Addr()
	}
	return &net.UnixAddr{Name: "@…", Net: "unix"}
}

// Touch renews the time of the file, so that it is not taken for an old one.
// The error is of kind NotFound when the file is gone and the endpoint has to
// be made anew. Abstract sockets need no touch.
func (l *Listener) Touch(now time.Time) error {
	if l.file == "" {
		return nil
	}
	err := os.Chtimes(l.file, now, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errs.E("sharedport.Touch", errs.NotFound, l.file, err)
	case err != nil:
		return errs.E("sharedport.Touch", errs.Broken, l.file, err)
	}
	return nil
}

// Receive takes the descriptor that follows the request on c, which must be
// one that Accept returned, and makes a connection of it. It waits no longer
// than c's deadline.
func (l *Listener) Receive(c net.Conn) (net.Conn, error) {
	bad := func(kind errs.Kind, err error) (net.Conn, error) {
		return nil, errs.E("sharedport.Receive", kind, "", err)
	}
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return bad(errs.Invalid, fmt.Errorf("a descriptor cannot come through a %T", c))
	}
	// Room for some more than one: surplus ones are closed, not lost.
	oob := make([]byte, unix.CmsgSpace(16*4))
	n, oobn, flags, _, err := uc.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return bad(errs.Transient, err)
	}
	fds, err := descriptors(oob[:oobn])
	if err != nil || n != 1 || len(fds) != 1 || flags&unix.MSG_CTRUNC != 0 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return bad(errs.Invalid, fmt.Errorf("%d bytes and %d descriptors came, want one of each", n, len(fds)))
	}
	unix.CloseOnExec(fds[0])
	f := os.NewFile(uintptr(fds[0]), "passed connection")
	defer f.Close() // FileConn takes a copy
	nc, err := net.FileConn(f)
	if err != nil {
		return bad(errs.Invalid, fmt.Errorf("what was passed is no connection: %w", err))
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAlive(true)
	}
	return nc, nil
}

// descriptors returns all descriptors in the control messages of b.
func descriptors(b []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // credentials and the like
		}
		all = append(all, fds...)
	}
	return all, nil
}

// Pass sends the descriptor of nc over c as a shared port server does, after
// its request. nc stays open here.
func Pass(c net.Conn, nc net.Conn) error {
	uc, ok := c.(*net.UnixConn)
	sc, ok2 := nc.(interface{ File() (*os.File, error) })
	if !ok || !ok2 {
		return errs.E("sharedport.Pass", errs.Unsupported, "", fmt.Errorf("a %T cannot be passed over a %T", nc, c))
	}
	f, err := sc.File()
	if err != nil {
		return errs.E("sharedport.Pass", errs.Broken, "", err)
	}
	defer f.Close()
	if _, _, err := uc.WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil); err != nil {
		return errs.E("sharedport.Pass", errs.Transient, "", err)
	}
	return nil
}

// Dial connects to the endpoint at p on this machine, first by its cookie and
// then by its file.
func Dial(p Place) (net.Conn, error) {
	var first error
	if p.Cookie != "" {
		if name, err := p.name(); err == nil {
			c, err := net.Dial("unix", name)
			if err == nil {
				return c, nil
			}
			first = hideName(err)
		}
	}
	if p.Dir != "" {
		name, err := Place{Dir: p.Dir, ID: p.ID}.name()
		if err != nil {
			return nil, err
		}
		c, err := net.Dial("unix", name)
		if err == nil {
			return c, nil
		}
		first = err
	}
	if first == nil {
		first = errors.New("neither a cookie nor a directory for the socket")
	}
	return nil, errs.E("sharedport.Dial", errs.NotFound, p.ID, first)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	maxPath      = 4096
	maxExtension = 256
	sockSuffix   = "?sock="
)

// fsClient makes the directory that the server asks for. The system says
// whose it is, so a server that shares no file system with us learns nothing.
func (c *Client) fsClient(conn *cedar.Conn, p Peer) error {
	const op = "authn.fsClient"
	r := reader{conn: conn}
	name := r.name(maxPath)
	if err := r.end(); err != nil {
		return err
	}
	dir, extension, why := c.fsPlace(name, p)
	if why == nil {
		why = c.Owners.MakeDir(dir)
	}
	if why == nil {
		defer c.Owners.RemoveDir(dir)
		conn.PutInt(0)
	} else {
		conn.PutInt(-1)
	}
	if extension != "" {
		conn.PutString(extension)
	}
	if err := send(conn); err != nil {
		return err
	}
	r = reader{conn: conn}
	answer := r.int()
	if err := r.end(); err != nil {
		return err
	}
	switch {
	case why != nil:
		return errs.E(op, errs.Other, name, why)
	case answer != 0:
		return errs.E(op, errs.Denied, dir, errors.New("the server does not accept the directory"))
	}
	return nil
}

// fsPlace returns the directory to make and what was added to the name that
// the server sent. That name is a stranger's wish: it must be one that such
// servers send, and with the binding enforced it must show the address to
// which we believe to be connected, so that no one in between can pass our proof on.
func (c *Client) fsPlace(name string, p Peer) (dir, extension string, err error) {
	base := path.Base(name)
	switch {
	case name == "":
		return "", "", errs.E("", errs.Broken, "", errors.New("the server could not make up a name: see FS_LOCAL_DIR in its log"))
	case c.Owners == nil:
		return "", "", errs.E("", errs.Unsupported, "", errors.New("FS is not possible on this system"))
	case !path.IsAbs(name) || path.Clean(name) != name || !strings.HasPrefix(base, "FS_") || strings.ContainsFunc(name, unprintable):
		return "", "", errs.E("", errs.Invalid, "", fmt.Errorf("%.256q is no name for the directory, want /…/FS_…", name))
	case !c.FSBinding:
		return name, "", nil
	case !p.Remote.IsValid():
		return "", "", errs.E("", errs.Denied, "", errors.New("the server's address is not known, so it cannot be vouched for"))
	}
	if strings.HasSuffix(name, "_") {
		extension = p.Remote.String()
		if p.SharedPortID != "" {
			extension += sockSuffix + p.SharedPortID
		}
		return name + extension, extension, nil
	}
	want := fmt.Sprintf("FS_%s_%d_", p.Remote.Addr(), p.Remote.Port())
	if !strings.HasPrefix(base, want) {
		return "", "", errs.E("", errs.Denied, "", fmt.Errorf("%.256q is not for the address %s: want %s…; a server of the releases that do not tell their address is trusted with SEC_FS_ENFORCE_CHANNEL_BINDING = false", base, p.Remote, want))
	}
	return name, "", nil
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f }

// fsServer asks the client for a directory that only it can make its own.
func (s *Server) fsServer(conn *cedar.Conn, p Peer) (Identity, error) {
	const op = "authn.fsServer"
	name, why := s.fsName(p)
	conn.PutString(name) // "" says that we could not
	if err := send(conn); err != nil {
		return Identity{}, err
	}
	r := reader{conn: conn}
	made := r.int()
	var extension string
	if r.err == nil && conn.More() {
		extension = r.name(maxExtension)
	}
	if err := r.end(); err != nil {
		return Identity{}, err
	}
	var id Identity
	switch {
	case why != nil:
	case made != 0:
		why = errs.E("", errs.Denied, "", errors.New("the client could not make the directory"))
	default:
		if why = s.fsExtension(extension, p); why == nil {
			id, why = s.fsOwner(name + extension)
		}
	}
	if why == nil {
		conn.PutInt(0)
	} else {
		conn.PutInt(-1)
	}
	if err := send(conn); err != nil {
		return Identity{}, err
	}
	if why != nil {
		return Identity{}, errs.E(op, errs.Other, name, why)
	}
	return id, nil
}

// fsName makes up the name of a directory that is not there. Its end invites
// the client to add how it sees our address.
func (s *Server) fsName(p Peer) (string, error) {
	if s.Owners == nil {
		return "", errs.E("", errs.Unsupported, "", errors.New("FS is not possible on this system"))
	}
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	address := "local_0"
	if p.Local.IsValid() {
		address = fmt.Sprintf("%s_%d", p.Local.Addr(), p.Local.Port())
	}
	for range 16 {
		b := make([]byte, 9)
		if _, err := io.ReadFull(s.random(), b); err != nil {
			return "", errs.E("", errs.Broken, "", err)
		}
		for i := range b {
			b[i] = letters[int(b[i])%len(letters)]
		}
		name := fmt.Sprintf("%s/FS_%s_%s_", strings.TrimRight(s.FSDir, "/"), address, b)
		_, err := s.Owners.Entry(name)
		if errs.Is(err, errs.NotFound) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", errs.E("", errs.Exhausted, "", errors.New("every name that was made up is there already"))
}

// fsExtension checks what the client added to the name: our address as it
// sees it. Without one there is nothing to check.
func (s *Server) fsExtension(extension string, p Peer) error {
	if extension == "" {
		return nil
	}
	deny := func(why string) error {
		return errs.E("", errs.Denied, "", fmt.Errorf("the client's view of our address, %.64q, %s", extension, why))
	}
	if strings.ContainsAny(extension, `/\`) || strings.ContainsFunc(extension, unprintable) {
		return deny("could lead to another directory")
	}
	text, sock, named := strings.Cut(extension, sockSuffix)
	to, err := netip.ParseAddrPort(text)
	if err != nil || to.Addr().Zone() != "" {
		return deny("is no ip:port")
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	var self cedar.Sinful
	if s.Self != nil {
		self = s.Self()
	}
	switch {
	case p.Local.IsValid() && to == p.Local && !named:
		return nil
	case named && (sock == "" || sock != self.SockID):
		return deny("names another daemon behind the shared port")
	case p.Local.IsValid() && to == p.Local:
		return nil
	case pointsTo(self, to):
		return nil
	}
	return deny("is none of our addresses")
}

// pointsTo reports whether to is an address of the daemon at self.
func pointsTo(self cedar.Sinful, to netip.AddrPort) bool {
	if host, err := netip.ParseAddr(self.Host); err == nil {
		at := netip.AddrPortFrom(host.Unmap(), uint16(self.Port)) //nolint:gosec // compared, never dialled
		if at == to || self.Port == int(to.Port()) && to.Addr().IsLoopback() {
			return true
		}
	}
	if slices.Contains(self.Addrs, to) {
		return true
	}
	return self.PrivAddr != nil && pointsTo(*self.PrivAddr, to)
}

// fsOwner says who made the directory. Whoever can make files for others, by
// links or otherwise, must not get a name by it: only a real directory of the
// exact mode counts, which no user can make in another's name.
func (s *Server) fsOwner(dir string) (Identity, error) {
	e, err := s.Owners.Entry(dir)
	if err != nil {
		return Identity{}, err
	}
	isDir := e.Mode.IsDir() && e.Mode&^fs.ModeDir == 0o700 && (e.Links == 1 || e.Links == 2)
	isFile := s.FSUnsafe && e.Mode.IsRegular() && e.Links == 1
	if !isDir && !isFile {
		return Identity{}, errs.E("", errs.Denied, "", fmt.Errorf("%s is %s with %d names, want a directory of mode 0700", dir, e.Mode, e.Links))
	}
	user, err := s.Owners.UserName(e.UID)
	if err != nil {
		return Identity{}, err
	}
	if user == "" {
		return Identity{}, errs.E("", errs.NotFound, "", fmt.Errorf("the user %d has no name", e.UID))
	}
	if user == "root" && s.FSRootToCondor && s.Condor != "" {
		user = s.Condor
	}
	return Identity{Method: FS, User: user, Domain: strings.ToLower(s.UIDDomain), Name: user}, nil
}

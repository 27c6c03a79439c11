// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// datagramSession is the life of sessions for datagrams. No message says when such
// a session is forgotten, so it is short: a collector that was started again
// knows us again before the ads are too old that it has forgotten.
const datagramSession = 10 * time.Minute

// Datagrams go out unanswered, so they are not sent faster than a busy reader
// takes them: burst bytes at once, and then a pause.
const (
	burst      = 64 << 10
	burstPause = 20 * time.Millisecond
)

// messageIDs numbers the messages of a process.
type messageIDs struct {
	mu   sync.Mutex
	next cedar.MessageID
	made bool
}

func (m *messageIDs) id(random io.Reader) (cedar.MessageID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.made {
		var b [12]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return cedar.MessageID{}, err
		}
		m.next = cedar.MessageID{
			IP: binary.BigEndian.Uint32(b[:]), PID: binary.BigEndian.Uint16(b[4:]),
			Time: binary.BigEndian.Uint32(b[6:]), Number: binary.BigEndian.Uint16(b[10:]),
		}
		m.made = true
	}
	id := m.next
	m.next.Number++
	return id, nil
}

// cipher returns the cipher and key of the session's datagrams, no key if
// they go in clear. It fails with Unsupported where the session has a key and
// no datagram can go under it.
func (s *Session) cipher(fips bool) (cedar.Cipher, Key, error) {
	bad := func(why string) (cedar.Cipher, Key, error) {
		return "", nil, errs.E("security.Datagrams", errs.Unsupported, clip(s.ID), errors.New(why))
	}
	if !s.Encrypts() {
		return "", nil, nil
	}
	c := cedar.Blowfish
	if fips {
		c = cedar.TripleDES
	}
	switch {
	case !slices.Contains(s.Ciphers, c):
		return bad(fmt.Sprintf("datagrams need the cipher %s, which both sides must have in their CRYPTO_METHODS: AES is for streams", c))
	case !s.Encryption:
		// HTCondor fails on its own datagrams then: HTCondor 25.14's
		// collector ends when it reads a secret in one.
		return bad("the session has a key but is not to encrypt, and then no datagram can be sent that HTCondor reads")
	}
	const negotiated, capability = 24, 16 // bytes of the keys of such sessions
	switch {
	case s.old == nil:
		return c, s.Key[:negotiated], nil
	case fips:
		return c, s.Key[:capability], nil // HTCondor cuts it, and 3DES repeats it
	}
	return c, s.old, nil
}

// TakesDatagrams reports whether a daemon at an address can be sent any: not
// behind a shared port or a broker, nor if it says that it listens to none.
func TakesDatagrams(to cedar.Sinful) bool {
	return !to.NoUDP && to.SockID == "" && len(to.CCB) == 0 && to.Port > 0
}

// Datagrams is a way to send commands to one daemon over UDP. Nothing of it
// is ever acknowledged. It is for one goroutine.
type Datagrams struct {
	c       *Client
	to      cedar.Sinful
	address string
	nc      net.Conn
	last    *Session
	burst   int
}

// Datagrams begins to send commands to a daemon over UDP, and makes the session
// for the first of them if there is none: over TCP, for UDP cannot. It fails
// with Unsupported if the daemon takes no datagrams or the two sides have no
// cipher for them.
func (c *Client) Datagrams(ctx context.Context, to cedar.Sinful, command int) (*Datagrams, error) {
	switch {
	case c.Post == nil:
		return nil, errs.E("security.Datagrams", errs.Unsupported, to.HostPort(), errors.New("datagrams are not sent here"))
	case !TakesDatagrams(to):
		return nil, errs.E("security.Datagrams", errs.Unsupported, to.HostPort(), errors.New("the daemon's address takes no datagrams"))
	}
	nc, err := c.Post(ctx, to)
	if err != nil {
		return nil, errs.E("security.Datagrams", errs.Other, to.HostPort(), err)
	}
	d := &Datagrams{c: c, to: to, address: to.String(), nc: nc}
	f, err := d.force()
	if err == nil {
		_, err = d.session(ctx, f, command)
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return d, nil
}

func (d *Datagrams) force() (*activeSettings, error) {
	if f := d.c.current.Load(); f != nil {
		return f, nil
	}
	return nil, errs.E("security.Datagrams", errs.Internal, "", errors.New("the client is not configured"))
}

// Close ends it.
func (d *Datagrams) Close() error { return d.nc.Close() }

// Encrypted reports whether the last command went out encrypted, or the first
// will.
func (d *Datagrams) Encrypted() bool { return d.last != nil && d.last.Encrypts() }

// PeerVersion returns the daemon's $CondorVersion string, "" if unknown.
func (d *Datagrams) PeerVersion() string {
	if d.last == nil {
		return ""
	}
	return d.c.Sessions.peerVersion(d.last)
}

// session returns the session for a command, nil for a bare one.
func (d *Datagrams) session(ctx context.Context, f *activeSettings, number int) (*Session, error) {
	h := clientShake{c: d.c, f: f, ctx: ctx, conn: cedar.NewConn(d.nc, cedar.Limits{}), to: d.to, address: d.address, command: number}
	s, err := h.choose()
	if err != nil {
		return nil, err
	}
	if s != nil {
		if _, _, err = s.cipher(f.settings.FIPS); err == nil {
			return s, d.acceptable(&h, s)
		}
		if !s.Negotiated {
			return nil, err
		}
		s = nil // it was made for streams
	}
	p, err := f.policy(ClientLevel)
	if err != nil {
		return nil, err
	}
	if p.Negotiation == Never {
		d.last = nil
		return nil, nil
	}
	conn, s, err := d.c.Command(ctx, d.to, command.DCAuthenticate, Options{AuthCommand: number, Datagrams: true})
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	if _, _, err := s.cipher(f.settings.FIPS); err != nil {
		return nil, err
	}
	d.last = s
	return s, nil
}

// acceptable holds the daemon against ALLOW_CLIENT.
func (d *Datagrams) acceptable(h *clientShake, s *Session) error {
	d.last = s
	v := h.f.settings.Authorizer.Allowed(ClientLevel, Asker{Peer: s.Peer, Addr: h.remote(), Names: d.c.Names})
	if !v.OK {
		return errDenied("security.Datagrams", d.address, "the server is not acceptable: "+v.Why)
	}
	return nil
}

// Send sends a command with the payload that a function puts. That it returns no
// error does not say that anybody got it. An error of kind Invalid or
// Exhausted is of the payload; of kind Transient says that no socket listens any
// more, as far as this machine knows.
func (d *Datagrams) Send(ctx context.Context, command int, payload func(*cedar.Conn)) error {
	f, err := d.force()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.settings.Deadline)
	defer cancel()
	s, err := d.session(ctx, f, command)
	if err != nil {
		return err
	}
	message, err := d.message(f, s, command, payload)
	if err != nil {
		return err
	}
	id, err := d.c.messages.id(d.c.random())
	if err != nil {
		return errs.E("security.Datagrams", errs.Internal, "", err)
	}
	size := f.settings.Fragment
	if a, err := netip.ParseAddrPort(d.nc.RemoteAddr().String()); err == nil && a.Addr().Unmap().IsLoopback() {
		size = f.settings.Loopback
	}
	parts, err := message.Split(id, size)
	if err != nil {
		return err
	}
	if err := d.nc.SetWriteDeadline(time.Time{}); err != nil {
		return errs.E("security.Datagrams", errs.Transient, d.address, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = d.nc.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	for _, part := range parts {
		if err := d.pace(ctx, len(part)); err != nil {
			return err
		}
		if _, err := d.nc.Write(part); err != nil {
			if s != nil && s.Negotiated && ctx.Err() == nil {
				d.c.Sessions.discard(s) // a peer that is gone has forgotten it
			}
			return errs.E("security.Datagrams", errs.Transient, d.address, err)
		}
	}
	return nil
}

// message is a command as it is sent, whole.
func (d *Datagrams) message(f *activeSettings, s *Session, number int, payload func(*cedar.Conn)) (cedar.Datagram, error) {
	if s == nil {
		b, err := cedar.WriteMessage(func(c *cedar.Conn) {
			c.PutInt(int64(number))
			payload(c)
		})
		return cedar.Datagram{Payload: b}, err
	}
	n, err := nonce(d.c.random())
	if err != nil {
		return cedar.Datagram{}, errs.E("security.Datagrams", errs.Internal, "", err)
	}
	cipher, key, err := s.cipher(f.settings.FIPS)
	if err != nil {
		return cedar.Datagram{}, err
	}
	own := ""
	if d.c.Address != nil {
		own = d.c.Address()
	}
	var ad literals
	ad.set("Command", int64(number))
	ad.text("ConnectSinful", d.address)
	form := cedar.Plain
	if key != nil {
		form = cedar.Counted
		ad.set("CryptoMethods", string(cipher))
	}
	ad.set("Nonce", n)
	ad.text("RemoteVersion", d.c.Version)
	ad.text("ServerCommandSock", own)
	ad.set("Sid", s.ID)
	ad.set("UseSession", "YES")
	b, err := cedar.WriteForm(form, d.c.Sessions.peerVersion(s), func(c *cedar.Conn) {
		c.PutInt(command.DCAuthenticate)
		put(c, ad)
		payload(c)
	})
	if err != nil {
		return cedar.Datagram{}, err
	}
	m := cedar.Datagram{Payload: b}
	if key == nil {
		return m, nil
	}
	id := s.ID
	if own != "" {
		id += "," + own
	}
	return m, m.Encrypt(cipher, key, id)
}

// pace waits where a burst is over.
func (d *Datagrams) pace(ctx context.Context, n int) error {
	if d.burst += n; d.burst <= burst {
		return nil
	}
	d.burst = n
	t := time.NewTimer(burstPause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return errs.E("security.Datagrams", errs.Expired, d.address, context.Cause(ctx))
	case <-t.C:
		return nil
	}
}

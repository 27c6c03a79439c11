// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
)

// Datagrams finds out who sent a message that came in datagrams, and what it
// may have. *security.Server is it; it logs what it refuses.
type Datagrams interface {
	// Datagram returns the command of a whole message, allowed, with its payload
	// next on the Conn. It may change the message.
	Datagram(ctx context.Context, from netip.AddrPort, m cedar.Datagram) (*security.Request, *cedar.Conn, error)
}

const (
	largestDatagram = 64 << 10
	// datagramHandlers is how many messages are worked on at a time. What comes
	// beyond that is lost, as datagrams may be.
	datagramHandlers = 64
)

// ServePackets takes commands in datagrams from pc, which it closes, until ctx
// ends or pc fails. It returns nil when ctx ended; handlers may then still run,
// see Wait. What is not understood, not allowed or too much is dropped, and
// nothing is ever answered.
func (s *Server) ServePackets(ctx context.Context, pc net.PacketConn) error {
	s.start()
	defer pc.Close()
	if s.Datagrams == nil {
		return errs.E("listen.ServePackets", errs.Internal, pc.LocalAddr().String(), errors.New("nothing says who sent a datagram"))
	}
	stop := context.AfterFunc(ctx, func() { _ = pc.Close() })
	defer stop()
	var parts cedar.Assembler
	var dropped logLimiter
	drop := func(from netip.AddrPort, err error) {
		if n, say := dropped.allow(time.Now()); say {
			s.Log.Warn("datagram dropped", "peer", from.String(), "err", err, "since", n)
		}
	}
	slots := make(chan struct{}, datagramHandlers)
	buf := make([]byte, largestDatagram)
	pause := time.Duration(0)
	for {
		n, addr, err := pc.ReadFrom(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return errs.E("listen.ServePackets", errs.Broken, pc.LocalAddr().String(), err)
			}
			// Some systems report here that the socket of another peer is gone.
			pause = min(max(2*pause, time.Millisecond), time.Second)
			if !wait(ctx, pause) {
				return nil
			}
			continue
		}
		pause = 0
		var from netip.AddrPort
		if u, ok := addr.(*net.UDPAddr); ok {
			ap := u.AddrPort()
			from = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		}
		var m cedar.Datagram
		ok := false
		if err := protect(func() (err error) {
			m, ok, err = whole(&parts, from, buf[:n])
			return err
		}); err != nil {
			s.panicked(s.Log.With("peer", from.String()), err)
			drop(from, err)
		}
		if !ok {
			continue
		}
		select {
		case slots <- struct{}{}:
			s.wg.Go(func() {
				defer func() { <-slots }()
				if err := protect(func() error { s.message(ctx, from, m); return nil }); err != nil {
					s.panicked(s.Log.With("peer", from.String()), err)
				}
			})
		default:
			drop(from, errs.E("listen.ServePackets", errs.Exhausted, from.String(), errors.New("too many messages are worked on")))
		}
	}
}

// whole reads a datagram and reports whether a message is complete with it. A
// message may be complete although there is an error.
func whole(parts *cedar.Assembler, from netip.AddrPort, b []byte) (m cedar.Datagram, ok bool, err error) {
	d, err := cedar.ParseDatagram(b)
	if err != nil {
		return m, false, err
	}
	if !d.Fragment {
		d.Payload = bytes.Clone(d.Payload)
	}
	return parts.Add(time.Now(), from, d)
}

// message acts on a message that is whole.
func (s *Server) message(ctx context.Context, from netip.AddrPort, m cedar.Datagram) {
	ctx, cancel := context.WithTimeout(ctx, s.guard.limits.Message)
	defer cancel()
	req, conn, err := s.Datagrams.Datagram(ctx, from, m)
	if err != nil {
		return // it is logged
	}
	log := s.Log.With("peer", from.String())
	cmd, ok := s.Table.Lookup(req.Command)
	if !ok || !cmd.Datagrams {
		log.Warn("command refused", "command", command.Name(req.Command), "user", req.Peer.User, "err", "it is not taken in datagrams")
		return
	}
	call := &Call{Conn: conn, Command: cmd, Request: req, Addr: from, Log: log.With("command", cmd.Name), detach: func() bool { return false }}
	call.Log.Debug("command", "user", req.Peer.User, "datagram", true)
	if err := call.handle(ctx); isPanic(err) { // it is logged
		s.panics.Add(1)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Commands between clients, a shared port and its endpoints.
const (
	SharedPortConnect  = 75 // SHARED_PORT_CONNECT, first on a connection
	SharedPortPassSock = 76 // SHARED_PORT_PASS_SOCK, on the named socket
)

// SharedPortSelf is the id under which the shared port itself is reached.
const SharedPortSelf = "self"

// maxID is the length of an id that still fits into the name of a socket.
const maxID = 100

// ValidID reports whether id can stand for a daemon behind a shared port: it
// becomes the name of a file.
func ValidID(id string) bool {
	if id == "" || len(id) > maxID || id == "." || id == ".." {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// NewID makes the id of a daemon: what it is, its pid, a tag by chance, so that
// nobody who asks for an earlier process of the same pid finds this one, and
// for all but its first (seq 0) endpoint the number.
func NewID(daemon string, pid int, tag uint16, seq int) string {
	id := fmt.Sprintf("%s_%d_%04x", strings.ToLower(daemon), pid, tag)
	if seq > 0 {
		id += fmt.Sprintf("_%d", seq)
	}
	return id
}

// NamedSocket is where a shared port hands over connections. The operating
// system's part of it is under platform.
type NamedSocket interface {
	// Accept waits for a shared port.
	Accept() (net.Conn, error)
	// Receive takes the connection that follows the request on c.
	Receive(c net.Conn) (net.Conn, error)
	// Touch shows that the socket is in use; kind NotFound when it is gone.
	Touch(now time.Time) error
	Close() error
	Addr() net.Addr
}

// Endpoint is a daemon behind a shared port.
type Endpoint struct {
	ID     string
	Server *Server
	// Open makes the named socket. It is called again when the socket was
	// removed by somebody.
	Open func() (NamedSocket, error)
	Log  *slog.Logger
}

const (
	touchEvery     = 900 * time.Second
	handoverWithin = 5 * time.Second
	handovers      = 64 // under way at a time
)

// Serve takes connections over until ctx ends. It returns nil then.
func (p *Endpoint) Serve(ctx context.Context) error {
	for {
		l, err := p.Open()
		if err != nil {
			return err
		}
		gone, err := p.serve(ctx, l)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !gone {
			return err
		}
		p.log().Warn("the named socket of the shared port endpoint is gone, making a new one", "addr", l.Addr().String())
	}
}

func (p *Endpoint) log() *slog.Logger {
	if p.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Log
}

// serve uses one named socket. gone says that the socket was removed.
func (p *Endpoint) serve(ctx context.Context, l NamedSocket) (gone bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	missing := make(chan struct{})
	wg.Go(func() {
		t := time.NewTicker(touchEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				err := l.Touch(now)
				if errs.Is(err, errs.NotFound) {
					close(missing)
					_ = l.Close()
					return
				}
				if err != nil {
					p.log().Warn("could not touch the named socket", "err", err)
				}
			}
		}
	})
	slots := make(chan struct{}, handovers)
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			slots <- struct{}{} // each is free again within handoverWithin
			wg.Go(func() {
				defer func() { <-slots }()
				p.take(ctx, l, c)
			})
			continue
		}
		select {
		case <-missing:
			return true, nil
		default:
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return false, err
		}
		pause = clock.Longer(pause)
		p.log().Warn("could not accept from the shared port", "err", err)
		if !wait(ctx, pause) {
			return false, nil
		}
	}
}

// take reads one request and serves the connection that comes with it.
func (p *Endpoint) take(ctx context.Context, l NamedSocket, c net.Conn) {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(handoverWithin)); err != nil {
		return
	}
	if err := readPassRequest(c); err != nil {
		p.log().Warn("bad request on the named socket", "err", err)
		return
	}
	nc, err := l.Receive(c)
	if err != nil {
		p.log().Warn("no connection came through the named socket", "err", err)
		return
	}
	p.Server.ServeConn(ctx, nc)
}

// passRequest is the only message that is sent to a named socket.
func passRequest() []byte {
	b := make([]byte, 13)
	b[0] = 1
	binary.BigEndian.PutUint32(b[1:], 8)
	binary.BigEndian.PutUint64(b[5:], SharedPortPassSock)
	return b
}

// readPassRequest reads the request byte for byte: the descriptor is tied to
// the byte behind it, which must not be read ahead.
func readPassRequest(r io.Reader) error {
	var b [13]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return errs.E("listen.Endpoint", errs.Transient, "", err)
	}
	if !bytes.Equal(b[:], passRequest()) {
		return errs.E("listen.Endpoint", errs.Invalid, "", fmt.Errorf("a message other than %d (SHARED_PORT_PASS_SOCK)", SharedPortPassSock))
	}
	return nil
}

// WritePassRequest writes what a shared port says before it passes a
// descriptor.
func WritePassRequest(w io.Writer) error {
	_, err := w.Write(passRequest())
	return err
}

// maxPortAd bounds the file that a shared port describes itself in.
const maxPortAd = 1 << 20

// PortAddress reads the ad of a shared port (SHARED_PORT_DAEMON_AD_FILE) and
// returns the public address of the daemon id behind it. others are its
// further addresses (SharedPortCommandSinfuls).
func PortAddress(file []byte, id string) (public cedar.Sinful, others []cedar.Sinful, err error) {
	bad := func(err error) (cedar.Sinful, []cedar.Sinful, error) {
		return cedar.Sinful{}, nil, errs.E("listen.PortAddress", errs.Invalid, "SHARED_PORT_DAEMON_AD_FILE", err)
	}
	if len(file) > maxPortAd {
		return bad(fmt.Errorf("%d bytes are too long for an ad", len(file)))
	}
	ad, err := classad.ParseAd(string(file), classad.Old)
	if err != nil {
		return bad(err)
	}
	text, ok := lookupString(ad, "MyAddress")
	if !ok {
		return bad(errors.New("it has no MyAddress"))
	}
	if public, err = cedar.ParseSinful(text); err != nil {
		return bad(err)
	}
	public = withSock(public, id)
	list, _ := lookupString(ad, "SharedPortCommandSinfuls")
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if len(others) == maxTargets {
			break
		}
		s, err := cedar.ParseSinful(word)
		if err != nil {
			return bad(err)
		}
		s.PrivAddr = public.PrivAddr
		others = append(others, withSock(s, id))
	}
	return public, others, nil
}

// withSock returns s asking for a daemon behind a shared port.
func withSock(s cedar.Sinful, id string) cedar.Sinful {
	s.SockID = id
	if s.PrivAddr != nil {
		p := *s.PrivAddr
		p.SockID = id
		s.PrivAddr = &p
	}
	return s
}

// LocalAddress is how a daemon whose shared port is not there yet is reached
// from its own machine: port 0 stands for its named socket.
func LocalAddress(host netip.Addr, id, alias string) cedar.Sinful {
	return cedar.Sinful{Host: host.String(), SockID: id, Alias: alias}
}

// PortWatch tells the address of a daemon behind a shared port whenever it
// changes.
type PortWatch struct {
	ID      string
	Read    func() ([]byte, error) // the ad of the shared port
	Changed func(public cedar.Sinful, others []cedar.Sinful)
	Log     *slog.Logger
}

const (
	portRetry   = 60 * time.Second
	portRefresh = 300 * time.Second
)

// Run reads the ad until ctx ends: as long as there is none after a second and
// twice as long each time, up to a minute, and then every five minutes and a
// bit, for a shared port may get another address from its broker.
func (w *PortWatch) Run(ctx context.Context) {
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	last := ""
	pause := time.Second
	for {
		next := pause
		file, err := w.Read()
		if err == nil {
			var public cedar.Sinful
			var others []cedar.Sinful
			if public, others, err = PortAddress(file, w.ID); err == nil {
				next = portRefresh + rand.N(portRetry)
				pause = time.Second
				if text := public.String(); text != last {
					last = text
					w.Changed(public, others)
				}
			}
		}
		if err != nil {
			w.Log.Info("the address of the shared port is not known", "err", err, "retry", next.String())
			pause = min(2*pause, portRetry)
		}
		if !wait(ctx, next) {
			return
		}
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// What a proxy holds at a time. Whoever has shown the cookie is the job;
// everybody else on the machine can connect as well and must not keep it out.
const (
	mostClients   = 64
	mostStrangers = 16
	toShowCookie  = 30 * time.Second
	toMove        = 60 * time.Second // one piece of data, in either direction
	mostTries     = 3                // of a cookie
)

// Proxy is a Chirp server for one job. Its methods may be called from any
// goroutine.
type Proxy struct {
	cfg      Config
	listener net.Listener
	cookie   string
	delayed  delayed
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	clients   map[net.Conn]bool
	strangers []net.Conn // that have not shown the cookie, oldest first
}

// Listen opens the socket and makes the cookie.
func Listen(cfg Config) (*Proxy, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if !cfg.Address.IsValid() {
		cfg.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	cookie, err := newCookie()
	if err != nil {
		return nil, errs.E("chirp.Listen", errs.Broken, "cookie", err)
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(cfg.Address, 0).String())
	if err != nil {
		return nil, errs.E("chirp.Listen", errs.Broken, cfg.Address.String(), err)
	}
	p := &Proxy{
		cfg: cfg, listener: l, cookie: cookie, clients: map[net.Conn]bool{},
		delayed: delayed{patterns: cfg.Settings.Prefixes, most: cfg.Settings.MostDelayed},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// cookieLength is that of HTCondor's cookies.
const cookieLength = 31

// newCookie makes a word of lower-case letters that nobody can guess.
func newCookie() (string, error) {
	const letters = 26
	out := make([]byte, 0, cookieLength)
	var b [64]byte
	for len(out) < cookieLength {
		if _, err := rand.Read(b[:]); err != nil {
			return "", err
		}
		for _, c := range b {
			// All letters are equally likely.
			if c < 256-256%letters && len(out) < cookieLength {
				out = append(out, 'a'+c%letters)
			}
		}
	}
	return string(out), nil
}

// ConfigText is what .chirp.config says: where the proxy is, and the cookie.
// Only the job may read it.
func (p *Proxy) ConfigText() string {
	a, err := netip.ParseAddrPort(p.listener.Addr().String())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %s\n", a.Addr().Unmap(), a.Port(), p.cookie)
}

// Serve answers until ctx ends or Close. It returns nil then.
func (p *Proxy) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.Close)
	defer stop()
	pause := time.Duration(0)
	for {
		nc, err := p.listener.Accept()
		switch {
		case p.ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			p.wg.Wait()
			return nil
		case errors.Is(err, net.ErrClosed):
			return errs.E("chirp.Serve", errs.Broken, "", err)
		case err != nil: // out of descriptors: those that are served give some back
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			p.cfg.Log.Warn("chirp could not accept a connection", "err", err)
			t := time.NewTimer(pause)
			select {
			case <-p.ctx.Done():
				t.Stop()
			case <-t.C:
			}
			continue
		}
		pause = 0
		p.admit(nc)
	}
}

// admit serves a new connection. When there are too many that have not shown
// the cookie the oldest of them goes.
func (p *Proxy) admit(nc net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = nc.Close()
		return
	}
	if len(p.strangers) >= mostStrangers {
		_ = p.strangers[0].Close()
		p.strangers = p.strangers[1:]
	}
	p.strangers = append(p.strangers, nc)
	p.wg.Go(func() {
		defer p.leave(nc)
		c := &client{p: p, nc: nc, r: bufio.NewReaderSize(nc, MaxLine)}
		if err := c.run(); !errors.Is(err, io.EOF) && p.ctx.Err() == nil {
			p.cfg.Log.Debug("chirp connection ended", "err", err)
		}
	})
}

// know moves a connection to those that have shown the cookie. It is false if
// there are too many of them.
func (p *Proxy) know(nc net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(nc)
	if p.closed || len(p.clients) >= mostClients {
		return false
	}
	p.clients[nc] = true
	return true
}

func (p *Proxy) forget(nc net.Conn) {
	for i, s := range p.strangers {
		if s == nc {
			p.strangers = append(p.strangers[:i:i], p.strangers[i+1:]...)
			return
		}
	}
}

func (p *Proxy) leave(nc net.Conn) {
	_ = nc.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(nc)
	delete(p.clients, nc)
}

// Close ends Serve and all connections. It may be called again.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for nc := range p.clients {
		_ = nc.Close()
	}
	for _, nc := range p.strangers {
		_ = nc.Close()
	}
}

// client is one connection of the job.
type client struct {
	p   *Proxy
	nc  net.Conn
	r   *bufio.Reader
	out []byte // an answer being made
}

// run serves the connection to its end, and says why it ended.
func (c *client) run() error {
	if err := c.greet(); err != nil {
		return err
	}
	if !c.p.know(c.nc) {
		_ = c.number(int64(Busy))
		return errs.E("chirp.client", errs.Exhausted, "", fmt.Errorf("the job has %d connections already", mostClients))
	}
	if err := c.number(0); err != nil {
		return err
	}
	for {
		line, err := c.line(0)
		if err != nil {
			return err
		}
		r, ok := parseRequest(line)
		if !ok || !c.p.cfg.Allow.has(r.verb.group) {
			// A request that may not be made is as one that there is not.
			if err := c.fail(InvalidRequest); err != nil {
				return err
			}
			continue
		}
		if err := c.serve(r); err != nil {
			return err
		}
	}
}

// greet waits for the cookie.
func (c *client) greet() error {
	for range mostTries {
		line, err := c.line(toShowCookie)
		if err != nil {
			return err
		}
		name, rest := nextWord(line)
		shown := strings.Trim(rest, blanks)
		if name == "cookie" && subtle.ConstantTimeCompare([]byte(shown), []byte(c.p.cookie)) == 1 {
			return nil
		}
		if err := c.fail(NotAuthenticated); err != nil {
			return err
		}
	}
	return errs.E("chirp.client", errs.Denied, c.nc.RemoteAddr().String(), errors.New("it does not know the cookie"))
}

// line reads one line, without its end. It waits without end for a within of
// 0, but only for the line to begin.
func (c *client) line(within time.Duration) (string, error) {
	var deadline time.Time
	if within > 0 {
		deadline = time.Now().Add(within)
	}
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := c.r.Peek(1); err != nil {
		return "", err
	}
	if within == 0 {
		if err := c.nc.SetReadDeadline(time.Now().Add(toMove)); err != nil {
			return "", err
		}
	}
	b, err := c.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.Join(errs.E("chirp.client", errs.Exhausted, "", fmt.Errorf("a line of more than %d bytes", MaxLine)), c.fail(TooBig))
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(b[:len(b)-1]), "\r"), nil
}

// send writes an answer.
func (c *client) send(b []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(toMove)); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

func (c *client) number(n int64) error {
	c.out = appendNumber(c.out[:0], n)
	return c.send(c.out)
}

func (c *client) fail(code Code) error { return c.number(int64(code)) }

// text answers with the length of a text and the text.
func (c *client) text(s string) error {
	c.out = append(appendNumber(c.out[:0], int64(len(s))), s...)
	return c.send(c.out)
}

// done answers a request that has no result.
func (c *client) done(err error) error {
	if err != nil {
		return c.fail(codeOf(err))
	}
	return c.number(0)
}

// piece reads bytes that follow a request.
func (c *client) piece(b []byte) error {
	if err := c.nc.SetReadDeadline(time.Now().Add(toMove)); err != nil {
		return err
	}
	if c.p.cfg.Acknowledge != nil && c.r.Buffered() < len(b) {
		c.p.cfg.Acknowledge(c.nc)
	}
	_, err := io.ReadFull(c.r, b)
	return err
}

// skip drops bytes that follow a request.
func (c *client) skip(n int64) error {
	buf := make([]byte, min(n, pieceSize))
	for n > 0 {
		part := buf[:min(n, int64(len(buf)))]
		if err := c.piece(part); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/collector"
)

// Message is one that a collector was sent.
type Message struct {
	At      time.Time
	Command int
	Public  *classad.Ad
	Private *classad.Ad // nil if there was none
}

// Collector is a collector in memory, behind sessions that need no
// negotiation. It implements directory.Opener for the addresses it stands for.
type Collector struct {
	Version string // its $CondorVersion string

	mu       sync.Mutex
	ads      map[string]Message
	messages []Message
	conns    []net.Conn
	opened   []int
	tried    []time.Time
	at       string // where it was tried last
	refuse   error
	deaf     bool
	clear    bool
	lost     error // of what comes over UDP
	posts    int   // begun
	posted   int   // ended
	bad      []error
}

// NewCollector returns a collector of a version, as "25.14.0".
func NewCollector(version string) *Collector {
	return &Collector{Version: "$CondorVersion: " + version + " 2026-11-20 BuildID: 1 $", ads: make(map[string]Message)}
}

// Command opens a connection.
func (c *Collector) Command(ctx context.Context, to cedar.Sinful, command int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried, c.at = append(c.tried, time.Now()), to.String()
	if c.refuse != nil {
		return nil, nil, c.refuse
	}
	client, server := net.Pipe()
	key := bytes.Repeat([]byte{7}, 32)
	done := make(chan struct{})
	conn, peer := cedar.NewConn(heard{client, done}, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{Timeout: -1})
	for _, x := range []*cedar.Conn{conn, peer} {
		if c.clear {
			break
		}
		if err := x.EnableAES(key); err != nil {
			return nil, nil, err
		}
	}
	conn.SetPeerVersion(c.Version)
	c.conns = append(c.conns, server)
	c.opened = append(c.opened, command)
	if c.deaf {
		close(done)
	} else {
		go func() {
			defer close(done)
			c.serve(peer, command)
		}()
	}
	return conn, &security.Session{ID: "s", PeerVersion: c.Version}, nil
}

// Post begins to take commands over UDP: it is what pool.Config.Post wants. A
// collector without a version gets them in clear.
func (c *Collector) Post(_ context.Context, to cedar.Sinful, _ int) (collector.Poster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried, c.at = append(c.tried, time.Now()), to.String()
	if c.refuse != nil {
		return nil, c.refuse
	}
	c.posts++
	return &post{c: c}, nil
}

// Posts returns how often a sender began to send over UDP, and how many have
// not ended it.
func (c *Collector) Posts() (begun, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.posts, c.posts - c.posted
}

// Lose has commands over UDP fail, nil not any more.
func (c *Collector) Lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// post is one way to a Collector over UDP.
type post struct{ c *Collector }

func (p *post) Encrypted() bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.c.Version != "" && !p.c.clear
}

func (p *post) PeerVersion() string { return p.c.Version }

func (p *post) Close() error {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.posted++
	return nil
}

func (p *post) Send(_ context.Context, command int, payload func(*cedar.Conn)) error {
	form := cedar.Plain
	if p.Encrypted() {
		form = cedar.Counted
	}
	b, err := cedar.WriteForm(form, p.c.Version, payload)
	if err != nil {
		return err
	}
	m, err := read(cedar.FormReader(b, form, cedar.Limits{}), command)
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	switch {
	case p.c.lost != nil:
		return p.c.lost
	case err != nil:
		p.c.bad = append(p.c.bad, err)
	default:
		p.c.keep(m)
	}
	return nil
}

// heard is a connection whose end is known once all that was sent over it was taken in:
// what the next one brings does not overtake it.
type heard struct {
	net.Conn
	done <-chan struct{}
}

func (h heard) Close() error {
	err := h.Conn.Close()
	<-h.done
	return err
}

func (c *Collector) serve(conn *cedar.Conn, command int) {
	for {
		m, err := read(conn, command)
		c.mu.Lock()
		if err != nil {
			if conn.InMessage() {
				c.bad = append(c.bad, err)
			}
			c.mu.Unlock()
			_ = conn.Close()
			return
		}
		command = -1
		c.keep(m)
		c.mu.Unlock()
	}
}

// keep takes in a message.
func (c *Collector) keep(m Message) {
	m.At = time.Now()
	c.messages = append(c.messages, m)
	name, _ := m.Public.EvalString("Name", nil)
	kind, _ := m.Public.EvalString("MyType", nil)
	if m.Command == command.InvalidateStartdAds {
		target, _ := m.Public.EvalString("TargetType", nil)
		delete(c.ads, target+"/"+name)
	} else {
		c.ads[kind+"/"+name] = m
	}
}

func read(conn *cedar.Conn, number int) (Message, error) {
	m := Message{Command: number}
	if number < 0 {
		n, err := conn.Int()
		if err != nil {
			return m, err
		}
		m.Command = int(n)
	}
	if m.Command != command.UpdateStartdAd && m.Command != command.InvalidateStartdAds {
		return m, errs.E("pooltest.Collector", errs.Invalid, "", fmt.Errorf("command %d", m.Command))
	}
	var err error
	if m.Public, err = conn.Ad(cedar.AdOptions{}); err == nil && conn.More() {
		m.Private, err = conn.Ad(cedar.AdOptions{})
	}
	if err == nil {
		err = conn.EndOfMessage()
	}
	return m, err
}

// Refuse has connections refused with err, nil takes them again.
func (c *Collector) Refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
}

// Deafen has new connections taken and never read from.
func (c *Collector) Deafen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = true
}

// Clear has nothing encrypted from the next connection on, or everything again.
func (c *Collector) Clear(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear = on
}

// Restart ends all connections and forgets everything, as a new process would.
func (c *Collector) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		_ = nc.Close()
	}
	c.conns, c.deaf = nil, false
	clear(c.ads)
}

// Names returns the ads it has, as "Machine/slot1@host", sorted.
func (c *Collector) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for k := range c.ads {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// Ad returns what it has under a name as Names has it.
func (c *Collector) Ad(name string) (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.ads[name]
	return m, ok
}

// Messages returns all it was sent, in order.
func (c *Collector) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}

// Tried returns when a connection to it was attempted.
func (c *Collector) Tried() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tried)
}

// At returns the address at which it was tried last.
func (c *Collector) At() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Opened returns the commands that connections were opened for.
func (c *Collector) Opened() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.opened)
}

// Bad returns what it could not read.
func (c *Collector) Bad() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bad)
}

// Collectors opens commands at several collectors, by port.
type Collectors map[int]*Collector

// Command implements directory.Opener.
func (c Collectors) Command(ctx context.Context, to cedar.Sinful, command int, o security.Options) (*cedar.Conn, *security.Session, error) {
	if one, ok := c[to.Port]; ok {
		return one.Command(ctx, to, command, o)
	}
	return nil, nil, errs.E("pooltest.Command", errs.Transient, to.HostPort(), fmt.Errorf("nobody is there"))
}

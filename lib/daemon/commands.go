// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Files is the part of the file system that the log commands see.
type Files interface {
	// Open opens a regular file for reading and tells its size.
	Open(name string) (io.ReadCloser, int64, error)
	// List returns the names of the regular files in dir, in order.
	List(dir string) ([]string, error)
	// Purge removes the regular files in dir last written before cutoff, in
	// Unix seconds.
	Purge(dir string, cutoff int64) error
}

// Answers is what the commands need to know.
type Answers struct {
	Orders *Orders
	// Config returns the configuration in force.
	Config func() *config.Snapshot
	Clock  clock.Clock
	Files  Files
	// Instance is by chance and the same as long as the process lives.
	Instance [8]byte
	// Ready ends when the daemon is ready; nil is from the beginning.
	Ready <-chan struct{}
	// Remote keeps settings that are made over the wire, and Allowed decides
	// whether a peer may act at a level, for which it may have to look names
	// up until ctx ends. Without either every setting is refused.
	Remote  *RemoteConfig
	Allowed func(ctx context.Context, l security.Level, r *security.Request) bool
}

// Commands returns the rows of the table that every daemon has.
func (a *Answers) Commands() []listen.Command {
	order := func(f func()) listen.Handler {
		return func(_ context.Context, c *listen.Call) error {
			if err := c.Conn.EndOfMessage(); err != nil {
				return err
			}
			c.Log.Info("order", "user", c.Request.Peer.User)
			f()
			return nil
		}
	}
	o := a.Orders
	handlers := map[int]listen.Handler{
		command.DCRaiseSignal:   a.raise,
		command.DCReconfig:      order(func() { o.Control.Reconfigure(false) }),
		command.DCReconfigFull:  order(func() { o.Control.Reconfigure(true) }),
		command.DCOffGraceful:   order(o.Terminate),
		command.DCOffFast:       order(o.Quit),
		command.DCOffPeaceful:   order(func() { o.SetPeaceful(true); o.Terminate() }),
		command.DCOffForce:      order(func() { o.SetPeaceful(false); o.Terminate() }),
		command.DCSetPeaceful:   order(func() { o.SetPeaceful(true) }),
		command.DCSetForce:      order(func() { o.SetPeaceful(false) }),
		command.DCConfigVal:     a.configVal,
		command.ConfigVal:       a.oldConfigVal,
		command.DCConfigPersist: a.setConfig,
		command.DCConfigRuntime: a.setConfig,
		command.DCFetchLog:      a.fetchLog,
		command.DCPurgeLog:      a.purgeLog,
		command.DCTimeOffset:    a.timeOffset,
		command.DCQueryInstance: a.queryInstance,
		command.DCQueryReady:    a.queryReady,
	}
	for _, number := range [...]int{
		command.DCNop, command.DCNopRead, command.DCNopWrite, command.DCNopNegotiator, command.DCNopAdministrator, command.DCNopOwner, command.DCNopConfig,
		command.DCNopDaemon, command.DCNopAdvertiseStartd, command.DCNopAdvertiseSchedd, command.DCNopAdvertiseMaster,
	} {
		handlers[number] = nop
	}
	return listen.Answer(command.Startd, handlers)
}

func nop(_ context.Context, c *listen.Call) error { return c.Conn.EndOfMessage() }

func (a *Answers) raise(_ context.Context, c *listen.Call) error {
	n, err := c.Conn.Int()
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if p := c.Request.Peer; p.HoldsClaim() { // who must not end the jobs of all others
		return errs.E("daemon.raise", errs.Denied, p.User, fmt.Errorf("signal %d: the holder of a claim id has no say about the daemon; ask as somebody whom ALLOW_DAEMON names", n))
	}
	c.Log.Info("signal by command", "signal", n, "user", c.Request.Peer.User)
	return a.Orders.Raise(n)
}

func (a *Answers) queryInstance(_ context.Context, c *listen.Call) error {
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	c.Conn.PutBytes([]byte(hex.EncodeToString(a.Instance[:])))
	return c.Conn.EndMessage()
}

// queryReady answers as soon as the daemon is ready.
func (a *Answers) queryReady(ctx context.Context, c *listen.Call) error {
	if c.Conn.More() {
		if _, err := c.Conn.Ad(adOptions); err != nil {
			return err
		}
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if a.Ready != nil {
		select {
		case <-a.Ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.Conn.PutAd(readyAd("Ready"), adOptions)
	return c.Conn.EndMessage()
}

// timeOffset tells how late it is here between two times of the asker's
// clock.
func (a *Answers) timeOffset(_ context.Context, c *listen.Call) error {
	var t [4]int64 // local depart, remote arrive, remote depart, local arrive
	arrived := a.Clock.Now().Wall.Unix()
	for i := range t {
		var err error
		if t[i], err = c.Conn.Int(); err != nil {
			return err
		}
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if t[3] == 0 {
		return errs.E("daemon.timeOffset", errs.Invalid, c.Conn.Peer(), errors.New("the fourth time is 0; HTCondor refuses that, too"))
	}
	t[1], t[2] = arrived, a.Clock.Now().Wall.Unix()
	for _, v := range t {
		c.Conn.PutInt(v)
	}
	return c.Conn.EndMessage()
}

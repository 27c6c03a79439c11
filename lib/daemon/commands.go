// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// The commands that every daemon knows. DC_AUTHENTICATE and DC_SEC_QUERY are
// answered by package security.
const (
	ConfigVal           = 457 // the older name of DCConfigVal
	DCRaiseSignal       = 60000
	DCConfigPersist     = 60002
	DCConfigRuntime     = 60003
	DCReconfig          = 60004
	DCOffGraceful       = 60005
	DCOffFast           = 60006
	DCConfigVal         = 60007
	DCChildAlive        = 60008
	DCNop               = 60011
	DCReconfigFull      = 60012
	DCFetchLog          = 60013
	DCOffPeaceful       = 60015
	DCSetPeaceful       = 60016
	DCTimeOffset        = 60017
	DCPurgeLog          = 60018
	DCNopRead           = 60020
	DCNopWrite          = 60021
	DCNopNegotiator     = 60022
	DCNopAdministrator  = 60023
	DCNopOwner          = 60024
	DCNopConfig         = 60025
	DCNopDaemon         = 60026
	DCNopAdvertiseStart = 60027
	DCNopAdvertiseSched = 60028
	DCNopAdvertiseMast  = 60029
	DCSetForce          = 60041
	DCOffForce          = 60042
	DCSetReady          = 60043
	DCQueryReady        = 60044
	DCQueryInstance     = 60045
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
	// Remote keeps settings that are made from afar, and Allowed decides
	// whether somebody may act at a level, for which it may have to look names
	// up until ctx ends. Without either nobody sets anything.
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
	admin, daemon := security.Administrator, security.Daemon
	rows := []listen.Command{
		{Number: DCRaiseSignal, Name: "DC_RAISESIGNAL", Level: daemon, Datagrams: true, Handle: a.raise},
		{Number: DCReconfig, Name: "DC_RECONFIG", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.Control.Reconfigure(false) })},
		{Number: DCReconfigFull, Name: "DC_RECONFIG_FULL", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.Control.Reconfigure(true) })},
		{Number: DCOffGraceful, Name: "DC_OFF_GRACEFUL", Level: admin, Datagrams: true, Empty: true, Handle: order(o.Terminate)},
		{Number: DCOffFast, Name: "DC_OFF_FAST", Level: admin, Datagrams: true, Empty: true, Handle: order(o.Quit)},
		{Number: DCOffPeaceful, Name: "DC_OFF_PEACEFUL", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.SetPeaceful(true); o.Terminate() })},
		{Number: DCOffForce, Name: "DC_OFF_FORCE", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.SetPeaceful(false); o.Terminate() })},
		{Number: DCSetPeaceful, Name: "DC_SET_PEACEFUL_SHUTDOWN", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.SetPeaceful(true) })},
		{Number: DCSetForce, Name: "DC_SET_FORCE_SHUTDOWN", Level: admin, Datagrams: true, Empty: true, Handle: order(func() { o.SetPeaceful(false) })},
		{Number: DCConfigVal, Name: "DC_CONFIG_VAL", Level: security.Read, Handle: a.configVal},
		{Number: ConfigVal, Name: "CONFIG_VAL", Level: security.Read, Handle: a.oldConfigVal},
		{Number: DCConfigPersist, Name: "DC_CONFIG_PERSIST", Level: daemon, Alternatives: []security.Level{security.Allow}, Handle: a.setConfig},
		{Number: DCConfigRuntime, Name: "DC_CONFIG_RUNTIME", Level: daemon, Alternatives: []security.Level{security.Allow}, Handle: a.setConfig},
		{Number: DCFetchLog, Name: "DC_FETCH_LOG", Level: admin, Handle: a.fetchLog},
		{Number: DCPurgeLog, Name: "DC_PURGE_LOG", Level: admin, Handle: a.purgeLog},
		{Number: DCTimeOffset, Name: "DC_TIME_OFFSET", Level: daemon, Handle: a.timeOffset},
		{Number: DCQueryInstance, Name: "DC_QUERY_INSTANCE", Level: security.Allow, Handle: a.queryInstance},
		{Number: DCQueryReady, Name: "DC_QUERY_READY", Level: security.Read, Handle: a.queryReady},
	}
	for _, n := range []listen.Command{
		{Number: DCNop, Name: "DC_NOP", Level: security.Allow},
		{Number: DCNopRead, Name: "DC_NOP_READ", Level: security.Read},
		{Number: DCNopWrite, Name: "DC_NOP_WRITE", Level: security.Write},
		{Number: DCNopNegotiator, Name: "DC_NOP_NEGOTIATOR", Level: security.Negotiator},
		{Number: DCNopAdministrator, Name: "DC_NOP_ADMINISTRATOR", Level: admin},
		{Number: DCNopOwner, Name: "DC_NOP_OWNER", Level: admin},
		{Number: DCNopConfig, Name: "DC_NOP_CONFIG", Level: security.Config},
		{Number: DCNopDaemon, Name: "DC_NOP_DAEMON", Level: daemon},
		{Number: DCNopAdvertiseStart, Name: "DC_NOP_ADVERTISE_STARTD", Level: security.AdvertiseStartd},
		{Number: DCNopAdvertiseSched, Name: "DC_NOP_ADVERTISE_SCHEDD", Level: security.AdvertiseSchedd},
		{Number: DCNopAdvertiseMast, Name: "DC_NOP_ADVERTISE_MASTER", Level: security.AdvertiseMaster},
	} {
		n.Handle, n.Datagrams, n.Empty = nop, true, true
		rows = append(rows, n)
	}
	return rows
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
		return errs.E("daemon.timeOffset", errs.Invalid, c.Conn.Peer(), errors.New("the fourth time is 0; the original refuses that, too"))
	}
	t[1], t[2] = arrived, a.Clock.Now().Wall.Unix()
	for _, v := range t {
		c.Conn.PutInt(v)
	}
	return c.Conn.EndMessage()
}

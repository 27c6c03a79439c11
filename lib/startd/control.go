// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
)

// controlNames is how long names of hosts may be looked up for one question.
const controlNames = 5 * time.Second

// openControl opens the control socket, at which condor_ep asks, and leaves word
// where it is. Without it the daemon serves the pool all the same.
func (d *daemonState) openControl(self host.ProcID) net.Listener {
	set, _ := observe.LogSettingsFrom(d.conf.atStart, subsystem) // was read before
	record := run.Daemon{Proc: self, Config: d.root()}
	if !set.Syslog {
		record.Log = logPath(d.conf.atStart, set)
	}
	if o, err := history.OptionsFrom(d.conf.atStart); err == nil {
		record.History = o.Path
	}
	path, err := run.ControlPath(d.conf.atStart, ad.DaemonName(d.conf.atStart.String("STARTD_NAME"), d.found.inventory.FullHostname))
	var l net.Listener
	if err == nil {
		l, err = d.o.Platform.ListenControl(path)
	}
	if err != nil {
		d.log.Warn("no control socket; condor_ep sees this daemon only with -name", "err", err)
	} else {
		record.Socket = path
		d.log.Info("control socket", "path", path)
	}
	base, err := d.o.Platform.RunBase()
	if err == nil {
		err = record.Record(d.o.Platform.Private(), base)
	}
	if err != nil {
		d.log.Info("no record for condor_ep; with -config it finds this daemon", "err", err)
	}
	return l
}

// mayAsk says why who asks at the control socket may not ask that. Root and the
// user of the daemon may ask everything, for they can do with it what they like
// anyway. Another user is one that has proven its name by FS, which is asked of
// the kernel here: what ALLOW_READ and ALLOW_ADMINISTRATOR say of that user from
// this machine holds.
func (d *daemonState) mayAsk(r observe.Request) error {
	if r.Ours {
		return nil
	}
	level := controlLevel(r.Op)
	domain := d.now().String("UID_DOMAIN")
	if domain == "" {
		domain = d.found.inventory.FullHostname
	}
	who := security.Request{Peer: security.Peer{User: security.Unauthenticated}, Addr: netip.AddrPortFrom(netip.IPv6Loopback(), 0)}
	methods := d.wire.server.Settings().Policy(level).Methods
	if r.By != "" && !strings.ContainsAny(r.By, " @") && slices.Contains(methods, authn.FS) { // a user without a name has none here
		who.Peer = security.Peer{User: r.By + "@" + domain, Method: "FS", Name: r.By}
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlNames)
	defer cancel()
	// Over the wire the user could come from each of these.
	for _, at := range [...]netip.Addr{netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1}), d.ownAddress()} {
		who.Addr = netip.AddrPortFrom(at, 0)
		if at.IsValid() && d.mayAct(ctx, level, &who) {
			return nil
		}
	}
	return fmt.Errorf("%s has not the level %v here, which %s needs (ALLOW_%v); root and the user of the daemon have it", who.Peer.User, level, r.Op, level)
}

// ownAddress is the address that others know this machine by.
func (d *daemonState) ownAddress() netip.Addr {
	at, _ := netip.ParseAddr(d.self().Host)
	return at
}

// controlLevel is the level that a question needs: that of the command that asks
// the same over the wire.
func controlLevel(op string) security.Level {
	number, _ := observe.CommandOf(op)
	row, _ := command.Startd.Row(number)
	return row.Level
}

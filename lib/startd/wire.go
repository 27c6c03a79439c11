// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// secure makes both sides of security and what they share.
func (d *daemonState) secure(ctx context.Context) error {
	d.wire.sessions = security.NewSessions(d.clock, 0)
	network, err := endpoint.NetworkFrom(d.conf.atStart, subsystem)
	if err != nil {
		return err
	}
	source, err := network.Outgoing()
	if err != nil {
		return err
	}
	d.wire.endpoint = endpoint.New(endpoint.Config{
		Subsystem: subsystem, Version: d.version, PID: d.o.PID, Network: network, Source: source, Reuse: d.o.Platform.Reuse(),
		Name: d.name, Address: d.address, Public: d.self, Brokers: func() (*security.Client, error) { return d.wire.client, nil },
		Clock: d.clock, Log: d.log,
	})
	ids := d.ids(d.conf.atStart)
	kin, err := d.o.Platform.Kin(ids)
	if err != nil {
		return err
	}
	if d.wire.readShown, err = d.o.Platform.ReadShown(ids); err != nil {
		return err
	}
	d.wire.client = d.wire.endpoint.Client(d.wire.sessions)
	d.wire.client.Post, d.wire.client.ParentID = d.wire.endpoint.Dialer.Post, d.env(daemon.ParentVariable)
	d.wire.client.Local, d.wire.client.Kin = endpoint.Local, kin // for the session of the family
	d.wire.server = d.wire.endpoint.Server(d.found.inventory.Hostname, d.wire.sessions)
	d.wire.listener = &listen.Server{Security: d.wire.server, Datagrams: d.wire.server, Log: d.log}
	var tag [2]byte
	_, _ = rand.Read(tag[:]) // never fails
	file := daemon.AddressFile{
		Path: d.conf.atStart.String("STARTD_ADDRESS_FILE"), Version: d.version,
		Platform: fmt.Sprintf("$CondorPlatform: %s-%s $", d.found.inventory.Arch, d.found.inventory.OpSysAndVer),
	}
	super := file
	super.Path = d.conf.atStart.String("STARTD_SUPER_ADDRESS_FILE")
	d.wire.commandPort = &daemon.CommandPort{
		Network: network, Inherit: d.parent.inherit, Subsystem: subsystem, PID: d.o.PID, Tag: binary.BigEndian.Uint16(tag[:]), Port: d.o.Port,
		Server: d.wire.listener, Broker: d.broker, Dial: d.wire.endpoint.Dialer.Dial,
		Machine: daemon.Machine{
			Named: d.o.Platform.Named(d.env(daemon.CookieVariable), network.SocketDir), Interfaces: endpoint.Interfaces, Resolve: endpoint.Resolve, ReadFile: os.ReadFile,
		},
		File: file, Super: super,
		Changed: d.addressChanged, Log: d.log,
	}
	if k := d.parent.inherit.Family; k != nil {
		if _, err := d.wire.sessions.AddFamily(*k); err != nil {
			return err
		}
	}
	if k := d.parent.inherit.Parent; k != nil {
		if _, err := d.wire.sessions.AddParent(*k, d.parent.inherit.ParentAddress); err != nil {
			return err
		}
	}
	set, err := d.firstSecurity(ctx)
	if err != nil {
		return err
	}
	d.secureBy(set)
	return nil
}

// firstSecurity is securityFrom at the start. A machine that comes up before its
// server of names waits for each name in turn.
func (d *daemonState) firstSecurity(ctx context.Context) (set secured, err error) {
	err = d.during("the names of the hosts that ALLOW_<level> and DENY_<level> let in or keep out", func() error {
		if set, err = d.securityFrom(ctx, d.conf.atStart); err == nil {
			err = ctx.Err()
		}
		return err
	})
	return set, err
}

// ids are those of the account of HTCondor's daemons.
func (d *daemonState) ids(s *config.Snapshot) string {
	return cmp.Or(d.env("CONDOR_IDS"), s.String("CONDOR_IDS"))
}

// family is the session that condor_master handed down to its daemons, for
// starters. They answer those daemons as we do: a schedd that wants to let the
// owner of a job in comes with this session, and takes a refusal for the end of
// it. "" where there is none, or SEC_USE_FAMILY_SESSION is false.
func (d *daemonState) family() claim.Secret {
	if s := d.wire.client.Settings(); d.parent.inherit.Family == nil || s == nil || !s.FamilySession {
		return ""
	}
	return claim.Secret(d.parent.inherit.Family.Reveal())
}

// broker opens a connection to an entry of CCB_ADDRESS, to register with it.
func (d *daemonState) broker(ctx context.Context, address string) (*cedar.Conn, error) {
	port, err := d.now().Int("COLLECTOR_PORT")
	if err != nil {
		return nil, err
	}
	to, err := directory.ParseCollector(address, int(port))
	if err == nil {
		to, err = d.pool.FindCollector(to)
	}
	if err != nil {
		return nil, err
	}
	return d.wire.endpoint.Register(ctx, to)
}

func (d *daemonState) self() cedar.Sinful {
	at, _ := d.wire.commandPort.Public()
	return at
}

// address is where a daemon on this machine reaches us.
func (d *daemonState) address() string { return d.wire.commandPort.Local().String() }

func (d *daemonState) name() string { return d.wire.commandPort.Name() }

func (d *daemonState) addressChanged(cedar.Sinful) {
	select {
	case d.wire.moved <- struct{}{}:
	default: // whoever waits will look anyway
	}
}

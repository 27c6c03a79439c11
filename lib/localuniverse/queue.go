// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/jobqueue"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Queue is the job queue of the schedd that started us, written with the session that
// it handed down.
type Queue struct {
	Config  *config.Snapshot // as a starter reads it
	Env     func(name string) string
	Version string // our $CondorVersion
	System  authn.System
	// Kin is security.Client's, for the session of the daemons' family.
	Kin   func(net.Addr) bool
	Reuse func(*net.Dialer) (lingers func(error) bool)
	// Named makes the named socket by which a shared port hands on connections, or takes
	// over the one that the schedd made.
	Named func(cookie, dir string) func(id string, inherited *daemon.NamedSocket) (listen.NamedSocket, error)
	Log   *slog.Logger

	client   *security.Client
	schedd   cedar.Sinful
	network  endpoint.Network
	inherit  daemon.Inherit
	sessions *security.Sessions
	settings *security.Settings
	at       *endpoint.Endpoint
}

// Open prepares to speak with the schedd there.
func (q *Queue) Open(ctx context.Context, schedd cedar.Sinful) error {
	in, err := daemon.ParseInherit(q.Env(daemon.InheritVariable), q.Env(daemon.PrivateInheritVariable))
	if err != nil {
		return err
	}
	network, err := endpoint.NetworkFrom(q.Config, protocol.Subsystem)
	if err != nil {
		return err
	}
	source, err := network.Outgoing()
	if err != nil {
		return err
	}
	at := endpoint.New(endpoint.Config{Subsystem: protocol.Subsystem, Version: q.Version, Network: network, Source: source, Reuse: q.Reuse, Log: q.Log})
	sessions := security.NewSessions(at.Clock, 0)
	if in.Family != nil {
		if _, err := sessions.AddFamily(*in.Family); err != nil {
			return err
		}
	}
	if in.Parent != nil {
		if _, err := sessions.AddParent(*in.Parent, in.ParentAddress); err != nil {
			return err
		}
	}
	settings, err := security.SettingsFrom(q.Config, at.Sources(ctx))
	methods, err2 := authn.SettingsFrom(q.Config, protocol.Subsystem)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("security: %w", err)
	}
	q.network, q.inherit, q.sessions, q.settings, q.at = network, in, sessions, settings, at
	q.schedd, q.client = schedd, at.Client(sessions)
	q.client.ParentID, q.client.Local, q.client.Kin = q.Env(daemon.ParentVariable), endpoint.Local, q.Kin
	q.client.Configure(settings, &authn.Client{Settings: methods, System: q.System})
	return nil
}

// Update is Config.Update.
func (q *Queue) Update(ctx context.Context, user string, id jobqueue.ID, attrs *classad.Ad) error {
	return q.visit(ctx, func(conn *cedar.Conn) error { return jobqueue.Update(conn, user, id, attrs) })
}

// Status is Config.Status.
func (q *Queue) Status(ctx context.Context, id jobqueue.ID) (status int64, err error) {
	err = q.visit(ctx, func(conn *cedar.Conn) (err error) {
		status, err = jobqueue.Int(conn, id, "JobStatus")
		return err
	})
	return status, err
}

// visit opens a connection to the queue for one question.
func (q *Queue) visit(ctx context.Context, ask func(conn *cedar.Conn) error) error {
	conn, _, err := q.client.Command(ctx, q.schedd, command.QmgmtWrite, security.Options{Authenticate: true})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // all was answered, or failed
	defer conn.Bind(ctx)()
	return ask(conn)
}

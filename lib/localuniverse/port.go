// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The numbers that DC_RAISESIGNAL uses. A schedd sends those above Unix's by this
// command alone: when a job is vacated, and when it goes down itself.
const (
	signalQuit     = 3
	signalUser     = 10
	signalTerm     = 15
	signalSoftKill = 102 // DC_SIGSOFTKILL
	signalHardKill = 103 // DC_SIGHARDKILL
)

// signalOf is what a number means; 0 is nothing.
func signalOf(number int64) Signal {
	switch number {
	case signalUser:
		return Leave
	case signalTerm, signalSoftKill:
		return Vacate
	case signalQuit, signalHardKill:
		return VacateNow
	}
	return 0
}

// Port is where the schedd sends signals that are none of Unix's.
type Port struct {
	port *daemon.CommandPort
}

// Port opens the command port that the schedd has made for us, or one of our own. It
// takes signals, which go to to, from who has the session that the schedd handed down,
// or that of the daemons of this machine: nobody else comes in.
func (q *Queue) Port(ctx context.Context, pid int, to chan<- Signal) (*Port, error) {
	p := new(Port)
	server := q.at.Server(q.network.Alias, q.sessions)
	server.Configure(&security.Settings{
		Authorizer: &security.Authorizer{}, StepTimeout: 20 * time.Second, Deadline: 2 * time.Minute,
		FamilySession: q.settings.FamilySession, ResumeResponse: true,
	}, nil)
	row, _ := command.Starter.Row(command.DCRaiseSignal)
	row.Datagrams = true // where there is no shared port the schedd sends them so
	table, err := listen.NewTable(listen.Command{Row: row, Handle: func(ctx context.Context, c *listen.Call) error {
		number, err := c.Conn.Int()
		if err == nil {
			err = c.Conn.EndOfMessage()
		}
		if err != nil {
			return err
		}
		sig := signalOf(number)
		if sig == 0 {
			return errs.E("localuniverse.raise", errs.Unsupported, fmt.Sprintf("signal %d", number), fmt.Errorf("a starter without a startd heeds 3, 10, 15, 102 and 103"))
		}
		c.Log.Info("signal by command", "signal", number, "user", c.Request.Peer.User)
		select {
		case to <- sig:
		case <-ctx.Done():
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	server.Commands = table.Security()
	var tag [2]byte
	_, _ = rand.Read(tag[:]) // never fails
	m := daemon.Machine{
		Named: q.Named(q.Env(daemon.CookieVariable), q.network.SocketDir), Interfaces: endpoint.Interfaces, Resolve: endpoint.Resolve, ReadFile: os.ReadFile,
	}
	p.port = &daemon.CommandPort{
		Network: q.network, Inherit: q.inherit, Subsystem: protocol.Subsystem, PID: pid, Tag: binary.BigEndian.Uint16(tag[:]),
		Server: &listen.Server{Security: server, Datagrams: server, Table: table, Log: q.Log}, Dial: q.at.Dialer.Dial, Machine: m, Log: q.Log,
	}
	if err := p.port.Open(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Address is where we are reached.
func (p *Port) Address() string {
	if public, ok := p.port.Public(); ok {
		return public.String()
	}
	return p.port.Local().String()
}

// Serve serves until ctx ends.
func (p *Port) Serve(ctx context.Context) error { return p.port.Serve(ctx) }

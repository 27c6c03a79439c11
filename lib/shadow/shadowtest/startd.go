// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// Startd is the schedd's and the shadow's way to a startd: each command on a
// connection of its own, under the session of its claim. It is safe for
// concurrent use.
type Startd struct {
	client  *security.Client
	address cedar.Sinful
	schedd  string
}

// NewStartd returns the way to the startd at an address. schedd is the address
// that it gets as the schedd's. dial nil connects over TCP; log may be nil.
func NewStartd(address, schedd string, dial security.Dialer, log *slog.Logger) (*Startd, error) {
	to, err := cedar.ParseSinful(address)
	if err != nil {
		return nil, err
	}
	set, err := settings("SCHEDD")
	if err != nil {
		return nil, err
	}
	if dial == nil {
		d := &listen.Dialer{Name: func() string { return "SCHEDD " + schedd }}
		dial = d.Dial
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &security.Client{
		Sessions: security.NewSessions(clock.System(), 0), Clock: clock.System(), Dial: dial, Log: log,
		Version: Version, Subsystem: "SCHEDD", PID: os.Getpid(), Address: func() string { return schedd },
	}
	c.Configure(set, noMethods{})
	return &Startd{client: c, address: to, schedd: schedd}, nil
}

// command opens a command under the session of a claim.
func (d *Startd) command(ctx context.Context, to cedar.Sinful, number int, id claim.ID) (*cedar.Conn, error) {
	if _, known := d.client.Sessions.Get(id.Public); !known {
		// Another goroutine may have been faster: the session is there then.
		if _, err := d.client.Sessions.AddExecuteSide(id, d.address.String()); err != nil {
			if _, known := d.client.Sessions.Get(id.Public); !known {
				return nil, err
			}
		}
	}
	conn, _, err := d.client.Command(ctx, to, number, security.Options{Session: id.Public})
	return conn, err
}

// tell sends a claim id and returns the ad that comes back.
func (d *Startd) tell(ctx context.Context, number int, id claim.ID) (*classad.Ad, error) {
	conn, err := d.command(ctx, d.address, number, id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	conn.PutSecret(claim.Secret(id.Wire()))
	if err := conn.EndMessage(); err != nil || number == command.ReleaseClaim {
		return nil, err
	}
	return endAd(conn)
}

func endAd(conn *cedar.Conn) (*classad.Ad, error) {
	ad, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	return ad, err
}

// Grant is what a request for a claim brought.
type Grant struct {
	Claims []claim.ID // those to be activated
	Slots  []*classad.Ad
	Rest   claim.ID // of what is left of a partitionable slot; zero if nothing is
	RestAd *classad.Ad
}

// ErrRefused is in the error of a request or an activation that was refused.
var ErrRefused = errors.New("the startd refused")

// ErrBusy is in the error of an activation that is to be tried again.
var ErrBusy = errors.New("the startd is not ready")

// Request asks for a claim, as a schedd does. With leftovers it takes what is
// left of a partitionable slot as another claim.
func (d *Startd) Request(ctx context.Context, id claim.ID, job *classad.Ad, leftovers bool) (Grant, error) {
	conn, err := d.command(ctx, d.address, command.RequestClaim, id)
	if err != nil {
		return Grant{}, err
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	ad := job.Clone()
	ad.SetBool("_condor_SECURE_CLAIM_ID", true)
	ad.SetBool("_condor_SEND_CLAIMED_AD", true)
	ad.SetBool("_condor_SEND_LEFTOVERS", leftovers)
	conn.PutSecret(claim.Secret(id.Wire()))
	conn.PutAd(ad, cedar.AdOptions{})
	conn.PutString(d.schedd)
	conn.PutInt(aliveInterval)
	conn.PutInt(0)
	if err := conn.EndMessage(); err != nil {
		return Grant{}, err
	}
	g, err := readGrant(conn)
	if err == nil && len(g.Claims) == 0 { // nothing said otherwise: the id that was asked for
		g.Claims = []claim.ID{id}
	}
	return g, err
}

// aliveInterval is the interval of alive messages that a request promises, in
// seconds.
const aliveInterval = 300

// readGrant reads the parts of the answer to REQUEST_CLAIM.
func readGrant(conn *cedar.Conn) (g Grant, err error) {
	for {
		code, err := conn.Int()
		if err != nil {
			return g, err
		}
		switch code {
		case 0:
			return g, errors.Join(ErrRefused, conn.EndOfMessage())
		case 1:
			return g, conn.EndOfMessage()
		case 3, 5:
			if g.Rest, g.RestAd, err = readClaim(conn); err != nil {
				return g, err
			}
			return g, conn.EndOfMessage()
		case 7:
			id, ad, err := readClaim(conn)
			if err != nil {
				return g, err
			}
			g.Claims, g.Slots = append(g.Claims, id), append(g.Slots, ad)
		default:
			return g, fmt.Errorf("REQUEST_CLAIM was answered %d", code)
		}
	}
}

func readClaim(conn *cedar.Conn) (claim.ID, *classad.Ad, error) {
	text, err := conn.Secret()
	if err != nil {
		return claim.ID{}, nil, err
	}
	id, err := claim.ParseID(text.Reveal())
	if err != nil {
		return claim.ID{}, nil, err
	}
	ad, err := conn.Ad(cedar.AdOptions{})
	return id, ad, err
}

// Activate starts a job under a claim, as a shadow does, and returns the
// connection on which the starter calls. The error has ErrBusy or ErrRefused
// if the startd said no, with its reason.
func (d *Startd) Activate(ctx context.Context, id claim.ID, job *classad.Ad) (*cedar.Conn, error) {
	conn, err := d.command(ctx, d.address, command.ActivateClaim, id)
	if err != nil {
		return nil, err
	}
	if err := activate(ctx, conn, id, job); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func activate(ctx context.Context, conn *cedar.Conn, id claim.ID, job *classad.Ad) error {
	defer conn.Bind(ctx)()
	ad := job.Clone()
	ad.SetBool("_condor_send_activation_failure_ad", true)
	conn.PutSecret(claim.Secret(id.Wire()))
	conn.PutInt(2)
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	code, err := conn.IntIn(0, 2)
	if err != nil {
		return err
	}
	if code == 1 {
		return conn.EndOfMessage()
	}
	said, why := ErrRefused, "it says nothing"
	if code == 2 {
		said = ErrBusy
	}
	if conn.More() {
		ad, err := endAd(conn)
		if err != nil {
			return err
		}
		why, _ = ad.EvalString("VacateReason", nil)
	}
	return fmt.Errorf("%w: %s", said, why)
}

// Deactivate ends the activation of a claim by one of the commands for that,
// and returns the answer.
func (d *Startd) Deactivate(ctx context.Context, command int, id claim.ID) (*classad.Ad, error) {
	return d.tell(ctx, command, id)
}

// Release gives a claim back.
func (d *Startd) Release(ctx context.Context, id claim.ID) error {
	_, err := d.tell(ctx, command.ReleaseClaim, id)
	return err
}

// Locate asks the startd where the starter of a job is.
func (d *Startd) Locate(ctx context.Context, id claim.ID, globalJobID string) (string, error) {
	ad := classad.NewAd()
	ad.SetString("Command", "CA_LOCATE_STARTER")
	ad.SetString("ClaimId", id.Wire())
	ad.SetString("GlobalJobId", globalJobID)
	ad.SetString("ScheddIpAddr", d.schedd)
	conn, reply, err := d.ca(ctx, d.address, id, ad)
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	address, ok := reply.EvalString("StarterIpAddr", nil)
	if !ok {
		return "", errors.New("shadowtest: CA_LOCATE_STARTER was answered without StarterIpAddr")
	}
	return address, nil
}

// ca gives a command in an ad; the connection stays open.
func (d *Startd) ca(ctx context.Context, to cedar.Sinful, id claim.ID, ad *classad.Ad) (*cedar.Conn, *classad.Ad, error) {
	ad.SetString("MyType", "Command")
	ad.SetString("TargetType", "Reply")
	conn, err := d.command(ctx, to, command.CACmd, id)
	if err != nil {
		return nil, nil, err
	}
	reply, err := caReply(ctx, conn, ad)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, reply, nil
}

func caReply(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) (*classad.Ad, error) {
	defer conn.Bind(ctx)()
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	reply, err := endAd(conn)
	if err != nil {
		return nil, err
	}
	if result, _ := reply.EvalString("Result", nil); result != "Success" {
		why, _ := reply.EvalString("ErrorString", nil)
		return nil, fmt.Errorf("%w: %s %s", ErrRefused, result, why)
	}
	return reply, nil
}

// Reconnect takes the job up again, as a shadow that lost its starter or was
// started anew does: it asks the startd where the starter is and goes there.
// The connection is the one to Serve next.
func (s *Shadow) Reconnect(ctx context.Context, d *Startd) (*cedar.Conn, error) {
	s.mu.Lock()
	ad := s.job.Ad.Clone()
	s.mu.Unlock()
	global, _ := ad.EvalString("GlobalJobId", nil)
	address, err := d.Locate(ctx, s.job.Claim, global)
	if err != nil {
		return nil, err
	}
	return s.ReconnectAt(ctx, d, address)
}

// ReconnectAt is Reconnect to a starter whose address is known.
func (s *Shadow) ReconnectAt(ctx context.Context, d *Startd, address string) (*cedar.Conn, error) {
	to, err := cedar.ParseSinful(address)
	if err != nil {
		return nil, err
	}
	conn, reply, err := d.ca(ctx, to, s.job.Claim, s.ReconnectAd())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.starter = reply
	s.mu.Unlock()
	return conn, nil
}

// SendProxy delegates the job's proxy to its starter at address, and returns what is
// answered.
func (s *Shadow) SendProxy(ctx context.Context, d *Startd, address string) (int64, error) {
	to, err := cedar.ParseSinful(address)
	if err != nil {
		return -1, err
	}
	conn, err := d.command(ctx, to, command.DelegateGSICredStarter, s.job.Claim)
	if err != nil {
		return -1, err
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	if err := s.job.Proxy.Send(conn); err != nil {
		return -1, err
	}
	n, err := conn.Int()
	if err == nil {
		err = conn.EndOfMessage()
	}
	return n, err
}

// ReconnectAd is what a shadow that comes back tells the starter.
func (s *Shadow) ReconnectAd() *classad.Ad {
	s.mu.Lock()
	defer s.mu.Unlock()
	ad := classad.NewAd()
	ad.SetString("Command", "CA_RECONNECT_JOB")
	ad.SetString("MyType", "Command")
	ad.SetString("TargetType", "Reply")
	for _, name := range []string{"UidDomain", "TransferKey", "ShadowIpAddr", "ShadowVersion", "TransferSocket"} {
		if text, ok := s.job.Ad.EvalString(name, nil); ok {
			ad.SetString(name, text)
		}
	}
	return ad
}

// between is how long RunJob waits before it tries an activation again.
const between = 5 * time.Millisecond

// RunJob runs the shadow's job under its claim, from activation to the answer
// to DEACTIVATE_CLAIM_JOB_DONE; the claim remains. An activation that is to be
// tried again is, until ctx ends. A connection that broke before the job was
// over is returned as an End without Exit and Held.
func (d *Startd) RunJob(ctx context.Context, s *Shadow) (End, error) {
	s.mu.Lock()
	ad := s.job.Ad.Clone()
	s.mu.Unlock()
	conn, err := d.Activate(ctx, s.job.Claim, ad)
	for errors.Is(err, ErrBusy) {
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return End{}, context.Cause(ctx)
		}
		conn, err = d.Activate(ctx, s.job.Claim, ad)
	}
	if err != nil {
		return End{}, err
	}
	defer func() { _ = conn.Close() }()
	end, err := s.Serve(ctx, conn)
	if err != nil || end.Exit == nil && end.Held == nil {
		return end, err
	}
	_, err = d.Deactivate(ctx, command.DeactivateClaimJobDone, s.job.Claim)
	return end, err
}

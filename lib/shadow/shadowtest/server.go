// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/transfer"
)

// trusting lets everybody do everything who has a session: the sessions here
// are those of claims.
const trusting = `
COLLECTOR_HOST =
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_CLIENT = *
`

func settings(subsystem string) (*security.Settings, error) {
	snap, err := config.Parse("shadowtest", trusting, config.Options{})
	if err != nil {
		return nil, err
	}
	return security.SettingsFrom(snap, security.Sources{Subsystem: subsystem})
}

// noMethods knows no way to authenticate.
type noMethods struct{}

func (noMethods) Authenticate(context.Context, *cedar.Conn, authn.Peer, []authn.Method) (authn.Result, error) {
	return authn.Result{}, errors.New("shadowtest: only sessions of claims are known")
}
func (noMethods) Offer([]authn.Method) []authn.Method { return nil }
func (noMethods) IssuerKeys() ([]string, error)       { return nil, nil }

// Files are what a shadow moves over second connections.
type Files struct {
	// In is sent to the starter, from From, the root of the job if that is
	// nil.
	In   transfer.SendPlan
	From *os.Root
	// Into is where output goes, the root of the job if it is nil; Rename
	// says where in it, as the remaps of a job do.
	Into   *os.Root
	Rename func(name string) string
	// Spoil, if not nil, takes a connection over in place of the transfer,
	// after the TransferKey was right.
	Spoil func(conn *cedar.Conn, command int) error
}

// Transfer is one transfer that was made.
type Transfer struct {
	Command int
	Stats   transfer.Stats
	Err     error
}

// Server is where starters come for files: the command socket of any number of
// shadows.
type Server struct {
	server   *listen.Server
	sessions *security.Sessions
	address  string

	mu      sync.Mutex
	shadows map[string]*Shadow // by TransferKey
}

// NewServer makes a server that is reached at an address; Serve or ServeConn
// runs it. log may be nil.
func NewServer(address string, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	set, err := settings("SHADOW")
	if err != nil {
		return nil, err
	}
	s := &Server{address: address, sessions: security.NewSessions(clock.System(), 0), shadows: make(map[string]*Shadow)}
	table, err := listen.NewTable(
		listen.Command{Row: command.Row{Number: command.CreddGetCred, Name: command.Name(command.CreddGetCred), Terms: command.Terms{Level: security.Daemon}}, Handle: s.userCred},
		listen.Command{Row: command.Row{Number: command.FiletransUpload, Name: command.Name(command.FiletransUpload), Terms: command.Terms{Level: security.Write}}, Handle: s.handle},
		listen.Command{Row: command.Row{Number: command.FiletransDownload, Name: command.Name(command.FiletransDownload), Terms: command.Terms{Level: security.Write}}, Handle: s.handle},
	)
	if err != nil {
		return nil, err
	}
	server := &security.Server{
		Commands: table.Security(), Sessions: s.sessions, Clock: clock.System(), Log: log, Version: Version, Host: "shadow", PID: os.Getpid(),
	}
	server.Configure(set, noMethods{})
	s.server = &listen.Server{Table: table, Security: server, Log: log, Limits: listen.Limits{PerPeer: 4096}}
	return s, nil
}

// Listen makes a server on a port of the loopback interface and serves until
// ctx ends.
func Listen(ctx context.Context, log *slog.Logger) (*Server, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s, err := NewServer("<"+ln.Addr().String()+">", log)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	go func() { _ = s.server.Serve(ctx, ln) }()
	return s, nil
}

// ServeConn serves one connection, until ctx ends.
func (v *Server) ServeConn(ctx context.Context, nc net.Conn) { v.server.ServeConn(ctx, nc) }

// Address is the server's sinful.
func (v *Server) Address() string { return v.address }

// Add has the server move the files of a shadow, and puts into the job's ad
// what its starter needs for that: TransferKey, TransferSocket, ShadowIpAddr
// and ShadowVersion. A shadow that is added again gets another key.
func (v *Server) Add(s *Shadow, f Files) error {
	reconnect, session, err := s.shared()
	if err != nil {
		return err
	}
	for _, session := range []shadow.Session{reconnect, session} {
		// The id may be that of an earlier job of the same claim.
		v.sessions.Forget(session.ID)
		if err := v.sessions.Add(&security.Session{
			ID: session.ID, Key: security.DeriveKey([]byte(session.Key.Reveal())),
			Peer: security.Peer{User: security.ExecuteSide, Method: security.MethodMatch}, PeerVersion: Version,
		}, 0); err != nil {
			return err
		}
	}
	key := "1#" + rand.Text()
	s.mu.Lock()
	old := s.transferKey
	s.transferKey, s.transfers = key, f
	ad := s.job.Ad
	ad.SetString("TransferKey", key)
	ad.SetString("TransferSocket", v.address)
	ad.SetString("ShadowIpAddr", v.address)
	ad.SetString("ShadowVersion", s.job.Version)
	s.mu.Unlock()
	v.mu.Lock()
	delete(v.shadows, old)
	v.shadows[key] = s
	v.mu.Unlock()
	return nil
}

// Remove forgets a shadow: its key is wrong from then on.
func (v *Server) Remove(s *Shadow) {
	s.mu.Lock()
	key := s.transferKey
	s.mu.Unlock()
	v.mu.Lock()
	delete(v.shadows, key)
	v.mu.Unlock()
}

// userCred tells what the machine of a shadow has of a user, and closes the connection
// where that is nothing.
func (v *Server) userCred(_ context.Context, c *listen.Call) error {
	user, err := c.Conn.String()
	if err == nil {
		_, err = c.Conn.String() // domain
	}
	if err == nil {
		_, err = c.Conn.Int() // kind
	}
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.shadows {
		if data, ok := s.job.Kerberos[user]; ok && c.Request.Session.ID == s.job.Claim.Public {
			c.Conn.PutInt(int64(len(data)))
			c.Conn.PutBytes([]byte(data))
			return c.Conn.EndMessage()
		}
	}
	return errors.New("shadowtest: no credential of this user")
}

// handle serves one transfer.
func (v *Server) handle(ctx context.Context, c *listen.Call) error {
	key, err := c.Conn.Secret()
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	s := v.shadows[key.Reveal()]
	v.mu.Unlock()
	if s == nil {
		c.Conn.PutInt(0)
		return errors.Join(c.Conn.EndMessage(), errors.New("the TransferKey is invalid"))
	}
	return s.move(ctx, c.Conn, c.Command.Number)
}

// move moves the files of the job, one way.
func (s *Shadow) move(ctx context.Context, conn *cedar.Conn, number int) error {
	s.mu.Lock()
	f, version := s.transfers, ""
	if s.starter != nil {
		version, _ = s.starter.EvalString("CondorVersion", nil)
	}
	s.mu.Unlock()
	if f.From == nil {
		f.From = s.job.Root
	}
	if f.Into == nil {
		f.Into = s.job.Root
	}
	side := transfer.Side{Conn: conn, PeerVersion: version, Name: "SHADOW"}
	var done Transfer
	switch {
	case f.Spoil != nil:
		done.Err = f.Spoil(conn, number)
	case number == command.FiletransUpload:
		done.Stats, done.Err = transfer.Send(ctx, side, f.From, f.In, transfer.SendOptions{})
	case f.Into == nil:
		done.Err = fmt.Errorf("there is nowhere for output to go")
	default:
		done.Stats, done.Err = transfer.Receive(ctx, side, f.Into, transfer.ReceiveOptions{Rename: f.Rename})
	}
	done.Command = number
	s.mu.Lock()
	s.moved = append(s.moved, done)
	way, dir := "Input", "In"
	if number == command.FiletransDownload {
		way, dir = "Output", "Out"
	}
	starts, _ := s.job.Ad.EvalInt("Num"+way+"TransferStarts", nil)
	s.job.Ad.SetInt("Num"+way+"TransferStarts", starts+1)
	s.job.Ad.SetInt("Transfer"+dir+"Finished", time.Now().Unix())
	s.job.Ad.SetBool("Transferring"+way, false) // the child was reaped
	close(s.grew)
	s.grew = make(chan struct{})
	s.mu.Unlock()
	return done.Err
}

// WaitTransfers returns the transfers once there were n of them. One is noted
// when the shadow is done with it, which may be after the starter is.
func (s *Shadow) WaitTransfers(ctx context.Context, n int) ([]Transfer, error) {
	for {
		s.mu.Lock()
		moved, grew := s.moved, s.grew
		s.mu.Unlock()
		if len(moved) >= n {
			return append([]Transfer(nil), moved...), nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Transfers returns the transfers that were made, in the order in which they
// ended.
func (s *Shadow) Transfers() []Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Transfer(nil), s.moved...)
}

// Session returns the session of file transfer that the starter is told.
func (s *Shadow) Session() (shadow.Session, error) {
	_, session, err := s.shared()
	return session, err
}

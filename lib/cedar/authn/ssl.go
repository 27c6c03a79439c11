// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// Statuses of the SSL method: what a side says of itself with each message.
const (
	sslError     = -1
	sslOK        = 0
	sslReceiving = 2 // needs more from the other side
	sslQuitting  = 3
	sslHolding   = 4 // has all it needs
)

const (
	sslKeySize   = 256 // of the key that the server sends in the end
	sslMaxRounds = 256
	sslDomain    = "unmapped"
)

// sslRound is one side of the turns that the two take. Each turn one of them
// sends a message, with its status and what TLS has for the other.
type sslRound struct {
	conn   *cedar.Conn
	engine *tlsEngine
	peer   int64 // the last status heard
}

func (s *sslRound) send(status int64, records []byte) error {
	s.conn.PutInt(status)
	putSized(s.conn, records, true)
	return send(s.conn)
}

func (s *sslRound) receive() error {
	r := reader{conn: s.conn}
	s.peer = r.int()
	records := r.bytes(maxTLSRecords)
	if err := r.end(); err != nil {
		return err
	}
	if err := s.engine.feed(records); err != nil {
		return broken{errs.E("", errs.Exhausted, "", err)}
	}
	return nil
}

// until takes turns until both sides hold: the task is done here and the
// other side says so too. It fails when either quits.
func (s *sslRound) until(sending bool, task func() error) error {
	s.peer = sslReceiving
	s.engine.start(task)
	status := int64(sslReceiving)
	var why error
	for range sslMaxRounds {
		if status != sslHolding {
			ended, err := s.engine.settle()
			switch {
			case ended && err != nil:
				status, why = sslQuitting, errs.E("", errs.Denied, "", err)
			case ended:
				status = sslHolding
			}
		}
		if sending {
			if err := s.send(status, s.engine.take()); err != nil {
				return err
			}
		} else if err := s.receive(); err != nil {
			return err
		}
		sending = !sending
		switch {
		case why != nil:
			return why
		case s.peer == sslQuitting || s.peer == sslError:
			return errs.E("", errs.Denied, "", errors.New("the other side gave up: its log says why"))
		case status == sslHolding && s.peer == sslHolding:
			return nil
		}
	}
	return broken{errs.E("", errs.Exhausted, "", fmt.Errorf("no end after %d rounds", sslMaxRounds))}
}

// sslClient runs the client's side. The server's certificate must be good for
// the name by which we know it; the name in it is then who it is. Servers that
// no authority vouches for may be known (see unknownServer).
func (c *Client) sslClient(ctx context.Context, conn *cedar.Conn, p Peer) (Identity, Secret, error) {
	const op = "authn.sslClient"
	meet := &unknownServer{c: c, alias: p.Alias}
	config, why := c.clientTLS(meet)
	r := reader{conn: conn}
	server := r.int()
	if err := r.end(); err != nil {
		return Identity{}, nil, err
	}
	conn.PutInt(statusOf(why))
	if err := send(conn); err != nil {
		return Identity{}, nil, err
	}
	if why != nil {
		return Identity{}, nil, errs.E(op, errs.Other, "", why)
	}
	if server != sslOK {
		return Identity{}, nil, errs.E(op, errs.Denied, "", fmt.Errorf("the server is not ready for SSL (status %d)", server))
	}

	engine := newTLSEngine()
	defer engine.Close()
	rounds := &sslRound{conn: conn, engine: engine}
	side := tls.Client(engine, config)
	if err := rounds.until(true, func() error { return side.HandshakeContext(ctx) }); err != nil {
		return Identity{}, nil, inSSL(op, "handshake", err)
	}
	leaf := side.ConnectionState().PeerCertificates[0]
	if !c.SkipHostCheck {
		why = matchHost(leaf, p.Alias)
	}
	var name string
	if why == nil {
		name, why = subjectName(leaf)
	}
	if why != nil {
		// The server is about to send its key.
		if err := rounds.receive(); err != nil {
			return Identity{}, nil, err
		}
		if rounds.peer != sslQuitting {
			if err := rounds.send(sslQuitting, nil); err != nil {
				return Identity{}, nil, err
			}
		}
		return Identity{}, nil, errs.E(op, errs.Denied, p.Alias, why)
	}
	meet.vouched()
	key := make(Secret, sslKeySize)
	if err := rounds.until(false, func() error { _, err := io.ReadFull(side, key); return err }); err != nil {
		return Identity{}, nil, inSSL(op, "key", err)
	}
	return Identity{Method: SSL, User: "ssl", Domain: sslDomain, Name: name}, key, nil
}

// sslServer runs the server's side. A client may come without a certificate
// and is then nobody, unless one is required.
func (s *Server) sslServer(ctx context.Context, conn *cedar.Conn) (Identity, Secret, error) {
	const op = "authn.sslServer"
	config, why := s.serverTLS()
	conn.PutInt(statusOf(why))
	if err := send(conn); err != nil {
		return Identity{}, nil, err
	}
	r := reader{conn: conn}
	client := r.int()
	if err := r.end(); err != nil {
		return Identity{}, nil, err
	}
	if why != nil {
		return Identity{}, nil, errs.E(op, errs.Other, "", why)
	}
	if client != sslOK {
		return Identity{}, nil, errs.E(op, errs.Denied, "", fmt.Errorf("the client is not ready for SSL (status %d)", client))
	}

	engine := newTLSEngine()
	defer engine.Close()
	rounds := &sslRound{conn: conn, engine: engine}
	side := tls.Server(engine, config)
	if err := rounds.until(false, func() error { return side.HandshakeContext(ctx) }); err != nil {
		return Identity{}, nil, inSSL(op, "handshake", err)
	}
	id, why := s.sslIdentity(side.ConnectionState())
	key := make(Secret, sslKeySize)
	if why == nil {
		if _, err := io.ReadFull(s.random(), key); err != nil {
			why = errs.E("", errs.Broken, "", err)
		}
	}
	if why != nil {
		if err := rounds.send(sslQuitting, nil); err != nil {
			return Identity{}, nil, err
		}
		return Identity{}, nil, errs.E(op, errs.Denied, "", why)
	}
	if err := rounds.until(true, func() error { _, err := side.Write(key); return err }); err != nil {
		return Identity{}, nil, inSSL(op, "key", err)
	}
	return id, key, nil
}

// sslIdentity is who the client's certificate says that it is.
func (s *Server) sslIdentity(state tls.ConnectionState) (Identity, error) {
	if len(state.PeerCertificates) == 0 {
		if s.RequireClientCert {
			return Identity{}, errors.New("the client has no certificate and AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE asks for one")
		}
		return Identity{Method: SSL, User: "unauthenticated", Domain: sslDomain, Name: "unauthenticated"}, nil
	}
	name, err := subjectName(state.PeerCertificates[0])
	if err != nil {
		return Identity{}, err
	}
	if s.RequireClientMapping && (s.Mapped == nil || !s.Mapped(SSL, name)) {
		return Identity{}, fmt.Errorf("the map file does not know %.256q and AUTH_SSL_REQUIRE_CLIENT_MAPPING asks for it", name)
	}
	return Identity{Method: SSL, User: "ssl", Domain: sslDomain, Name: name}, nil
}

func statusOf(why error) int64 {
	if why != nil {
		return sslError
	}
	return sslOK
}

// inSSL says in which phase an error came, and keeps a broken stream broken.
func inSSL(op, phase string, err error) error {
	return errs.E(op, errs.Other, "", fmt.Errorf("%s: %w", phase, err))
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// Statuses of AKEP2's messages.
const (
	statusOK    = 0
	statusError = -1
)

// maxName bounds the names in AKEP2's messages, as HTCondor's buffers do.
const maxName = 1024

// akep2Login is what a client brings along.
type akep2Login struct {
	name   string // a: who it claims to be
	signed string // with TOKEN
	keys   akep2Keys
}

// akep2Client runs the client's side of TOKEN and PASSWORD. When there is
// nothing to log in with (why), the exchange is gone through all the same, with
// errors, so that another method can follow.
//
// A server that rejects the third message says nothing: the next thing the
// caller reads never comes.
func akep2Client(conn *cedar.Conn, m Method, login *akep2Login, why error, random io.Reader) (Identity, Secret, error) {
	const op = "authn.akep2Client"
	ra := make([]byte, nonceSize)
	if why == nil {
		if _, err := io.ReadFull(random, ra); err != nil {
			why = errs.E(op, errs.Broken, "", err)
		}
	}
	if why != nil {
		login = &akep2Login{}
	}

	// 1: who we claim to be
	if why == nil {
		conn.PutInt(statusOK)
		conn.PutInt(int64(len(login.name)))
		conn.PutString(login.name)
	} else {
		conn.PutInt(statusError)
		conn.PutInt(0)
		conn.PutString("")
	}
	if m == Token {
		conn.PutString(login.signed)
	}
	putSized(conn, ra, why == nil)
	if err := send(conn); err != nil {
		return Identity{}, nil, err
	}

	// 2: the server shows that it has the key
	second, err := readSecond(conn)
	if err != nil {
		return Identity{}, nil, err
	}
	if why == nil {
		why = second.check(login, ra)
	}

	// 3: and so do we
	if why == nil {
		conn.PutInt(statusOK)
		conn.PutInt(int64(len(login.name)))
		conn.PutString(login.name)
		putSized(conn, second.rb, true)
		putSized(conn, login.keys.hk(login.name, second.rb), true)
	} else {
		conn.PutInt(statusError)
		conn.PutInt(0)
		conn.PutString("")
		putSized(conn, nil, false)
		putSized(conn, nil, false)
	}
	if err := send(conn); err != nil {
		return Identity{}, nil, err
	}
	if why != nil {
		return Identity{}, nil, why
	}
	wrapKey, err := login.keys.wrapKey(second.rb)
	if err != nil {
		return Identity{}, nil, errs.E(op, errs.Internal, "", err)
	}
	return fqu(m, second.b), wrapKey, nil
}

// putSized puts a length and the bytes, or the length 0 for an error.
func putSized(conn *cedar.Conn, b []byte, ok bool) {
	if !ok {
		b = nil
	}
	conn.PutInt(int64(len(b)))
	conn.PutBytes(b)
}

// akep2Second is the server's message.
type akep2Second struct {
	status     int64
	a, b       string
	lenA, lenB int64
	ra, rb     []byte
	hkt        []byte
}

func readSecond(conn *cedar.Conn) (akep2Second, error) {
	r := reader{conn: conn}
	var m akep2Second
	m.status = r.int()
	m.lenA, m.a = r.int(), r.name(maxName)
	m.lenB, m.b = r.int(), r.name(maxName)
	m.ra, m.rb = r.bytes(nonceSize), r.bytes(nonceSize)
	m.hkt = r.bytes(64)
	return m, r.end()
}

// check says why the server's message does not prove anything.
func (m akep2Second) check(login *akep2Login, ra []byte) error {
	const op = "authn.akep2Client"
	deny := func(why string) error { return errs.E(op, errs.Denied, login.name, errors.New(why)) }
	switch {
	case m.status != statusOK:
		return deny(fmt.Sprintf("the server could not go on (status %d): it may not have the key, or refuse the token", m.status))
	case m.lenA != int64(len(m.a)) || m.lenB != int64(len(m.b)):
		return errs.E(op, errs.Invalid, login.name, errors.New("the lengths in the server's message are not those of its texts"))
	case len(m.ra) != nonceSize || len(m.rb) != nonceSize || m.b == "":
		return errs.E(op, errs.Invalid, login.name, errors.New("the server's message is incomplete"))
	case m.a != login.name:
		return deny("the server answers somebody else's name")
	case !Secret(ra).Equal(m.ra):
		return deny("the server answers somebody else's challenge")
	case !login.keys.hkt(m.a, m.b, ra, m.rb).Equal(m.hkt):
		return deny("the server does not have the same key")
	}
	return nil
}

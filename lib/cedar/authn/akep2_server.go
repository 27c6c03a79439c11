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

// akep2Expect is what the server makes of a client's first message: the keys
// and the one name that the client may have.
type akep2Expect struct {
	keys  akep2Keys
	name  func(claimed string) bool
	found Identity
}

// akep2First is the client's first message.
type akep2First struct {
	status int64
	lenA   int64
	a      string
	signed string // with TOKEN
	ra     []byte
}

func readFirst(conn *cedar.Conn, m Method) (akep2First, error) {
	r := reader{conn: conn}
	var f akep2First
	f.status = r.int()
	f.lenA, f.a = r.int(), r.name(maxName)
	if m == Token {
		f.signed = r.name(maxToken)
	}
	f.ra = r.bytes(nonceSize)
	return f, r.end()
}

// akep2Third is the client's last message.
type akep2Third struct {
	status int64
	lenA   int64
	a      string
	rb, hk []byte
}

func readThird(conn *cedar.Conn) (akep2Third, error) {
	r := reader{conn: conn}
	var t akep2Third
	t.status = r.int()
	t.lenA, t.a = r.int(), r.name(maxName)
	t.rb = r.bytes(nonceSize)
	t.hk = r.bytes(64)
	return t, r.end()
}

// akep2Server runs the server's side. expect finds the keys for what the
// client claims. A client that has failed without knowing it leaves the stream
// broken: it waits for a key and nothing tells it otherwise.
func akep2Server(conn *cedar.Conn, m Method, self string, expect func(akep2First) (akep2Expect, error), random io.Reader) (Identity, Secret, error) {
	const op = "authn.akep2Server"
	first, err := readFirst(conn, m)
	if err != nil {
		return Identity{}, nil, err
	}
	why := first.check()
	var want akep2Expect
	if why == nil {
		want, why = expect(first)
	}
	if why == nil && !want.name(first.a) {
		why = errs.E(op, errs.Denied, quoteID(first.a), fmt.Errorf("that is not the name that belongs to the key, %s", want.found.FQU()))
	}
	rb := make([]byte, nonceSize)
	if why == nil {
		if _, err := io.ReadFull(random, rb); err != nil {
			why = errs.E(op, errs.Broken, "", err)
		}
	}

	if why == nil {
		conn.PutInt(statusOK)
		conn.PutInt(int64(len(first.a)))
		conn.PutString(first.a)
		conn.PutInt(int64(len(self)))
		conn.PutString(self)
		putSized(conn, first.ra, true)
		putSized(conn, rb, true)
		putSized(conn, want.keys.hkt(first.a, self, first.ra, rb), true)
	} else {
		conn.PutInt(statusError)
		conn.PutInt(0)
		conn.PutString("")
		conn.PutInt(0)
		conn.PutString("")
		for range 3 {
			putSized(conn, nil, false)
		}
	}
	if err := send(conn); err != nil {
		return Identity{}, nil, err
	}

	third, err := readThird(conn)
	if err != nil {
		return Identity{}, nil, err
	}
	if why != nil {
		return Identity{}, nil, why
	}
	deny := func(format string, args ...any) error {
		return errs.E(op, errs.Denied, quoteID(first.a), fmt.Errorf(format, args...))
	}
	if third.status != statusOK {
		// The client knows and tries something else.
		return Identity{}, nil, deny("the client gave up (status %d)", third.status)
	}
	switch {
	case third.lenA != int64(len(third.a)) || third.a != first.a:
		err = deny("the client changed its name")
	case !Secret(rb).Equal(third.rb):
		err = deny("the client answers another challenge")
	case !want.keys.hk(first.a, rb).Equal(third.hk):
		err = deny("the client does not have the key")
	}
	if err != nil {
		return Identity{}, nil, broken{err}
	}
	wrapKey, err := want.keys.wrapKey(rb)
	if err != nil {
		return Identity{}, nil, broken{errs.E(op, errs.Internal, "", err)}
	}
	return want.found, wrapKey, nil
}

// check says why nothing can be made of the first message.
func (f akep2First) check() error {
	const op = "authn.akep2Server"
	switch {
	case f.status != statusOK:
		return errs.E(op, errs.Denied, "", fmt.Errorf("the client has nothing to show (status %d)", f.status))
	case f.lenA != int64(len(f.a)):
		return errs.E(op, errs.Invalid, "", errors.New("the client's name is not as long as it says"))
	case f.a == "":
		return errs.E(op, errs.Invalid, "", errors.New("the client has no name"))
	case len(f.ra) != nonceSize:
		return errs.E(op, errs.Invalid, "", fmt.Errorf("a challenge of %d bytes, want %d", len(f.ra), nonceSize))
	}
	return nil
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// The largest messages. Those of a handshake are a few KiB; the largest are TLS
// records with a chain of certificates, and tokens. The first packet of a command
// is read before its peer is known as well, and those of ours have 64 KiB.
const (
	maxHandshake = 80 << 10
	maxPayload   = 1 << 20 // of a command whose row says nothing else
	unproven     = 8       // part of it that is taken from a peer who has not proven who it is
)

// unknown returns the limits of a stream as long as its peer is not known.
func unknown(l cedar.Limits) cedar.Limits {
	l.Packet = min(l.Packet, maxHandshake)
	l.Message = min(l.Message, maxHandshake)
	l.String = min(l.String, maxLiteralLine)
	l.AdLines = min(l.AdLines, maxLiterals)
	return l
}

// guard narrows the limits of a stream while its peer is not known, and
// returns what puts them back.
func guard(conn *cedar.Conn, step time.Duration) (restore func()) {
	before := conn.Limits()
	narrow := unknown(before)
	if step > 0 && (narrow.Timeout <= 0 || step < narrow.Timeout) {
		narrow.Timeout = step
	}
	conn.SetLimits(narrow)
	return func() { conn.SetLimits(before) }
}

// allow bounds the messages of a stream by what a command may carry.
func allow(c command.Row, l cedar.Limits, proven bool) cedar.Limits {
	most := c.Message
	if most <= 0 {
		most = maxPayload
	}
	if !proven {
		most /= unproven
	}
	l.Message = min(l.Message, most)
	l.Packet = min(l.Packet, most)
	return l
}

// put puts an ad of a handshake.
func put(conn *cedar.Conn, ad literals) {
	conn.PutInt(int64(len(ad)))
	for _, a := range ad {
		conn.PutString(a.line())
	}
	conn.PutString("") // MyType
	conn.PutString("") // TargetType
}

// get reads an ad of a handshake.
func get(conn *cedar.Conn) (literals, error) {
	bad := func(why string) (literals, error) {
		return nil, errs.E("security.get", errs.Invalid, conn.Peer(), fmt.Errorf("ad of a handshake: %s", why))
	}
	n, err := conn.Int()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxLiterals {
		return bad(fmt.Sprintf("%d attributes, at most %d are read", n, maxLiterals))
	}
	ad := make(literals, 0, n)
	for range n {
		line, err := conn.String()
		if err != nil {
			return nil, err
		}
		a, err := parseLiteral(line)
		if err != nil {
			return bad(err.Error())
		}
		if _, twice := ad.find(a.name); !twice {
			ad = append(ad, a)
		}
	}
	for range 2 {
		if _, err := conn.String(); err != nil {
			return nil, err
		}
	}
	return ad, nil
}

// getMessage reads an ad that is a message of its own.
func getMessage(conn *cedar.Conn) (literals, error) {
	ad, err := get(conn)
	if err != nil {
		return nil, err
	}
	return ad, conn.EndOfMessage()
}

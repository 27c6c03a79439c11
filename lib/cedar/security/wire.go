// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// maxHandshake bounds one message of a handshake.
const maxHandshake = 256 << 10

// guard narrows the limits of a stream while its peer is not known, and
// returns what puts them back.
func guard(conn *cedar.Conn, step time.Duration) (restore func()) {
	before := conn.Limits()
	narrow := before
	narrow.Packet = min(narrow.Packet, maxHandshake)
	narrow.Message = min(narrow.Message, maxHandshake)
	narrow.String = min(narrow.String, maxLiteralLine)
	narrow.AdLines = min(narrow.AdLines, maxLiterals)
	if step > 0 && (narrow.Timeout <= 0 || step < narrow.Timeout) {
		narrow.Timeout = step
	}
	conn.SetLimits(narrow)
	return func() { conn.SetLimits(before) }
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cedar is the wire of an HTCondor pool: streams of packets and
// messages, the items in them, encryption, addresses, datagrams. It owns the
// bytes and their bounds. It must never decide who may do what, choose a key or
// an authentication method, know a command's meaning, log, or let a secret
// into an error.
//
// # Streams
//
// A Conn is one stream. A message is a sequence of items and an end; a packet
// is what a message is cut into. Items are put into a buffer, and EndMessage
// sends them; an error sticks and comes with EndMessage.
//
//	c.PutInt(60010)
//	c.PutAd(ad, cedar.AdOptions{})
//	err := c.EndMessage()
//
// Reading begins the next message by itself and receives all of it before it
// hands out the first item. Every getter fails at the end of the message, and
// EndOfMessage fails if something is left.
//
//	reply, err := c.Ad(cedar.AdOptions{})
//	if err == nil {
//		err = c.EndOfMessage()
//	}
//
// # Encryption
//
// EnableAES switches AES-256-GCM on for both directions, from the next packet
// on and for good. The first packet of a direction vouches for everything that
// went over the connection in clear before, in both directions.
//
// # Hostile peers
//
// Limits bound packets, messages, strings and ads; memory is taken as bytes
// arrive, never because a length was announced. Each message has a deadline,
// which a peer cannot move by sending slowly. Errors carry a kind of package
// errs: Invalid for what is malformed, Exhausted for what is beyond a limit,
// Expired for a deadline, Denied for a packet that does not authenticate,
// Transient for a connection that is gone (io.EOF between messages,
// io.ErrUnexpectedEOF within one). After an error of the connection a stream
// is broken, in that direction; only waiting for a message may be tried again
// after its deadline.
//
// # Concurrency
//
// One goroutine may read and another one write. Switching encryption on,
// binding a context and changing limits or timeouts need both to rest. Close
// may be called at any time from anywhere.
package cedar

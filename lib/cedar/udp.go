// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	udpMagic        = "MaGic6.0" // of a fragment
	udpCryptoMagic  = "CRAP"     // of a crypto header
	udpHeaderSize   = 25
	udpCryptoSize   = 10
	udpMACSize      = 16
	udpHashed       = 1 // flags of a crypto header
	udpEncrypted    = 2
	udpShortest     = 8 // a message is at least a command
	maxDatagram     = 60000
	maxUDPFragments = 4096
)

// Sizes of what one fragment carries, header included.
const (
	UDPFragment         = 1000
	UDPLoopbackFragment = 59974
)

// MessageID tells the fragments of one message from those of others.
type MessageID struct {
	IP     uint32
	PID    uint16
	Time   uint32
	Number uint16
}

// Datagram is what one UDP datagram holds: a message, or a fragment of one.
type Datagram struct {
	Fragment bool
	Last     bool // of a fragment
	Seq      int  // of a fragment, from 0
	ID       MessageID

	HashKeyID string // session whose key made MAC; empty if there is none
	MAC       [udpMACSize]byte
	KeyID     string // session whose key encrypts the message; empty if it is clear

	Payload []byte // not a copy
}

// ParseDatagram reads a datagram.
func ParseDatagram(b []byte) (Datagram, error) {
	bad := func(why string) (Datagram, error) {
		return Datagram{}, errs.E("cedar.ParseDatagram", errs.Invalid, "", errors.New(why))
	}
	var d Datagram
	if len(b) < udpShortest || len(b) > maxDatagram {
		return bad(fmt.Sprintf("datagram of %d bytes, want %d to %d", len(b), udpShortest, maxDatagram))
	}
	if string(b[:len(udpMagic)]) == udpMagic {
		if len(b) < udpHeaderSize {
			return bad("the header of a fragment is cut off")
		}
		d.Fragment = true
		d.Last = b[8] != 0
		d.Seq = int(binary.BigEndian.Uint16(b[9:]))
		d.ID = MessageID{
			IP: binary.BigEndian.Uint32(b[13:]), PID: binary.BigEndian.Uint16(b[17:]),
			Time: binary.BigEndian.Uint32(b[19:]), Number: binary.BigEndian.Uint16(b[23:]),
		}
		b = b[udpHeaderSize:]
	}
	if len(b) >= len(udpCryptoMagic) && string(b[:len(udpCryptoMagic)]) == udpCryptoMagic {
		if len(b) < udpCryptoSize {
			return bad("the crypto header is cut off")
		}
		flags, hashLen, keyLen := binary.BigEndian.Uint16(b[4:]), int(binary.BigEndian.Uint16(b[6:])), int(binary.BigEndian.Uint16(b[8:]))
		b = b[udpCryptoSize:]
		if flags&udpHashed != 0 && hashLen > 0 {
			if hashLen+udpMACSize > len(b) {
				return bad("the MAC is cut off")
			}
			d.HashKeyID = string(b[:hashLen])
			copy(d.MAC[:], b[hashLen:])
			b = b[hashLen+udpMACSize:]
		}
		if flags&udpEncrypted != 0 && keyLen > 0 {
			if keyLen > len(b) {
				return bad("the key id is cut off")
			}
			d.KeyID = string(b[:keyLen])
			b = b[keyLen:]
		}
	}
	if len(b) == 0 {
		return bad("there is nothing behind the headers")
	}
	d.Payload = b
	return d, nil
}

// cryptoSize is the length of the crypto header, 0 if there is none.
func (d Datagram) cryptoSize() int {
	n := 0
	if d.HashKeyID != "" {
		n += len(d.HashKeyID) + udpMACSize
	}
	if d.KeyID != "" {
		n += len(d.KeyID)
	}
	if n > 0 {
		n += udpCryptoSize
	}
	return n
}

// Append appends the datagram as it is sent.
func (d Datagram) Append(b []byte) []byte {
	crypto := d.cryptoSize()
	var flags uint16
	if d.HashKeyID != "" {
		flags |= udpHashed
	}
	if d.KeyID != "" {
		flags |= udpEncrypted
	}
	if d.Fragment {
		b = append(b, udpMagic...)
		last := byte(0)
		if d.Last {
			last = 1
		}
		b = append(b, last)
		b = binary.BigEndian.AppendUint16(b, uint16(d.Seq))
		b = binary.BigEndian.AppendUint16(b, uint16(crypto+len(d.Payload)))
		b = binary.BigEndian.AppendUint32(b, d.ID.IP)
		b = binary.BigEndian.AppendUint16(b, d.ID.PID)
		b = binary.BigEndian.AppendUint32(b, d.ID.Time)
		b = binary.BigEndian.AppendUint16(b, d.ID.Number)
	}
	if flags != 0 {
		b = append(b, udpCryptoMagic...)
		b = binary.BigEndian.AppendUint16(b, flags)
		b = binary.BigEndian.AppendUint16(b, uint16(len(d.HashKeyID)))
		b = binary.BigEndian.AppendUint16(b, uint16(len(d.KeyID)))
		if d.HashKeyID != "" {
			b = append(append(b, d.HashKeyID...), d.MAC[:]...)
		}
		b = append(b, d.KeyID...)
	}
	return append(b, d.Payload...)
}

// FragmentSize returns the size of a fragment that the setting n stands for:
// as HTCondor reads UDP_NETWORK_FRAGMENT_SIZE and its kin.
func FragmentSize(n int) int {
	if n <= 0 {
		n = UDPFragment
	}
	return max(udpHeaderSize+1, min(n, UDPLoopbackFragment))
}

// Split returns the datagrams of a whole message, each of them not larger than
// fragment bytes: one without a header of its own if that is enough. Only the
// first has the crypto header.
func (d Datagram) Split(id MessageID, fragment int) ([][]byte, error) {
	size := FragmentSize(fragment) - udpHeaderSize
	d.Fragment = false
	crypto := d.cryptoSize()
	n := (crypto + len(d.Payload) + size - 1) / size
	switch {
	case len(d.Payload) < udpShortest:
		return nil, errs.E("cedar.Split", errs.Invalid, "", errors.New("the message is shorter than a command"))
	case n > maxUDPFragments:
		return nil, errs.E("cedar.Split", errs.Exhausted, "", fmt.Errorf("the message needs %d datagrams, the limit is %d", n, maxUDPFragments))
	case crypto >= size:
		return nil, errs.E("cedar.Split", errs.Exhausted, "", fmt.Errorf("the id of the session does not fit into a datagram of %d bytes", size))
	case n == 1:
		return [][]byte{d.Append(nil)}, nil
	}
	all := make([][]byte, 0, n)
	rest := d.Payload
	for seq := range n {
		part := Datagram{Fragment: true, ID: id, Seq: seq, Last: seq == n-1}
		if seq == 0 {
			part = d
			part.Fragment, part.ID, part.Seq, part.Last = true, id, 0, false
		}
		part.Payload = rest[:min(len(rest), size-part.cryptoSize())]
		rest = rest[len(part.Payload):]
		all = append(all, part.Append(nil))
	}
	return all, nil
}

// Bounds of an Assembler.
const (
	maxUnfinished   = 64       // messages under way
	maxUnfinishedBy = 8        // of one sender
	maxUDPMessage   = 1 << 20  // bytes of one message
	maxHeld         = 16 << 20 // bytes of all messages under way
	maxParts        = 16 << 10 // their fragments
	unfinishedFor   = 10 * time.Second
)

// Assembler joins fragments. What it holds is bounded: the oldest unfinished
// message of the address with the most goes when a new one needs its place. The zero value is ready; it is
// for one goroutine.
type Assembler struct {
	messages map[senderID]*unfinished
	held     int // bytes
	parts    int // fragments
}

type senderID struct {
	from netip.AddrPort
	id   MessageID
}

type unfinished struct {
	parts   map[int]Datagram
	size    int
	highest int // number of a fragment
	last    int // number of the last fragment, -1 while unknown
	changed time.Time
}

// Add takes a datagram that came from a sender at a time. ok is true when it
// completes a message, which is returned with the crypto header of its first
// fragment. The datagram's payload is copied where it must be kept.
func (a *Assembler) Add(now time.Time, from netip.AddrPort, d Datagram) (message Datagram, ok bool, err error) {
	if !d.Fragment {
		return d, true, nil
	}
	a.expire(now)
	if d.Seq >= maxUDPFragments {
		return Datagram{}, false, errs.E("cedar.Assembler", errs.Exhausted, from.String(), fmt.Errorf("fragment %d, the limit is %d", d.Seq, maxUDPFragments))
	}
	key := senderID{from: from, id: d.ID}
	m := a.messages[key]
	if m == nil {
		a.makeRoom(from)
		m = &unfinished{parts: map[int]Datagram{}, last: -1}
		if a.messages == nil {
			a.messages = map[senderID]*unfinished{}
		}
		a.messages[key] = m
	}
	m.changed = now
	if _, again := m.parts[d.Seq]; again {
		return Datagram{}, false, nil
	}
	if d.Last && m.last < 0 {
		m.last = d.Seq
	}
	if d.Seq > 0 { // only those of the first one count
		d.HashKeyID, d.KeyID = "", ""
	}
	d.Payload = bytes.Clone(d.Payload)
	size := len(d.Payload) + len(d.HashKeyID) + len(d.KeyID)
	m.parts[d.Seq] = d
	m.highest = max(m.highest, d.Seq)
	m.size += size
	a.held += size
	a.parts++
	if m.size > maxUDPMessage || m.last >= 0 && m.highest > m.last {
		a.drop(key)
		return Datagram{}, false, errs.E("cedar.Assembler", errs.Exhausted, from.String(), errors.New("a message is larger than allowed or than it said"))
	}
	for a.held > maxHeld || a.parts > maxParts {
		a.dropOldest(netip.AddrPort{})
	}
	if m.last < 0 || len(m.parts) != m.last+1 {
		return Datagram{}, false, nil
	}
	whole := make([]byte, 0, m.size)
	for i := range m.last + 1 {
		whole = append(whole, m.parts[i].Payload...)
	}
	message = m.parts[0]
	message.Fragment, message.Last, message.Payload = false, false, whole
	a.drop(key)
	return message, true, nil
}

func (a *Assembler) drop(key senderID) {
	if m := a.messages[key]; m != nil {
		a.held -= m.size
		a.parts -= len(m.parts)
		delete(a.messages, key)
	}
}

func (a *Assembler) expire(now time.Time) {
	for key, m := range a.messages {
		if now.Sub(m.changed) > unfinishedFor {
			a.drop(key)
		}
	}
}

func (a *Assembler) makeRoom(from netip.AddrPort) {
	mine := 0
	for key := range a.messages {
		if key.from == from {
			mine++
		}
	}
	if mine >= maxUnfinishedBy {
		a.dropOldest(from)
	}
	if len(a.messages) >= maxUnfinished {
		a.dropOldest(netip.AddrPort{})
	}
}

// dropOldest drops the message that was longest without news: of one sender if
// from is valid, else of the address that has the most under way, whatever ports
// it sends from.
func (a *Assembler) dropOldest(from netip.AddrPort) {
	var by map[netip.Addr]int
	if !from.IsValid() {
		by = make(map[netip.Addr]int)
		for key := range a.messages {
			by[key.from.Addr()]++
		}
	}
	var oldest senderID
	var when time.Time
	most := -1
	for key, m := range a.messages {
		if from.IsValid() && key.from != from {
			continue
		}
		if n := by[key.from.Addr()]; n > most || n == most && m.changed.Before(when) {
			oldest, when, most = key, m.changed, n
		}
	}
	a.drop(oldest)
}

// Form is how the strings of a message in datagrams are written.
type Form uint8

// Plain strings end with NUL; Counted ones have their length in front as well,
// as in all that is encrypted.
const (
	Plain Form = iota
	Counted
)

// MessageReader returns a Conn that reads the items of one clear message, the
// payload of a datagram with plain strings, and nothing else. It keeps b. What
// is written to it goes nowhere.
func MessageReader(b []byte, l Limits) *Conn { return FormReader(b, Plain, l) }

// FormReader is MessageReader for strings of any form.
func FormReader(b []byte, f Form, l Limits) *Conn {
	c := NewConn(noConn{}, l)
	c.form = f
	c.in.buf = b
	c.in.end, c.in.raw, c.in.rawEnd = len(b), len(b), len(b)
	c.in.open = true
	return c
}

// WriteMessage returns the bytes of the clear message that put writes, for a
// datagram, with plain strings and for a reader of unknown version.
func WriteMessage(put func(c *Conn)) ([]byte, error) { return WriteForm(Plain, "", put) }

// WriteForm is WriteMessage for strings of any form. version is that of the
// reader, "" if unknown: see Conn.PutAd.
func WriteForm(f Form, version string, put func(c *Conn)) ([]byte, error) {
	c := NewConn(noConn{}, Limits{})
	c.form, c.peerVersion = f, version
	c.SetPacketSize(maxUDPMessage)
	put(c)
	if c.out.err != nil {
		return nil, c.out.err
	}
	if c.out.cut > 0 {
		return nil, errs.E("cedar.WriteForm", errs.Exhausted, "", fmt.Errorf("the message has more than %d bytes, too many for datagrams", c.out.packet))
	}
	if len(c.out.buf) <= c.out.head {
		return nil, errs.E("cedar.WriteForm", errs.Invalid, "", errors.New("the message is empty"))
	}
	return c.out.buf[c.out.head:], nil
}

// noConn is a connection that leads nowhere.
type noConn struct{}

func (noConn) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (noConn) Write(b []byte) (int, error)      { return len(b), nil }
func (noConn) Close() error                     { return nil }
func (noConn) LocalAddr() net.Addr              { return nil }
func (noConn) RemoteAddr() net.Addr             { return nil }
func (noConn) SetDeadline(time.Time) error      { return nil }
func (noConn) SetReadDeadline(time.Time) error  { return nil }
func (noConn) SetWriteDeadline(time.Time) error { return nil }

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	maxInherited = 64 << 10 // bytes of the text of one socket
	protocolAES  = 3        // number of AES among the ciphers of a socket
)

// InheritedSocket is a socket in the text in which one daemon hands it to
// another (CONDOR_INHERIT, startd to starter). Fields whose meaning is the
// original's alone are kept as they are, so that the text can be written
// again.
type InheritedSocket struct {
	FD           int64
	State        int64 // of the original's Sock
	Timeout      int64 // seconds
	TriedAuth    int64
	User         string // fully qualified, of the peer; empty if unknown
	PeerVersion  string
	SpecialState int64  // of the original's ReliSock or SafeSock
	Peer         string // sinful text; empty if there is none
	UDP          bool   // a SafeSock; the fields below belong to a ReliSock

	Cipher      int64 // 0 none, 1 BLOWFISH, 2 3DES, 3 AES
	Encrypting  int64
	CipherState []byte // of AES: IVs and counters as they lie in the original's memory
	Key         Secret // hexadecimal digits

	// Flags of the digests of the clear transcript: sent and received are
	// computed, sent and received have gone into a packet.
	SentFinal, ReceivedFinal, SentFinished, ReceivedFinished bool
	Digests                                                  []byte
	MDKey                                                    Secret // hexadecimal digits
}

// ParseInheritedSocket reads the text of a TCP socket, or with udp that of a
// UDP socket.
func ParseInheritedSocket(text string, udp bool) (InheritedSocket, error) {
	s := InheritedSocket{UDP: udp}
	p := starText{rest: text}
	if len(text) > maxInherited {
		p.fail("the text is too long")
	}
	s.FD, s.State, s.Timeout, s.TriedAuth = p.number("descriptor"), p.number("state"), p.number("timeout"), p.number("tried authentication")
	userLen, versionLen := p.number("length of the user"), p.number("length of the version")
	s.User = p.counted("user", userLen)
	s.PeerVersion = strings.ReplaceAll(p.counted("version", versionLen), "_", " ")
	s.SpecialState = p.number("special state")
	s.Peer = p.word("peer")
	if s.Peer != "" && !strings.HasPrefix(s.Peer, "<") {
		p.fail("the peer is no address")
	}
	if !udp {
		s.parseCrypto(&p)
	}
	if p.err == nil && p.rest != "" {
		p.fail("there is more behind its end")
	}
	if p.err != nil {
		return InheritedSocket{}, errs.E("cedar.ParseInheritedSocket", errs.Invalid, "", p.err)
	}
	return s, nil
}

func (s *InheritedSocket) parseCrypto(p *starText) {
	if n := p.number("length of the key"); n > 0 {
		s.Cipher, s.Encrypting = p.number("cipher"), p.number("encryption mode")
		if s.Cipher == protocolAES {
			s.CipherState = p.hex("state of the cipher")
		}
		key := p.word("key")
		p.wantHex("key", key, n)
		s.Key = Secret(key)
	}
	s.SentFinal, s.ReceivedFinal = p.flag("final flag"), p.flag("final flag")
	s.SentFinished, s.ReceivedFinished = p.flag("finished flag"), p.flag("finished flag")
	if n := p.number("length of the digests"); n > 0 {
		s.Digests = p.hex("digests")
		if p.err == nil && int64(len(s.Digests)) != n {
			p.fail("the digests have not the length they should have")
		}
	}
	if n := p.number("length of the MD key"); n > 0 {
		key := p.word("MD key")
		p.wantHex("MD key", key, n)
		s.MDKey = Secret(key)
	}
}

// Text returns the socket as it is handed over, secrets included.
func (s InheritedSocket) Text() Secret {
	version := strings.ReplaceAll(s.PeerVersion, " ", "_")
	b := fmt.Appendf(nil, "%d*%d*%d*%d*%d*%d*%s*%s*%d*%s*", s.FD, s.State, s.Timeout, s.TriedAuth,
		len(s.User), len(version), s.User, version, s.SpecialState, s.Peer)
	if s.UDP {
		return Secret(b)
	}
	if s.Key == "" {
		b = append(b, "0*"...)
	} else {
		b = fmt.Appendf(b, "%d*%d*%d*", len(s.Key), s.Cipher, s.Encrypting)
		if s.Cipher == protocolAES {
			b = fmt.Appendf(b, "%X*", s.CipherState)
		}
		b = append(append(b, s.Key.Reveal()...), '*')
	}
	for _, f := range []bool{s.SentFinal, s.ReceivedFinal, s.SentFinished, s.ReceivedFinished} {
		b = append(b, '0', '*')
		if f {
			b[len(b)-2] = '1'
		}
	}
	b = fmt.Appendf(b, "%d*", len(s.Digests))
	if len(s.Digests) > 0 {
		b = fmt.Appendf(b, "%X*", s.Digests)
	}
	if s.MDKey == "" {
		return Secret(append(b, "0*"...))
	}
	return Secret(fmt.Appendf(b, "%d*%s*", len(s.MDKey), s.MDKey.Reveal()))
}

// starText reads words that end with a star each. Its errors name words and
// never show them.
type starText struct {
	rest string
	err  error
}

func (p *starText) fail(why string) {
	if p.err == nil {
		p.err = errors.New(why)
	}
}

func (p *starText) word(what string) string {
	w, rest, ok := strings.Cut(p.rest, "*")
	if !ok {
		p.fail(what + " is missing")
		return ""
	}
	p.rest = rest
	return w
}

func (p *starText) number(what string) int64 {
	w := p.word(what)
	if p.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != w {
		p.fail(what + " is no number")
	}
	return n
}

func (p *starText) flag(what string) bool {
	n := p.number(what)
	if n != 0 && n != 1 {
		p.fail(what + " is not 0 or 1")
	}
	return n == 1
}

// counted reads a word of a known length, which may hold stars.
func (p *starText) counted(what string, n int64) string {
	if p.err != nil {
		return ""
	}
	if n < 0 || n >= int64(len(p.rest)) || p.rest[n] != '*' {
		p.fail(what + " has not the length it should have")
		return ""
	}
	w := p.rest[:n]
	p.rest = p.rest[n+1:]
	return w
}

func (p *starText) hex(what string) []byte {
	w := p.word(what)
	b, err := hex.DecodeString(w)
	if err != nil {
		p.fail(what + " is not hexadecimal")
	}
	return b
}

func (p *starText) wantHex(what, digits string, n int64) {
	if _, err := hex.DecodeString(digits); err != nil || int64(len(digits)) != n {
		p.fail(what + " has not as many hexadecimal digits as it should have")
	}
}

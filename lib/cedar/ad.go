// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	// SecretMark announces a line that is sent as a secret.
	SecretMark = "ZKM"

	// maxRestrictedLines bounds ads of peers that are not known yet.
	maxRestrictedLines = 100

	privateV2 = "_condor_priv" // private attributes since version 9.9.0
)

// AdOptions say how an ad is written or read.
type AdOptions struct {
	NoPrivate   bool   // writing: leave private attributes out
	NoTypes     bool   // both: the two type strings after the lines are missing
	Restricted  bool   // reading, before authentication: at most 100 lines, constants only, no secrets
	ServerTime  int64  // writing: if not zero, a line ServerTime = this
	PeerVersion string // writing: version of the reader; that of the Conn if empty
	Breaks      bool   // writing: line breaks in strings stay
}

// RawAd is an ad as its lines stand on the wire.
type RawAd struct {
	Lines              []string // Name = expression; SecretMark goes before one that is sent as a secret
	MyType, TargetType string   // mostly empty; MyType travels as a line
}

// PutAd puts an ad, its attributes in the order of Ad.Names. A line break in
// a string becomes a blank, for readers show and keep ads in lines; Breaks is
// for those who do not. Private attributes
// whose names begin with _condor_priv are only sent to a peer that is known to
// be 9.9.0 or newer; for a peer that is not, the other private ones are marked
// as secrets.
func (c *Conn) PutAd(ad *classad.Ad, o AdOptions) {
	version := o.PeerVersion
	if version == "" {
		version = c.peerVersion
	}
	v, ok := ParseVersion(version)
	modern := ok && v.AtLeast(9, 9, 0)

	c.room(512)
	out := &c.out
	count := len(out.buf)
	b := append(out.buf, make([]byte, 8)...)
	n := 0
	for name, e := range ad.All() {
		if classad.IsPrivate(name) {
			if o.NoPrivate || !modern && isPrivateV2(name) {
				continue
			}
			if !modern {
				b = c.appendText(b, SecretMark)
			}
		}
		start := len(b)
		b = c.lineStart(b)
		b = append(append(b, name...), " = "...)
		b = e.AppendText(b, classad.Old)
		b = c.lineEnd(b, start, o.Breaks)
		n++
	}
	if o.ServerTime != 0 {
		start := len(b)
		b = c.lineStart(b)
		b = strconv.AppendInt(append(b, "ServerTime = "...), o.ServerTime, 10)
		b = c.lineEnd(b, start, false)
		n++
	}
	binary.BigEndian.PutUint64(b[count:], uint64(n))
	if !o.NoTypes {
		b = c.appendText(c.appendText(b, ""), "")
	}
	out.buf = b
	c.spill()
}

// lineStart leaves room for the length of a line.
func (c *Conn) lineStart(b []byte) []byte {
	if !c.counted() {
		return b
	}
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// lineEnd ends the line that begins at start. Line breaks in it become blanks
// unless they are to stay.
func (c *Conn) lineEnd(b []byte, start int, breaks bool) []byte {
	text := start
	if c.counted() {
		text += 8
	}
	line := b[text:]
	if !breaks && bytes.IndexByte(line, '\n') >= 0 {
		for i := range line {
			if line[i] == '\n' {
				line[i] = ' '
			}
		}
	}
	if bytes.IndexByte(line, 0) >= 0 {
		c.refuse("PutAd", "a line of an ad holds a NUL")
	}
	b = append(b, 0)
	if c.counted() {
		binary.BigEndian.PutUint64(b[start:], uint64(len(b)-text))
	}
	return b
}

// appendText appends a string as PutString puts it.
func (c *Conn) appendText(b []byte, s string) []byte {
	start := len(b)
	b = c.lineStart(b)
	b = append(b, s...)
	b = append(b, 0)
	if c.counted() {
		binary.BigEndian.PutUint64(b[start:], uint64(len(s)+1))
	}
	return b
}

// spill cuts a buffer that grew beyond a packet.
func (c *Conn) spill() {
	o := &c.out
	if len(o.buf)-o.head <= o.packet {
		return
	}
	all := bytes.Clone(o.buf[o.head:])
	o.buf = o.buf[:o.head]
	c.put(all)
}

// PutRawAd puts the lines of an ad as they are.
func (c *Conn) PutRawAd(ad RawAd, o AdOptions) {
	n := 0
	for _, l := range ad.Lines {
		if l != SecretMark {
			n++
		}
	}
	c.PutInt(int64(n))
	for _, l := range ad.Lines {
		c.PutString(l)
	}
	if !o.NoTypes {
		c.PutString(ad.MyType)
		c.PutString(ad.TargetType)
	}
}

// RawAd reads the lines of an ad without parsing them.
func (c *Conn) RawAd(o AdOptions) (RawAd, error) {
	var ad RawAd
	err := c.lines(o, func(l []byte, secret bool) {
		if secret {
			ad.Lines = append(ad.Lines, SecretMark)
		}
		ad.Lines = append(ad.Lines, string(l))
	})
	if err == nil && !o.NoTypes {
		if ad.MyType, err = c.String(); err == nil {
			ad.TargetType, err = c.String()
		}
	}
	return ad, err
}

// lines reads number and lines of an ad.
func (c *Conn) lines(o AdOptions, each func(line []byte, secret bool)) error {
	n, err := c.Int()
	limit := int64(c.limits.AdLines)
	if o.Restricted {
		limit = min(limit, maxRestrictedLines)
	}
	switch {
	case err != nil:
		return err
	case n < 0:
		return c.malformed("Ad", "an ad has a negative number of lines")
	case n > limit:
		return c.beyond("Ad", fmt.Sprintf("an ad of %d lines, the limit is %d", n, limit))
	}
	for range n {
		l, err := c.text("Ad")
		secret := err == nil && !o.Restricted && string(l) == SecretMark
		if secret {
			l, err = c.text("Ad")
		}
		if err != nil {
			return err
		}
		each(l, secret)
	}
	return nil
}

// Ad reads an ad. The types behind the lines are dropped: MyType and
// TargetType are attributes.
func (c *Conn) Ad(o AdOptions) (*classad.Ad, error) {
	var text []byte
	var broken []string // lines with line breaks, which only strings can hold
	err := c.lines(o, func(l []byte, _ bool) {
		if bytes.IndexByte(l, '\n') >= 0 {
			broken = append(broken, string(l))
			return
		}
		text = append(append(text, l...), '\n')
	})
	if err == nil && !o.NoTypes {
		if _, err = c.text("Ad"); err == nil {
			_, err = c.text("Ad")
		}
	}
	if err != nil {
		return nil, err
	}
	ad, err := classad.ParseAd(string(text), classad.Old)
	if err != nil {
		return nil, c.badAd(string(text))
	}
	for _, line := range broken {
		name, value, ok := strings.Cut(line, "=")
		if ok {
			err = ad.SetText(strings.TrimSpace(name), value)
		}
		if !ok || err != nil {
			return nil, c.malformed("Ad", fmt.Sprintf("attribute %q, which holds a line break, does not read", clip(strings.TrimSpace(name))))
		}
	}
	if o.Restricted {
		for name, e := range ad.All() {
			if _, ok := e.LiteralValue(); !ok {
				return nil, c.malformed("Ad", fmt.Sprintf("attribute %q is not a constant", clip(name)))
			}
		}
	}
	return ad, nil
}

// badAd names the first line that does not read, by its attribute alone: its
// value may be a secret.
func (c *Conn) badAd(text string) error {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if _, err := classad.ParseAd(line, classad.Old); err != nil {
			name, _, ok := strings.Cut(line, "=")
			if !ok {
				return c.malformed("Ad", fmt.Sprintf("line %d of an ad is not Name = expression", n))
			}
			return c.malformed("Ad", fmt.Sprintf("line %d of an ad, attribute %q, does not read", n, clip(strings.TrimSpace(name))))
		}
	}
	return errs.E("cedar.Ad", errs.Invalid, c.peer, fmt.Errorf("an ad of %d lines does not read", n-1))
}

// clip bounds what of a peer's text enters an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

func isPrivateV2(name string) bool {
	return len(name) >= len(privateV2) && strings.EqualFold(name[:len(privateV2)], privateV2)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/md5"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// Info is what a claim id, or another id of its shape, says of its session in
// brackets between the id and the key.
type Info struct {
	Encryption, Integrity bool
	Crypto                []string // the first is used
	ShortVersion          string   // of the peer, as "25.14.0"; "" = unknown
	Expires               time.Time
	ValidCommands         []int
}

// DefaultInfo is the info of the claim ids we make: what a startd of version
// (as "25.14.0") exports. Old readers look at CryptoMethods and find a cipher
// they know, others at the list and find AES.
func DefaultInfo(version string) Info {
	return Info{Encryption: true, Integrity: true, Crypto: []string{"AES", "BLOWFISH", "3DES"}, ShortVersion: version}
}

// String writes the info with its brackets; there is no blank, and no ';' but
// behind each attribute.
func (i Info) String() string {
	var b strings.Builder
	put := func(name, value string) { fmt.Fprintf(&b, "%s=%q;", name, value) }
	b.WriteByte('[')
	put("Encryption", yesNo(i.Encryption))
	put("Integrity", yesNo(i.Integrity))
	switch {
	case len(i.Crypto) == 1:
		put("CryptoMethods", i.Crypto[0])
	case len(i.Crypto) > 1:
		old := i.Crypto[0]
		for _, m := range i.Crypto {
			if m != "AES" {
				old = m
				break
			}
		}
		put("CryptoMethods", old)
		put("CryptoMethodsList", strings.Join(i.Crypto, "."))
	}
	if i.ShortVersion != "" {
		put("ShortVersion", i.ShortVersion)
	}
	if !i.Expires.IsZero() {
		fmt.Fprintf(&b, "SessionExpires=%d;", i.Expires.Unix())
	}
	if len(i.ValidCommands) > 0 {
		put("ValidCommands", commandList(i.ValidCommands))
	}
	b.WriteByte(']')
	return b.String()
}

// ParseInfo reads an info with its brackets.
func ParseInfo(text string) (Info, error) {
	bad := func(why string) (Info, error) {
		return Info{}, errs.E("security.ParseInfo", errs.Invalid, "", fmt.Errorf("session info: %s", why))
	}
	if len(text) > maxLiteralLine {
		return bad("too long")
	}
	body, ok := strings.CutPrefix(text, "[")
	if !ok {
		return bad("want [Attribute=value;...]")
	}
	if body, ok = strings.CutSuffix(body, "]"); !ok {
		return bad("no closing bracket")
	}
	var ad literals
	for field := range strings.SplitSeq(body, ";") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		if len(ad) == maxLiterals {
			return bad("too many attributes")
		}
		a, err := parseLiteral(field)
		if err != nil {
			return bad(err.Error())
		}
		ad = append(ad, a)
	}
	i := Info{Encryption: ad.yes("Encryption"), Integrity: ad.yes("Integrity"), ShortVersion: ad.str("ShortVersion")}
	methods := ad.str("CryptoMethodsList")
	if methods == "" {
		methods = ad.str("CryptoMethods")
	}
	for _, m := range words(strings.ReplaceAll(methods, ".", ",")) {
		if m = cryptoName(m); known(cryptoMethods[:], m) {
			i.Crypto = appendNew(i.Crypto, m)
		}
	}
	if n, ok := ad.number("SessionExpires"); ok && n > 0 {
		i.Expires = time.Unix(n, 0)
	}
	var err error
	if i.ValidCommands, err = parseCommands(ad.str("ValidCommands")); err != nil {
		return bad(err.Error())
	}
	return i, nil
}

// version is the peer's version as a session keeps it, "" if unknown.
func (i Info) version() string {
	if i.ShortVersion == "" {
		return ""
	}
	return "$CondorVersion: " + i.ShortVersion + " ExportedSessionInfo $"
}

// CapabilityID is an id in the shape of a claim id,
// "<address>#start#sequence#[info]key", taken apart.
type CapabilityID struct {
	Session string // everything before the last '#': the id of the session, public
	Info    Info
	HasInfo bool // without, no session is made of it
	key     string
}

// NewCapabilityID puts an id together. The key is text, 64 hex digits by
// custom.
func NewCapabilityID(session string, info Info, key string) CapabilityID {
	return CapabilityID{Session: session, Info: info, HasInfo: true, key: key}
}

// ParseCapabilityID takes apart a claim id, a SessionKey or FamilySessionKey
// of condor_master, or an administration capability.
func ParseCapabilityID(text string) (CapabilityID, error) {
	bad := func(why string) (CapabilityID, error) {
		return CapabilityID{}, errs.E("security.ParseCapabilityID", errs.Invalid, "", fmt.Errorf("%s: want id#[info]key", why))
	}
	if len(text) > maxLiteralLine {
		return bad("too long")
	}
	text = strings.TrimRight(text, "\x00")
	// The info may hold a '#' only if it is broken, the id may hold many.
	body, info := text, ""
	if open := strings.LastIndexByte(text, '['); open > 0 && text[open-1] == '#' {
		shut := strings.IndexByte(text[open:], ']')
		if shut < 0 {
			return bad("the bracket is not closed")
		}
		info = text[open : open+shut+1]
		body = text[:open] + text[open+shut+1:]
	}
	at := strings.LastIndexByte(body, '#')
	if at <= 0 || at == len(body)-1 {
		return bad("no key behind a '#'")
	}
	id := CapabilityID{Session: body[:at], key: body[at+1:]}
	if strings.ContainsAny(body, " \t\r\n") {
		return bad("blanks in it")
	}
	if info != "" {
		var err error
		if id.Info, err = ParseInfo(info); err != nil {
			return CapabilityID{}, err
		}
		id.HasInfo = true
	}
	return id, nil
}

// Reveal returns the whole id, key included, as it is sent.
func (id CapabilityID) Reveal() string {
	if !id.HasInfo {
		return id.Session + "#" + id.key
	}
	return id.Session + "#" + id.Info.String() + id.key
}

// String returns the public part followed by "#...", as the field's logs do.
func (id CapabilityID) String() string { return id.Session + "#..." }

// GoString hides the key.
func (id CapabilityID) GoString() string { return id.String() }

// Format hides the key under every verb.
func (id CapabilityID) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(id.String())) }

// MarshalText hides the key from encoders.
func (id CapabilityID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// sessionKey derives the key of the session.
func (id CapabilityID) sessionKey() Key { return DeriveKey([]byte(id.key)) }

// oldKey derives the key that the session's datagrams have.
func (id CapabilityID) oldKey() Key {
	sum := md5.Sum([]byte(id.key))
	return sum[:]
}

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// maxCommands bounds lists of commands.
const maxCommands = 4096

// parseCommands reads "60007,457,5".
func parseCommands(text string) ([]int, error) {
	var all []int
	for _, field := range words(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("ValidCommands is no list of numbers")
		}
		if len(all) == maxCommands {
			return nil, fmt.Errorf("ValidCommands has more than %d entries", maxCommands)
		}
		all = append(all, n)
	}
	return all, nil
}

func commandList(all []int) string {
	var b []byte
	for i, n := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
)

// decision is what two policies come to.
type decision struct {
	authenticate, required bool
	encrypt, integrity     bool
	aes                    bool
	ciphers                []cedar.Cipher // of datagrams, that both have
	ecdh                   string         // the peer's public key; "" = no exchange
	methods                []authn.Method
	duration, lease        time.Duration
	leased                 bool
}

// decideServer settles a client's ad with our policy.
func decideServer(p Policy, ad literals) (decision, error) {
	var d decision
	wish, ours := requirement(ad, "AuthenticationNew"), p.Authentication
	if _, ok := ad.find("AuthenticationNew"); !ok {
		// A client from before 23.10 cannot have encryption without.
		wish, ours = requirement(ad, "Authentication"), p.old()
	}
	var ok bool
	if d.authenticate, ok = decide(wish, ours); !ok {
		return d, disagree("authentication", wish, ours)
	}
	d.required = wish == Required || ours == Required
	theirs := requirement(ad, "Encryption")
	if d.encrypt, ok = decide(theirs, p.Encryption); !ok {
		return d, disagree("encryption", theirs, p.Encryption)
	}
	theirs = requirement(ad, "Integrity")
	if d.integrity, ok = decide(theirs, p.Integrity); !ok {
		return d, disagree("integrity", theirs, p.Integrity)
	}
	methods, _ := authn.ParseMethods(ad.str("AuthMethods"))
	d.methods = common(p.Methods, methods)
	for _, name := range words(ad.str("CryptoMethods")) {
		d.aes = d.aes || p.AES && cryptoName(name) == "AES"
	}
	d.ciphers = p.commonCiphers(words(ad.str("CryptoMethods")))
	if d.aes {
		d.ecdh = ad.str("ECDHPublicKey")
		if d.authenticate {
			d.encrypt, d.integrity = true, true
		}
	}
	switch {
	case (d.encrypt || d.integrity) && !d.aes:
		return d, fmt.Errorf("the two sides have no cipher in common; AES is the one that is spoken here")
	case (d.encrypt || d.integrity) && d.ecdh == "" && !d.authenticate:
		return d, fmt.Errorf("there is to be encryption, but the client sent no ECDHPublicKey")
	}
	d.duration = min(seconds(ad.str("SessionDuration")), p.Duration)
	if n, ok := ad.number("SessionLease"); ok {
		d.leased = true
		d.lease = lease(time.Duration(max(0, min(n, maxSeconds)))*time.Second, p.Lease)
	}
	return d, nil
}

// commonCiphers returns what both sides have for datagrams, in our order.
func (p *Policy) commonCiphers(theirs []string) []cedar.Cipher {
	var both []cedar.Cipher
	for _, c := range p.Ciphers {
		if slices.ContainsFunc(theirs, func(m string) bool { return cryptoName(m) == string(c) }) {
			both = append(both, c)
		}
	}
	return both
}

// cryptoList is how AES and the ciphers of datagrams are sent.
func cryptoList(ciphers []cedar.Cipher) string {
	all := "AES"
	for _, c := range ciphers {
		all += "," + string(c)
	}
	return all
}

// lease returns the smaller of two that are not zero.
func lease(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// seconds reads a duration that is sent as text; what cannot be read is none.
func seconds(text string) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, maxSeconds)) * time.Second
}

// requirement reads a wish of the peer; one that is missing or unknown is
// NEVER.
func requirement(ad literals, name string) Requirement {
	r, _ := ParseRequirement(ad.str(name))
	return r
}

func disagree(feature string, client, server Requirement) error {
	return fmt.Errorf("no agreement on %s: %s for the client, %s for the server", feature, client, server)
}

// decideClient reads the server's decision and holds it against our policy: a
// server may not take from us what we demand, nor give what we refuse.
func decideClient(p Policy, reply literals) (decision, error) {
	var d decision
	for _, f := range []struct {
		name string
		on   *bool
		ours Requirement
	}{
		{"Authentication", &d.authenticate, p.Authentication},
		{"Encryption", &d.encrypt, p.Encryption},
		{"Integrity", &d.integrity, p.Integrity},
	} {
		text := reply.str(f.name)
		if text == "" {
			return d, fmt.Errorf("the server says nothing of %s", f.name)
		}
		*f.on = reply.yes(f.name)
		if f.ours == Required && !*f.on {
			return d, fmt.Errorf("%s is REQUIRED here and the server wants none", f.name)
		}
		if f.ours == Never && *f.on && f.name == "Authentication" {
			return d, fmt.Errorf("%s is NEVER here and the server demands it", f.name)
		}
	}
	d.required = true
	if v, ok := reply.boolean("AuthRequired"); ok {
		d.required = v
	}
	d.required = d.required || p.Authentication == Required
	text := reply.str("AuthMethodsList")
	if text == "" {
		text = reply.str("AuthMethods")
	}
	offered, _ := authn.ParseMethods(text)
	for _, m := range offered {
		if slices.Contains(p.Methods, m) {
			d.methods = append(d.methods, m)
		}
	}
	if first := words(reply.str("CryptoMethods")); len(first) > 0 {
		if d.aes = p.AES && cryptoName(first[0]) == "AES"; !d.aes {
			return d, fmt.Errorf("the server chose the cipher %q, which is not spoken here", clip(first[0]))
		}
		d.ciphers = p.commonCiphers(words(reply.str("CryptoMethodsList")))
		d.ecdh = reply.str("ECDHPublicKey")
	}
	if (d.encrypt || d.integrity) && !d.aes {
		return d, fmt.Errorf("the server wants encryption but named no cipher; the two sides may have none in common")
	}
	d.duration = min(seconds(reply.str("SessionDuration")), p.Duration)
	if n, ok := reply.number("SessionLease"); ok {
		d.lease = time.Duration(max(0, min(n, maxSeconds))) * time.Second
	}
	return d, nil
}

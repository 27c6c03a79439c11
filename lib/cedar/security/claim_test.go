// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

const keyText = "44cbfbc9977d3617e570bc5f09b7b6cb8d35130f3435e6f03911383015c3f1d4"

// The recorded claim ids read, write and derive their recorded keys.
func TestRecordedClaims(t *testing.T) {
	t.Parallel()
	for _, v := range cedartest.LoadDir(t, vectors) {
		for _, s := range v.Secrets.Claims {
			id, err := ParseCapabilityID(s.ClaimID)
			if err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			if id.Session != s.SessionID || !id.HasInfo || !bytes.Equal(id.sessionKey(), s.SessionKey) {
				t.Errorf("%s: session %q, key derived right: %t", v.Name, id.Session, bytes.Equal(id.sessionKey(), s.SessionKey))
			}
			want := DefaultInfo("25.14.0")
			if v.Name == "ep-claim-minimal-info" {
				want = Info{Encryption: true, Integrity: true, Crypto: []string{"AES"}}
			}
			if diff := cmp.Diff(want, id.Info); diff != "" {
				t.Errorf("%s: %s", v.Name, diff)
			}
			if id.Reveal() != s.ClaimID {
				t.Errorf("%s: written %q, recorded %q", v.Name, id.Reveal(), s.ClaimID)
			}
		}
		if f := v.Secrets.FileTransfer; f != nil {
			i, err := ParseInfo(f.SessionInfo)
			if err != nil || i.Encryption || i.Integrity || i.Crypto[0] != "AES" {
				t.Errorf("%s: info of the file transfer %+v, %v", v.Name, i, err)
			}
			if key := DeriveKey([]byte(f.KeyText)); !bytes.Equal(key, f.SessionKey) {
				t.Errorf("%s: wrong key of the file transfer", v.Name)
			}
		}
	}
}

// The recorded key exchange.
func TestRecordedAgreement(t *testing.T) {
	t.Parallel()
	n := 0
	for _, v := range cedartest.LoadDir(t, vectors) {
		for _, c := range v.Connections {
			s := c.Session
			if len(s.ECDHPrivate) == 0 || len(s.PeerECDHPublic) == 0 {
				continue
			}
			private, err := ecdh.P256().NewPrivateKey(s.ECDHPrivate)
			if err != nil {
				t.Fatal(err)
			}
			a := p256{private}
			if want := base64.StdEncoding.EncodeToString(s.ECDHPublic); a.Public() != want {
				t.Errorf("%s: public %s, want %s", c, a.Public(), want)
			}
			secret, err := a.Secret(base64.StdEncoding.EncodeToString(s.PeerECDHPublic))
			if err != nil || !bytes.Equal(secret, s.ECDHShared) || !bytes.Equal(DeriveKey(secret), s.Key) {
				t.Errorf("%s: %v, or another key", c, err)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("no exchange is recorded")
	}
}

func TestBadAgreement(t *testing.T) {
	t.Parallel()
	a, err := newKeyExchange(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	off := make([]byte, 65)
	off[0] = 4
	for _, public := range []string{"", "!", "AAAA", base64.StdEncoding.EncodeToString(off), strings.Repeat("A", 4096), base64.StdEncoding.EncodeToString([]byte{0})} {
		if _, err := a.Secret(public); err == nil {
			t.Errorf("%.20q is taken for a point", public)
		}
	}
}

func TestCapabilityID(t *testing.T) {
	t.Parallel()
	info := Info{Encryption: true, Integrity: true, Crypto: []string{"AES"}, Expires: time.Unix(1795188226, 0), ValidCommands: []int{60005, 484}}
	const sinful = "<[2001:db8::1]:9618?CCBID=10.0.0.1:9618%3faddrs#12&sock=startd_1_ab>"
	for _, test := range []struct {
		text    string
		session string
		info    Info
		hasInfo bool
	}{
		{sinful + "#1#2#" + info.String() + keyText, sinful + "#1#2", info, true},
		{sinful + "#1#2#" + keyText, sinful + "#1#2", Info{}, false},
		{"admin_" + sinful + "#1#2#[Encryption=\"YES\";]" + keyText + "\x00", "admin_" + sinful + "#1#2", Info{Encryption: true}, true},
		{"family:abcdef#[Encryption=\"NO\";CryptoMethodsList=\"AES.BLOWFISH\";CryptoMethods=\"BLOWFISH\";]" + keyText, "family:abcdef", Info{Crypto: []string{"AES", "BLOWFISH"}}, true},
		{"filetrans.x#[CryptoMethodsList=\"AES,3DES\"; Integrity = \"YES\" ]" + keyText, "filetrans.x", Info{Integrity: true, Crypto: []string{"AES", "3DES"}}, true},
	} {
		id, err := ParseCapabilityID(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.session, err)
			continue
		}
		if id.Session != test.session || id.HasInfo != test.hasInfo || id.key != keyText {
			t.Errorf("%s: session %q, info %t, key right %t", test.session, id.Session, id.HasInfo, id.key == keyText)
		}
		if diff := cmp.Diff(test.info, id.Info, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("%s: %s", test.session, diff)
		}
	}
	for _, text := range []string{
		"", "#", "x", "x#", "#key", "x y#key", "x#[Encryption=\"YES\"" + keyText, "x#[A]" + keyText, "x#[A=1+1;]" + keyText, "x#[ValidCommands=\"1,x\";]" + keyText,
		strings.Repeat("x", maxLiteralLine) + "#y",
	} {
		if id, err := ParseCapabilityID(text); err == nil {
			t.Errorf("%.40q is read as %v", text, id.Session)
		} else if strings.Contains(err.Error(), keyText) {
			t.Errorf("the error holds the key: %v", err)
		}
	}
}

// No way of printing shows a key.
func TestKeysPrintAsStars(t *testing.T) {
	t.Parallel()
	id := NewCapabilityID("<1.2.3.4:5>#1#2", DefaultInfo("25.14.0"), keyText)
	s := &Session{ID: "s", Key: id.sessionKey(), Peer: Peer{User: "x@y"}}
	var texts []string
	for _, v := range []any{id, &id, s, *s, s.Key, []any{id, s.Key}, map[string]any{"k": s.Key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
		if b, err := json.Marshal(v); err == nil {
			texts = append(texts, string(b))
		}
	}
	raw := fmt.Sprintf("%x", []byte(s.Key))
	for _, text := range texts {
		if strings.Contains(text, keyText) || strings.Contains(text, raw) || strings.Contains(text, strings.Trim(fmt.Sprint([]byte(s.Key)), "[]")) {
			t.Errorf("shown: %s", text)
		}
	}
}

func FuzzCapabilityID(f *testing.F) {
	f.Add("<1.2.3.4:5?a=b>#1#2#" + DefaultInfo("25.14.0").String() + keyText)
	f.Add("family:x#[Encryption=\"YES\";]k")
	f.Add("x#[ValidCommands=\"1,2\";SessionExpires=5;]k")
	f.Add("[#]#[]")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseCapabilityID(text)
		if err != nil {
			return
		}
		again, err := ParseCapabilityID(id.Reveal())
		if err != nil || again.Session != id.Session || again.key != id.key {
			t.Fatalf("%q: %q does not read back: %v", text, id.Reveal(), err)
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

const inheritedKey = "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"

// The first three are what a condor_master 25.14.0 handed to a daemon.
var inheritedSockets = []struct {
	name, text string
	udp        bool
	want       cedar.InheritedSocket
}{
	{"command socket", "9*6*0*0*0*0***1**0*0*0*0*0*0*0*", false, cedar.InheritedSocket{FD: 9, State: 6, SpecialState: 1}},
	{"UDP command socket", "11*2*0*0*0*0***0**", true, cedar.InheritedSocket{FD: 11, State: 2, UDP: true}},
	{"shared port endpoint", "11*6*0*0*0*0***1**0*0*0*0*0*0*0*", false, cedar.InheritedSocket{FD: 11, State: 6, SpecialState: 1}},
	{
		"AES stream",
		"17*3*20*1*18*36*submit@example.org*$CondorVersion:_25.14.0_2026-11-20_$*0*<192.0.2.1:9618>*64*3*1*0A0B*" +
			inheritedKey + "*1*1*1*0*4*DEADBEEF*0*",
		false,
		cedar.InheritedSocket{
			FD: 17, State: 3, Timeout: 20, TriedAuth: 1, User: "submit@example.org",
			PeerVersion: "$CondorVersion: 25.14.0 2026-11-20 $", Peer: "<192.0.2.1:9618>",
			Cipher: 3, Encrypting: 1, CipherState: []byte{10, 11}, Key: inheritedKey,
			SentFinal: true, ReceivedFinal: true, SentFinished: true, Digests: []byte{0xde, 0xad, 0xbe, 0xef},
		},
	},
	{
		"BLOWFISH with MD", "4*3*20*1*3*0*a*b**0*<192.0.2.1:1>*4*1*0*ABCD*0*0*0*0*0*4*FFFF*", false,
		cedar.InheritedSocket{
			FD: 4, State: 3, Timeout: 20, TriedAuth: 1, User: "a*b", Peer: "<192.0.2.1:1>", Cipher: 1, Key: "ABCD", MDKey: "FFFF",
		},
	},
}

func TestInheritedSocket(t *testing.T) {
	t.Parallel()
	for _, tt := range inheritedSockets {
		got, err := cedar.ParseInheritedSocket(tt.text, tt.udp)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if text := got.Text().Reveal(); text != tt.text {
			t.Errorf("%s: prints as\n%s, want\n%s", tt.name, text, tt.text)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(verb, got); strings.Contains(s, "AABBCC") || strings.Contains(s, "FFFF") {
				t.Errorf("%s: a key is in %s", tt.name, s)
			}
		}
	}
}

func TestBadInheritedSockets(t *testing.T) {
	t.Parallel()
	good := "4*3*20*1*0*0***0*<192.0.2.1:1>*64*3*1*0A0B*" + inheritedKey + "*0*0*0*0*0*0*"
	if _, err := cedar.ParseInheritedSocket(good, false); err != nil {
		t.Fatal(err)
	}
	for i := range good { // cut off anywhere
		if _, err := cedar.ParseInheritedSocket(good[:i], false); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q is taken: %v", good[:i], err)
		}
	}
	for name, text := range map[string]string{
		"more":             good + "1*",
		"wrong key length": strings.Replace(good, "*64*", "*62*", 1),
		"no hexadecimal":   strings.Replace(good, "AABB", "AAXX", 1),
		"no number":        strings.Replace(good, "20", "2x", 1),
		"user too long":    strings.Replace(good, "*0*0***", "*9999*0***", 1),
		"negative length":  strings.Replace(good, "*0*0***", "*-1*0***", 1),
		"no address":       strings.Replace(good, "<", "", 1),
		"too long":         good + strings.Repeat("0*", 64<<10),
	} {
		_, err := cedar.ParseInheritedSocket(text, false)
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "CCDDEE") {
			t.Errorf("%s: a key is in %v", name, err)
		}
	}
}

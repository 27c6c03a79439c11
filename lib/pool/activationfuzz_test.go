// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

// FuzzCommandAd sends ads as commands. Each is answered in the known form, and
// none finds a starter without the secret of its claim.
func FuzzCommandAd(f *testing.F) {
	for _, name := range []string{"ep-reconnect-new-shadow", "ep-reconnect-same-shadow"} {
		for _, c := range cedartest.Load(f, vectors+name+".json").Connections {
			for _, m := range c.Messages {
				if m.Note == "CA_CMD ad" {
					f.Add(strings.Join(*m.Items[0].Ad, "\n"))
				}
			}
		}
	}
	for _, text := range []string{"", "Command = 7", "Command = \"CA_LOCATE_STARTER\"\nClaimId = \"<\"\nGlobalJobId = \"\"\nScheddIpAddr = \"\"",
		"Command = Command", "Command = \"CA_UPDATE_MACHINE_AD\"\nState = \"Owner\"\nX = X"} {
		f.Add(text)
	}
	known := []string{"Success", "Failure", "InvalidRequest", "NotAuthorized"}
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		s := newStation(t, stationOptions{text: twoStatic, quiet: true})
		s.idle()
		id := s.offered("slot1")
		p := s.peer(id)
		p.claim(id, smallJob)
		conn := p.open(1200, id.Public)
		defer conn.Close()
		conn.PutAd(ad, cedar.AdOptions{})
		if conn.EndMessage() != nil {
			return
		}
		reply, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return // what cannot be read is not answered
		}
		if r, _ := reply.EvalString("Result", nil); !slices.Contains(known, r) {
			t.Errorf("%q is answered %v", text, reply)
		}
		if at, ok := reply.Lookup("StarterIpAddr"); ok {
			t.Errorf("%q finds %v", text, at)
		}
	})
}

// FuzzActivation sends whatever there is after the id of a claim. The claim
// stays, and a job runs if and only if the answer says so.
func FuzzActivation(f *testing.F) {
	f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { c.PutInt(2); c.PutAd(adOf(f, jobToRun), cedar.AdOptions{}) }))
	f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { c.PutInt(2); c.PutAd(classad.NewAd(), cedar.AdOptions{}) }))
	f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { c.PutInt(2) }))
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newStation(t, stationOptions{text: twoStatic, quiet: true})
		s.idle()
		id := s.offered("slot1")
		p := s.peer(id)
		p.claim(id, smallJob)
		s.starts(nobodyStarts(s))
		conn := p.open(444, id.Public)
		defer conn.Close()
		conn.PutSecret(claim.Secret(id.Wire()))
		conn.PutBytes(b)
		if conn.EndMessage() != nil {
			return
		}
		n, err := conn.Int()
		if err == nil && n == 1 {
			if _, err := conn.Int(); err == nil {
				t.Error("a starter speaks that says nothing")
			}
		}
		if got := p.aboutClaim(413, id.Public, id); got != "Start = true" {
			t.Errorf("after %q 413 is answered %s", b, got)
		}
		if got := s.view("slot1").Pair.String(); got != "Claimed/Idle" {
			t.Errorf("after %q the slot is %s", b, got)
		}
	})
}

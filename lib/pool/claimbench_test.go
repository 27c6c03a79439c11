// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/pool"
)

// BenchmarkRequestClaim is a request and the release of what it got, each on a
// connection of its own that resumes the session of its claim: authorization,
// policy, the carving of a dynamic slot and its end. Requests are counted, not
// releases.
func BenchmarkRequestClaim(b *testing.B) {
	s := newStation(b, stationOptions{text: inBits, quiet: true})
	s.idle()
	job := adOf(b, smallJob+"_condor_SEND_LEFTOVERS = true\n")
	to := mustSinful(b)
	next := s.offered("slot1")
	p := s.peer(next)
	b.ReportAllocs()
	for b.Loop() {
		conn, _, err := p.Command(b.Context(), to, 442, security.Options{Session: next.Public})
		if err != nil {
			b.Fatal(err)
		}
		if err := putRequest(conn, next, job); err != nil {
			b.Fatal(err)
		}
		g, err := readGrants(conn)
		if err != nil || g.code != 5 {
			b.Fatal(g.code, err)
		}
		_ = conn.Close()
		conn, _, err = p.Command(b.Context(), to, 443, security.Options{Session: g.ids[0].Public})
		if err != nil {
			b.Fatal(err)
		}
		conn.PutSecret(claim.Secret(g.ids[0].Wire()))
		if err := conn.EndMessage(); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Int(); err == nil {
			b.Fatal("RELEASE_CLAIM was answered")
		}
		_ = conn.Close()
		p.Sessions.Forget(next.Public)
		next = g.rest
		p.know(next)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}

// BenchmarkReadRequest is the reading of a request of 3 KiB alone.
func BenchmarkReadRequest(b *testing.B) {
	var text strings.Builder
	text.WriteString(smallJob)
	for i := range 80 {
		text.WriteString("Attribute" + itoa(i) + " = \"a value of some length\"\n")
	}
	out := cedartest.Encode(b, false, func(c *cedar.Conn) {
		c.PutSecret("<127.0.0.1:9620>#1#1#[Encryption=\"YES\";]0123456789abcdef")
		c.PutAd(adOf(b, text.String()), cedar.AdOptions{})
		c.PutString("<127.0.0.1:9700>")
		c.PutInt(20)
		c.PutInt(0)
	})
	b.ReportAllocs()
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		if _, err := pool.ReadRequest(cedar.MessageReader(out, cedar.Limits{})); err != nil {
			b.Fatal(err)
		}
	}
}

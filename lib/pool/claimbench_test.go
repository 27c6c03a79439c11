// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
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

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest_test

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// Whatever a starter asks, the request reads or it does not; one that reads is
// answered by a shadow with files without harm, and says the same when it is
// written again.
func FuzzRequest(f *testing.F) {
	for _, call := range shadow.Calls() {
		r := shadow.Request{Call: call, Ints: [5]int64{3, 2, 1, 1, 1}, Texts: [2]string{"f", "g"}, Ad: classad.NewAd(), Data: []byte("ab")}
		f.Add(cedartest.Encode(f, false, r.Put))
	}
	for _, c := range cedartest.Load(f, vectors+"ep-claim-job-complete.json").Connections {
		for _, m := range syscalls(c) {
			if m.Event == "" && m.From == cedartest.Server {
				f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { cedartest.PutItems(c, m.Items) }))
			}
		}
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 120, 0, 0, 0, 0, 0, 0, 0, 3, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	root := rootOf(f, map[string]string{"f": "text"})
	f.Fuzz(func(t *testing.T, b []byte) {
		request, err := shadow.ReadRequest(cedar.MessageReader(b, cedar.Limits{Message: 1 << 20, AdLines: 1000}))
		if err != nil {
			return
		}
		if once, err := cedar.WriteMessage(request.Put); err == nil && request.Data != nil {
			again, err := shadow.ReadRequest(cedar.MessageReader(once, cedar.Limits{}))
			if err != nil {
				t.Fatal(err)
			}
			twice, err := cedar.WriteMessage(again.Put)
			if err != nil {
				t.Fatal(err)
			}
			if err := cedartest.Diff(once, twice); err != nil {
				t.Error(err)
			}
		}
		if len(b) == 0 {
			return
		}
		starter, peer := cedartest.Pipe()
		asking := cedar.NewConn(starter, cedar.Limits{})
		asking.PutBytes(b)
		if err := asking.EndMessage(); err != nil {
			t.Fatal(err)
		}
		_ = starter.Close()
		s := shadowtest.New(shadowtest.Job{Open: true, Root: root, Claim: newClaim(t)})
		_, _ = s.Serve(t.Context(), cedar.NewConn(peer, cedar.Limits{})) // the answer finds nobody
		_ = peer.Close()
		if len(s.Calls()) != 1 {
			t.Errorf("%d calls", len(s.Calls()))
		}
	})
}

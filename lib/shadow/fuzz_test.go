// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

// small bounds what a fuzzed message can ask for.
var small = cedar.Limits{Message: 1 << 20, String: 1 << 16, AdLines: 1000}

// Whatever a shadow answers to whatever call, reading it ends without harm,
// and what was read can be written and reads the same again.
func FuzzReply(f *testing.F) {
	calls := shadow.Calls()
	for i, call := range calls {
		reply := shadow.Reply{Value: 2, Text: "ab\n\n", Data: []byte("ab"), Ad: classad.NewAd(), Ads: []*classad.Ad{classad.NewAd()}}
		refused := shadow.Reply{Value: -1, Errno: cedar.ENOENT, Ad: classad.NewAd()}
		for _, r := range []shadow.Reply{reply, refused} {
			if call != shadow.CallUlog {
				f.Add(uint8(i), cedartest.Encode(f, false, func(c *cedar.Conn) { r.Put(c, call) }))
			}
		}
	}
	for _, x := range conversations(cedartest.Load(f, vectors+"ep-claim-job-complete.json"))[0] {
		if x.reply != nil {
			for i := range calls {
				if int64(calls[i]) == *x.ask.Items[0].Int {
					f.Add(uint8(i), cedartest.Encode(f, false, func(c *cedar.Conn) { cedartest.PutItems(c, x.reply.Items) }))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		request := &shadow.Request{Call: calls[int(n)%len(calls)], Ints: [5]int64{1 << 16, 1 << 16}, Data: make([]byte, 1<<16)}
		conn := cedar.MessageReader(b, small)
		reply, err := shadow.ReadReply(conn, request)
		if err != nil || conn.EndOfMessage() != nil {
			return
		}
		if len(reply.Data) > 1<<16 && request.Call != shadow.CallGetfile {
			t.Fatalf("%s brought %d bytes", request.Call, len(reply.Data))
		}
		if reply.Text == "" && reply.Data != nil { // a block is written from its text
			reply.Text = string(reply.Data)
		}
		put := func(r *shadow.Reply) []byte {
			b, err := cedar.WriteMessage(func(c *cedar.Conn) { r.Put(c, request.Call) })
			if err != nil {
				t.Skip(err) // a line that we would not write
			}
			return b
		}
		switch request.Call {
		case shadow.CallStat, shadow.CallLstat, shadow.CallFstat, shadow.CallStatfs, shadow.CallFstatfs:
			return // padding is not kept
		}
		once := put(&reply)
		again, err := shadow.ReadReply(cedar.MessageReader(once, small), request)
		if err != nil {
			t.Fatalf("%s: %v", request.Call, err)
		}
		if err := cedartest.Diff(once, put(&again)); err != nil {
			t.Errorf("%s: %v", request.Call, err)
		}
	})
}

// Texts about files read or they do not; what reads says the same again.
func FuzzStat(f *testing.F) {
	for _, s := range []string{statLine, "61267 4096 100 50 40 30 20\n", "a\n" + statLine + "\n\n", "a\nb\n\n", "", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := shadow.ParseStat(text); err == nil {
			if again, err := shadow.ParseStat(s.String()); err != nil || again != s {
				t.Errorf("%q: %v, %v", text, again, err)
			}
		}
		if s, err := shadow.ParseStatfs(text); err == nil {
			if again, err := shadow.ParseStatfs(s.String()); err != nil || again != s {
				t.Errorf("%q: %v, %v", text, again, err)
			}
		}
		names, err := shadow.ParseDir(text)
		for _, name := range names {
			if err != nil || name == "" {
				t.Errorf("%q: %q, %v", text, names, err)
			}
		}
		if entries, err := shadow.ParseLongDir(text); err == nil && 2*len(entries) != len(names) {
			t.Errorf("%q: %d entries of %d lines", text, len(entries), len(names))
		}
	})
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest_test

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

const vectors = "../../cedar/testdata/vectors/"

// pair returns the two ends of a stream under AES.
func pair(t testing.TB) (starter, peer *cedar.Conn) {
	t.Helper()
	a, b := cedartest.Pipe()
	starter, peer = cedar.NewConn(a, cedar.Limits{Timeout: -1}), cedar.NewConn(b, cedar.Limits{Timeout: -1})
	for _, c := range []*cedar.Conn{starter, peer} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return starter, peer
}

// syscalls returns the messages of a recorded connection that belong to the
// conversation of starter and shadow.
func syscalls(c *cedartest.Connection) []*cedartest.Message {
	for i, m := range c.Messages {
		if m.Note == "activation accepted" || m.Note == "CA reply, reconnect accepted" {
			return c.Messages[i+1:]
		}
	}
	return nil
}

// recordedJob is the job of a recorded conversation.
func recordedJob(t *testing.T, v *cedartest.Vector, messages []*cedartest.Message) shadowtest.Job {
	t.Helper()
	var j shadowtest.Job
	for _, m := range messages {
		switch m.Note {
		case "get_job_info: result":
			r, err := shadow.ReadReply(cedartest.Reader(t, m.Plaintext, true), &shadow.Request{Call: shadow.CallGetJobInfo})
			if err != nil {
				t.Fatal(err)
			}
			j.Ad = r.Ad
		case "get_sec_session_info: result":
			r, err := shadow.ReadReply(cedartest.Reader(t, m.Plaintext, true), &shadow.Request{Call: shadow.CallSessions})
			if err != nil {
				t.Fatal(err)
			}
			j.Transfer = shadow.Session{ID: r.Texts[3], Info: r.Texts[4], Key: cedar.Secret(r.Texts[5])}
			for _, c := range v.Secrets.Claims {
				if c.SessionID != r.Texts[0] {
					continue
				}
				if j.Claim, err = claim.ParseID(c.ClaimID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return j
}

// Every recorded starter, played against our shadow: the answers are those of
// the recorded shadow to the byte.
func TestReplayShadow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ep-claim-job-complete", "ep-claim-hold", "ep-pslot-leftovers", "ep-reconnect-same-shadow", "ep-reconnect-new-shadow",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cedartest.Load(t, vectors+name+".json")
			played := 0
			for _, c := range v.Connections {
				messages := syscalls(c)
				if messages == nil {
					continue
				}
				played++
				s := shadowtest.New(recordedJob(t, v, messages))
				starter, peer := pair(t)
				peer.SetPeerVersion("25.14.0")
				ended := make(chan shadowtest.End, 1)
				go func() {
					end, err := s.Serve(t.Context(), peer)
					if err != nil {
						t.Errorf("%s: %v", c, err)
					}
					ended <- end
				}()
				var held, exited bool
				for _, m := range messages {
					switch {
					case m.Event != "":
					case m.From == cedartest.Server:
						held = held || strings.HasPrefix(m.Note, "ulog")
						exited = exited || strings.HasPrefix(m.Note, "job_exit")
						starter.PutBytes(m.Plaintext)
						if err := starter.EndMessage(); err != nil {
							t.Fatal(err)
						}
					default:
						got, err := starter.Rest()
						if err != nil {
							t.Fatalf("%s: %v", m.Note, err)
						}
						if err := starter.EndOfMessage(); err != nil {
							t.Fatal(err)
						}
						if err := cedartest.Diff(m.Plaintext, got); err != nil {
							t.Errorf("%s: %v", m.Note, err)
						}
					}
				}
				if !held && !exited {
					_ = starter.Close()
				}
				if end := <-ended; (end.Held != nil) != held || (end.Exit != nil) != exited {
					t.Errorf("%s: ended with %+v", c, end)
				}
			}
			if played == 0 {
				t.Error("the recording has no calls")
			}
		})
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

const vectors = "../cedar/testdata/vectors/"

// recordedRuns are the recordings with a conversation of a starter.
var recordedRuns = []string{
	"ep-claim-job-complete", "ep-claim-hold", "ep-pslot-leftovers", "ep-reconnect-same-shadow", "ep-reconnect-new-shadow",
}

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

// exchange is one recorded call.
type exchange struct {
	ask, reply *cedartest.Message // reply is nil where there was none
}

// conversations returns the calls of a recording, one list for each
// connection: the caller is the end that accepted.
func conversations(v *cedartest.Vector) [][]exchange {
	var all [][]exchange
	for _, c := range v.Connections {
		var calls []exchange
		var under bool // ACTIVATE_CLAIM or CA_RECONNECT_JOB was accepted
		for _, m := range c.Messages {
			switch {
			case m.Event != "":
			case m.Note == "activation accepted" || m.Note == "CA reply, reconnect accepted":
				under = true
			case !under:
			case m.From == cedartest.Server:
				calls = append(calls, exchange{ask: m})
			default:
				calls[len(calls)-1].reply = m
			}
		}
		if len(calls) > 0 {
			all = append(all, calls)
		}
	}
	return all
}

// inOrder returns a message with the lines of its ads sorted and the blanks in
// their expressions as we write them: these are a matter of taste.
func inOrder(t testing.TB, items []cedartest.Item, plain []byte) []byte {
	t.Helper()
	return cedartest.Encode(t, true, func(out *cedar.Conn) {
		in := cedartest.Reader(t, plain, true)
		for _, it := range items {
			switch {
			case it.Int != nil:
				n, _ := in.Int()
				out.PutInt(n)
			case it.Ad != nil:
				_, o := it.RawAd()
				ad, err := in.RawAd(o)
				if err != nil {
					t.Fatal(err)
				}
				for i, line := range ad.Lines {
					name, text, _ := strings.Cut(line, " = ")
					e, err := classad.ParseExpr(text, classad.Old)
					if err != nil {
						t.Fatal(err)
					}
					ad.Lines[i] = name + " = " + e.String()
				}
				slices.Sort(ad.Lines)
				out.PutRawAd(ad, o)
			default:
				s, err := in.String()
				if err != nil {
					t.Fatal(err)
				}
				out.PutString(s)
			}
		}
		if err := in.EndOfMessage(); err != nil {
			t.Fatal(err)
		}
	})
}

// again makes the call that a request is, and returns what the caller got in
// the form of an answer.
func again(ctx context.Context, c *shadow.Caller, r *shadow.Request) (got shadow.Reply, err error) {
	switch r.Call {
	case shadow.CallGetJobInfo:
		got.Ad, err = c.JobInfo(ctx)
	case shadow.CallRegisterStarterInfo:
		err = c.RegisterStarter(ctx, r.Ad)
	case shadow.CallSessions:
		var s shadow.Sessions
		var ok bool
		s, ok, err = c.Sessions(ctx)
		if !ok {
			err = errors.Join(err, errors.New("no sessions"))
		}
		got.Value = 1
		got.Texts = [6]string{s.Reconnect.ID, s.Reconnect.Info, s.Reconnect.Key.Reveal(), s.Transfer.ID, s.Transfer.Info, s.Transfer.Key.Reveal()}
	case shadow.CallRegisterJobInfo:
		err = c.RegisterJob(ctx, r.Ad)
	case shadow.CallBeginExecution:
		err = c.BeginExecution(ctx)
	case shadow.CallUlog:
		err = c.Log(ctx, r.Ad)
	case shadow.CallNotify:
		err = c.Notify(ctx, r.Ad)
		got.Value = -3
	case shadow.CallJobExit:
		err = c.JobExit(ctx, int(r.Ints[0]), shadow.ExitReason(r.Ints[1]), r.Ad)
	default:
		err = fmt.Errorf("%s was not recorded", r.Call)
	}
	return got, err
}

// Every recorded call, made again through a Caller from its decoded values:
// the same bytes go out, up to the order of the lines of ads, and what the
// recorded shadow answered is understood in full.
func TestReplayCalls(t *testing.T) {
	t.Parallel()
	for _, name := range recordedRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			for _, calls := range conversations(cedartest.Load(t, vectors+name+".json")) {
				starter, peer := pair(t)
				caller := shadow.New(starter, shadow.Options{})
				for _, x := range calls {
					replayCall(t, caller, peer, x)
					made++
				}
				caller.End()
			}
			if made == 0 {
				t.Error("the recording has no calls")
			}
		})
	}
}

func replayCall(t *testing.T, caller *shadow.Caller, peer *cedar.Conn, x exchange) {
	t.Helper()
	request, err := shadow.ReadRequest(cedartest.Reader(t, x.ask.Plaintext, true))
	if err != nil {
		t.Fatalf("%s: %v", x.ask.Note, err)
	}
	answered := make(chan error, 1)
	go func() {
		b, err := peer.Rest()
		if err == nil {
			err = peer.EndOfMessage()
		}
		if err == nil {
			err = cedartest.Diff(inOrder(t, x.ask.Items, x.ask.Plaintext), inOrder(t, x.ask.Items, b))
		}
		if x.reply != nil {
			peer.PutBytes(x.reply.Plaintext)
			err = errors.Join(err, peer.EndMessage())
		}
		answered <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := again(ctx, caller, request)
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatalf("%s: %v", x.ask.Note, err)
	}
	if x.reply == nil {
		if request.Call != shadow.CallUlog {
			t.Errorf("%s: no answer was recorded", x.ask.Note)
		}
		return
	}
	// What was understood says the recorded bytes again.
	back := cedartest.Encode(t, true, func(c *cedar.Conn) {
		c.SetPeerVersion("25.14.0")
		got.Put(c, request.Call)
	})
	if err := cedartest.Diff(inOrder(t, x.reply.Items, x.reply.Plaintext), inOrder(t, x.reply.Items, back)); err != nil {
		t.Errorf("%s: %v", x.reply.Note, err)
	}
}

// The hold event of the recording is the one we make, but for the host, which
// the shadow knows, and for saying that it is critical, which is so unless the
// event denies it.
func TestReplayHold(t *testing.T) {
	t.Parallel()
	for _, x := range conversations(cedartest.Load(t, vectors+"ep-claim-hold.json"))[0] {
		if !strings.HasPrefix(x.ask.Note, "ulog") {
			continue
		}
		r, err := shadow.ReadRequest(cedartest.Reader(t, x.ask.Plaintext, true))
		if err != nil {
			t.Fatal(err)
		}
		want := r.Ad.Clone()
		want.Delete("ExecuteHost")
		want.Delete("CriticalError")
		got := shadow.HoldEvent("wirev holds the job\non purpose", 6, 2)
		if !got.Equal(want) {
			t.Errorf("got\n%swant\n%s", got.Text(classad.Old), want.Text(classad.Old))
		}
		return
	}
	t.Error("no event was recorded")
}

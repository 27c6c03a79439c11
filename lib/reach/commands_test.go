// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
)

func TestVacate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := "say\nmore " + strings.Repeat("ü", mostReason)
	for _, c := range []struct {
		why  string
		soft int64
		want string
	}{{"go away", 1, "go away/21/102/true"}, {"go away", 0, "go away/21/102/false"}, {long, 1, "say more " + strings.Repeat("ü", (mostReason-9)/2) + "…/21/102/true"}} {
		conn, err := w.command(command.StarterVacateJob, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		conn.PutString(c.why)
		for _, n := range []int64{21, 102, c.soft} {
			conn.PutInt(n)
		}
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Int(); n != 1 || err != nil {
			t.Fatalf("answer %d, %v; want 1", n, err)
		}
		if err := conn.EndOfMessage(); err != nil {
			t.Error("there is more than the answer:", err)
		}
		_, _ = conn.Int() // until the connection is closed: the job has been told then
		if got := w.job.told(); !strings.HasSuffix(got, c.want) {
			t.Errorf("the job was told %q, want %q", got, c.want)
		}
	}
	for line := range strings.Lines(w.log.String()) {
		if len(line) > 2*mostReason {
			t.Errorf("a peer wrote a line of %d bytes into the log", len(line))
		}
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range []int64{15, 3, 9, -4} {
		conn, err := w.command(60000, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		conn.PutInt(n)
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Int() // until it is closed
	}
	got := w.job.told()
	if strings.Count(got, "/0/0/true") != 1 || strings.Count(got, "/0/0/false") != 1 || strings.Count(got, "signal") != 2 {
		t.Errorf("the job was told %q; want one soft and one hard end", got)
	}
}

func TestAdCommandRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ request, result, why string }{
		{`Foo = 1`, "InvalidRequest", "no Command"},
		{`Command = "CA_LOCATE_STARTER"`, "InvalidRequest", "CA_LOCATE_STARTER"},
		{"Command = \"CA_\\nX\"", "InvalidRequest", "does not support"},
		{`Command = "CA_RECONNECT_JOB"`, "Failure", "the job is gone"},
	} {
		conn, err := w.command(command.CACmd, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		reply, err := ask(conn, mustAd(t, c.request))
		if err != nil {
			t.Fatalf("%s: %v", c.request, err)
		}
		result, _ := reply.EvalString("Result", nil)
		why, _ := reply.EvalString("ErrorString", nil)
		version, _ := reply.EvalString("CondorVersion", nil)
		if result != c.result || !strings.Contains(why, c.why) || version != testVersion {
			t.Errorf("%s: answer\n%s\nwant %s because of %q", c.request, reply.Text(classad.Old), c.result, c.why)
		}
	}
}

func TestOwnerSessionRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		name, claimID, info string
		job                 *classad.Ad
		retry, silent       bool
		why                 string
	}{
		{name: "another claim", claimID: testClaim().Reveal() + "0", silent: true},
		{name: "no claim", silent: true},
		{name: "no job yet", claimID: testClaim().Reveal(), retry: true, why: "not yet"},
		{name: "nobody's", claimID: testClaim().Reveal(), job: mustAd(t, "A = 1"), why: "User"},
		{name: "another cipher", claimID: testClaim().Reveal(), job: mustAd(t, `User = "a@b"`), info: `[CryptoMethods="BLOWFISH";]`, why: "AES"},
		{name: "bad info", claimID: testClaim().Reveal(), job: mustAd(t, `User = "a@b"`), info: `CryptoMethods`, why: "info"},
	} {
		w.job.set(func(j *job) { j.target.Job = c.job })
		conn, err := w.command(command.CreateJobOwnerSecSession, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		request := classad.NewAd()
		request.SetString("ClaimId", c.claimID)
		request.SetString("SessionInfo", c.info)
		reply, err := ask(conn, request)
		if c.silent {
			if err == nil {
				t.Errorf("%s: answered\n%s", c.name, reply.Text(classad.Old))
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		ok, _ := reply.EvalBool("Result", nil)
		why, _ := reply.EvalString("ErrorString", nil)
		retry, _ := reply.EvalBool("Retry", nil)
		if ok || retry != c.retry || !strings.Contains(why, c.why) {
			t.Errorf("%s: answer\n%s", c.name, reply.Text(classad.Old))
		}
	}
}

func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("_condor_stdout", "x")
	first := w.ownerSession()
	last := first
	for range mostOwnerSessions {
		last = w.ownerSession()
	}
	if n := w.socket.sessions.Len(); n != mostOwnerSessions+1 {
		t.Errorf("there are %d sessions, want %d and that of the claim", n, mostOwnerSessions)
	}
	if _, files, _, err := w.peekAt(last, "Out = true"); err != nil || len(files) != 1 {
		t.Errorf("the last session is not served: %v", err)
	}
	if _, files, _, err := w.peekAt(first, "Out = true"); err == nil {
		t.Errorf("the first session is still there: %q", files)
	}
}

func TestReconnectTakesTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken := make(chan *cedar.Conn, 1)
	w.job.reconnect = func(_ context.Context, conn *cedar.Conn, ad *classad.Ad) error {
		if key, _ := ad.EvalString("TransferKey", nil); key != "1#abc" {
			return errors.New("no key")
		}
		info := mustAd(t, "HasReconnect = true\nSlotAd = [ A = 1 ]\nCondorVersion = \"v\"")
		if err := ReplyReconnect(conn, info); err != nil {
			return err
		}
		taken <- conn
		return nil
	}
	conn, err := w.command(command.CACmd, claimSession())
	if err != nil {
		t.Fatal(err)
	}
	reply, err := ask(conn, mustAd(t, "Command = \"CA_RECONNECT_JOB\"\nTransferKey = \"1#abc\""))
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := reply.EvalString("Result", nil); r != "Success" {
		t.Errorf("answer\n%s", reply.Text(classad.Old))
	}
	if _, there := reply.Lookup("SlotAd"); there {
		t.Error("the slot ad is in the answer")
	}
	ours := <-taken
	defer ours.Close()
	ours.PutInt(288) // the conversation goes the other way from here on
	if err := ours.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Int(); n != 288 || err != nil {
		t.Errorf("got %d, %v through the connection that was taken over", n, err)
	}
	all, _ := w.socket.server.Connections()
	if all != 0 {
		t.Errorf("%d connections count for the socket, want none", all)
	}
}

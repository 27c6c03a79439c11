// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

const jobToRun = smallJob + `ClusterId = 7
ProcId = 2
GlobalJobId = "schedd#7.2#1"
JobLeaseDuration = 2400
_condor_send_activation_failure_ad = true
`

// activate asks for an activation and returns the number of the answer with
// the ad that comes with a refusal.
func (p *peer) activate(session string, id claim.ID, job string) (*cedar.Conn, int64, *classad.Ad) {
	p.s.t.Helper()
	conn := p.open(444, session)
	conn.PutSecret(claim.Secret(id.Wire()))
	conn.PutInt(2)
	conn.PutAd(adOf(p.s.t, job), cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		p.s.t.Fatal(err)
	}
	n, err := conn.Int()
	if err != nil {
		p.s.t.Fatal(err)
	}
	var ad *classad.Ad
	if conn.More() {
		if ad, err = conn.Ad(cedar.AdOptions{}); err != nil {
			p.s.t.Fatal(err)
		}
	}
	if err := conn.EndOfMessage(); err != nil {
		p.s.t.Fatal(err)
	}
	return conn, n, ad
}

// refusal prints an answer for a comparison.
func refusal(n int64, ad *classad.Ad) string {
	if ad == nil {
		return fmt.Sprint(n)
	}
	code, _ := ad.EvalInt("VacateReasonCode", nil)
	why, _ := ad.EvalString("VacateReason", nil)
	return fmt.Sprintf("%d, %d %s", n, code, why)
}

// Whoever may not run a job is told so, why, and whether to try again; the
// claim is as it was.
func TestActivationRefused(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		first, second := s.offered("slot1"), s.offered("slot2")
		p := s.peer(first, second)
		g := p.claim(first, smallJob)
		if len(g.ids) != 1 {
			t.Fatalf("%+v", g)
		}
		wrong := claim.ID{Public: first.Public, Secret: second.Secret}
		none := strings.Replace(jobToRun, "JobUniverse = 5\n", "", 1)
		for _, tt := range []struct {
			name string
			id   claim.ID
			job  string
			want string // the beginning and a part
			part string
		}{
			{"another secret", wrong, jobToRun, "0, 1034 ", "no such claim"},
			{"not claimed", second, jobToRun, "0, 1034 ", "no such claim"},
			{"no universe", g.ids[0], none, "0, 1027 ", "JobUniverse"},
			{"standard universe", g.ids[0], strings.Replace(jobToRun, "= 5\n", "= 1\n", 1), "0, 1027 ", "standard"},
			{"too big", g.ids[0], strings.Replace(jobToRun, "RequestMemory = 128", "RequestMemory = 1280000", 1), "0, 1027 ", "more than the slot has"},
			{"no reason wanted", g.ids[0], strings.Replace(none, "activation_failure_ad = true", "activation_failure_ad = false", 1), "0", ""},
		} {
			conn, n, ad := p.activate(first.Public, tt.id, tt.job)
			conn.Close()
			got := refusal(n, ad)
			if !strings.HasPrefix(got, tt.want) || !strings.Contains(got, tt.part) || (ad == nil) != (tt.want == "0") {
				t.Errorf("%s: %s, want %s…%s", tt.name, got, tt.want, tt.part)
			}
			if v := s.view("slot1"); v.Pair.String() != "Claimed/Idle" || v.Activation != "" {
				t.Errorf("%s: the slot is %v", tt.name, v.Pair)
			}
			// What a shadow does that was refused.
			if got := p.aboutClaim(403, first.Public, g.ids[0]); got != "Start = true" {
				t.Errorf("%s: then 403 is answered %s", tt.name, got)
			}
		}
		// Whose job it is may be nobody that this machine knows.
		unknown := errors.New("the submitter has no account here")
		s.admit.Store(&unknown)
		_, n, ad := p.activate(first.Public, g.ids[0], jobToRun)
		if got := refusal(n, ad); !strings.HasPrefix(got, "0, 1027 ") || !strings.Contains(got, "no account here") {
			t.Errorf("not admitted: %s", got)
		}
		_, n, ad = p.activate(first.Public, wrong, jobToRun)
		if got := refusal(n, ad); !strings.HasPrefix(got, "0, 1034 ") {
			t.Errorf("not admitted, of another claim: %s", got)
		}
		if got := len(effectsOf[ep.StartStarter](s)); got != 0 {
			t.Errorf("%d starters", got)
		}
		if strings.Contains(s.log.String(), keyOf(first)) {
			t.Error("the log has the secret")
		}
	})
}

// A claim is used for job after job. While the last starter cleans up a shadow
// is told to try again, and one whose job is over waits until it is gone.
func TestTryAgain(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		p := s.peer(id)
		p.claim(id, smallJob)
		var acts []claim.ActivationID
		s.starts(func(e ep.StartStarter, conn *cedar.Conn, _ claim.Secret) {
			conn.PutInt(-63)
			if err := conn.EndMessage(); err != nil {
				t.Error(err)
			}
			if n, err := conn.Int(); err != nil || n != int64(len(acts)) {
				t.Errorf("the shadow says %d, %v", n, err)
			}
			acts = append(acts, e.Activation)
		})
		for n := range int64(3) {
			conn, answer, _ := p.activate(id.Public, id, jobToRun)
			if answer != 1 {
				t.Fatalf("activation %d is answered %d", n, answer)
			}
			if call, err := conn.Int(); err != nil || call != -63 || conn.EndOfMessage() != nil {
				t.Fatalf("the starter says %d, %v", call, err)
			}
			conn.PutInt(n)
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := s.view("slot1").Pair.String(); got != "Claimed/Busy" {
				t.Fatalf("job %d: the slot is %s", n, got)
			}
			_, again, ad := p.activate(id.Public, id, jobToRun)
			if got := refusal(again, ad); !strings.HasPrefix(got, "0, 1032 ") {
				t.Errorf("while a job runs another one is answered %s", got)
			}
			s.event(ep.JobEnded{Activation: acts[n]})
			_, again, ad = p.activate(id.Public, id, jobToRun)
			if got := refusal(again, ad); !strings.HasPrefix(got, "2, 1028 ") {
				t.Errorf("while the starter cleans up another job is answered %s", got)
			}
			if got := p.aboutClaim(554, id.Public, id); got != "Start = true" {
				t.Errorf("554 is answered %s", got)
			}
			// The end of the job is told before the starter is gone.
			began, answered := time.Now(), make(chan string, 1)
			go func() { answered <- p.aboutClaim(413, id.Public, id) }()
			if n < 2 {
				pass(time.Second)
				s.event(ep.StarterExited{Activation: acts[n]})
			}
			if got := <-answered; got != "Start = true" {
				t.Errorf("413 is answered %s", got)
			}
			want := time.Second
			if n == 2 { // this one does not go
				want = 5 * time.Second
				s.event(ep.StarterExited{Activation: acts[n]})
			}
			if took := time.Since(began); took != want {
				t.Errorf("413 was answered after %v, want %v", took, want)
			}
			synctest.Wait()
			if got := s.view("slot1").Pair.String(); got != "Claimed/Idle" {
				t.Fatalf("after job %d the slot is %s", n, got)
			}
			conn.Close()
		}
		p.aboutClaim(443, id.Public, id)
		synctest.Wait()
		if s.view("slot1").Claimed {
			t.Error("the claim was not given back")
		}
	})
}

// What is still cleaning says so, with the number of the starter.
func TestStillCleaning(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		p := s.peer(id)
		p.claim(id, smallJob)
		s.starts(func(e ep.StartStarter, _ *cedar.Conn, _ claim.Secret) { s.event(ep.JobEnded{Activation: e.Activation}) })
		conn, _, _ := p.activate(id.Public, id, jobToRun)
		defer conn.Close()
		synctest.Wait()
		done := p.open(413, id.Public)
		defer done.Close()
		done.PutSecret(claim.Secret(id.Wire()))
		if err := done.EndMessage(); err != nil {
			t.Fatal(err)
		}
		ad, err := done.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := line(ad); got != "Start = true; StarterPID = 4711; StillCleaning = true" {
			t.Error(got)
		}
	})
}

// A shadow that hangs up between its question and the starter leaves nothing.
func TestShadowHangsUp(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		p := s.peer(id)
		p.claim(id, smallJob)
		s.starts(func(e ep.StartStarter, conn *cedar.Conn, _ claim.Secret) {
			if _, err := conn.Int(); err == nil {
				t.Error("a shadow that is gone speaks")
			}
			s.over(e.Activation)
		})
		for range 20 {
			conn := p.open(444, id.Public)
			conn.PutSecret(claim.Secret(id.Wire()))
			conn.PutInt(2)
			conn.PutAd(adOf(t, jobToRun), cedar.AdOptions{})
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			conn.Close()
			synctest.Wait()
			if got := s.view("slot1").Pair.String(); got != "Claimed/Idle" {
				t.Fatalf("the slot is %s", got)
			}
		}
		if all, _ := s.server.Connections(); all != 0 {
			t.Errorf("%d connections are left", all)
		}
		if n := len(effectsOf[ep.StartStarter](s)); n != 20 {
			t.Errorf("%d starters were to begin", n)
		}
	})
}

// The starter is found by the claim, its secret and the job, once it can be
// reached; the access point is asked about the claim where it is by then.
func TestLocateStarter(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		id, other := s.offered("slot1"), s.offered("slot2")
		p := s.peer(id, other)
		p.claim(id, smallJob)
		p.claim(other, smallJob)
		ask := func(of claim.ID, job, schedd string) string {
			t.Helper()
			conn := p.open(1200, id.Public)
			defer conn.Close()
			ad := classad.NewAd()
			for _, x := range [][2]string{{"Command", "CA_LOCATE_STARTER"}, {"ClaimId", of.Wire()}, {"GlobalJobId", job}, {"ScheddIpAddr", schedd}} {
				ad.SetString(x[0], x[1])
			}
			conn.PutAd(ad, cedar.AdOptions{})
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			reply, err := conn.Ad(cedar.AdOptions{})
			if err != nil {
				t.Fatal(err)
			}
			result, _ := reply.EvalString("Result", nil)
			why, _ := reply.EvalString("ErrorString", nil)
			at, _ := reply.EvalString("StarterIpAddr", nil)
			return strings.TrimSpace(result + " " + why + at)
		}
		const job, schedd = "schedd#7.2#1", "<127.0.0.1:9701>"
		if got := ask(id, job, schedd); got != "Failure no starter runs under the claim" {
			t.Error(got)
		}
		ended := make(chan bool)
		s.starts(func(e ep.StartStarter, _ *cedar.Conn, _ claim.Secret) { <-ended; s.over(e.Activation) })
		conn, _, _ := p.activate(id.Public, id, jobToRun)
		defer conn.Close()
		synctest.Wait()
		if got := ask(id, job, schedd); got != "Failure the starter cannot be reached yet" {
			t.Error(got)
		}
		s.event(ep.StarterReached{Activation: s.view("slot1").Activation, Address: "<127.0.0.1:4711>"})
		for _, tt := range []struct {
			id                claim.ID
			job, schedd, want string
		}{
			{claim.ID{Public: id.Public, Secret: other.Secret}, job, schedd, "Failure no such claim"},
			{claim.ID{Public: "x", Secret: "y"}, job, schedd, "Failure no such claim"},
			{other, job, schedd, "Failure no starter runs under the claim"},
			{id, "schedd#7.3#1", schedd, "Failure another job runs under the claim"},
			{id, job, "nowhere", "Success <127.0.0.1:4711>"},
			{id, job, schedd, "Success <127.0.0.1:4711>"},
		} {
			if got := ask(tt.id, tt.job, tt.schedd); got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.id, tt.job, got, tt.want)
			}
		}
		// ALIVE goes to the new address, when no starter runs any more.
		if len(s.dialed) != 0 {
			t.Fatalf("connected to %v while the starter ran", s.dialed)
		}
		close(ended)
		pass(20 * time.Minute)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		moved := false
		for _, to := range s.dialed {
			moved = moved || to.String() == schedd
		}
		if !moved {
			t.Errorf("connected to %v", s.dialed)
		}
	})
}

// Each way to deactivate ends the job in its way.
func TestDeactivations(t *testing.T) {
	for _, tt := range []struct {
		command int
		op      ep.Order
		final   bool
		reason  string
		orders  int
	}{
		{403, ep.SoftKill, false, "Claim deactivated", 1},
		{404, ep.HardKill, false, "Claim deactivated forcibly", 1},
		{561, ep.SoftKill, true, "Claim deactivated", 1},
		{554, 0, false, "", 0},
	} {
		t.Run(fmt.Sprint(tt.command), func(t *testing.T) {
			bubble(t, twoStatic, func(t *testing.T, s *station) {
				id := s.offered("slot1")
				p := s.peer(id)
				p.claim(id, smallJob)
				var act claim.ActivationID
				s.starts(func(e ep.StartStarter, _ *cedar.Conn, _ claim.Secret) { act = e.Activation })
				conn, _, _ := p.activate(id.Public, id, jobToRun)
				defer conn.Close()
				synctest.Wait()
				if got := p.aboutClaim(tt.command, id.Public, id); got != "Start = true" {
					t.Error(got)
				}
				orders := effectsOf[ep.OrderStarter](s)
				if len(orders) != tt.orders {
					t.Fatalf("%+v", orders)
				}
				if tt.orders == 0 {
					return
				}
				if o := orders[0]; o.Op != tt.op || o.Final != tt.final || o.Reason != tt.reason || o.Code != 1009 || o.Activation != act {
					t.Errorf("%+v", o)
				}
				_, n, ad := p.activate(id.Public, id, jobToRun)
				if got := refusal(n, ad); !strings.HasPrefix(got, "2, 1028 ") {
					t.Errorf("while the job leaves another one is answered %s", got)
				}
				s.over(act)
				if conn, n, _ := p.activate(id.Public, id, jobToRun); n != 1 {
					t.Errorf("then another job is answered %d", n)
				} else {
					conn.Close()
				}
			})
		})
	}
}

// A machine with a fault says so to the next shadow, which would find no sandbox
// for its job, and takes no claim.
func TestActivationFault(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		first, second := s.offered("slot1"), s.offered("slot2")
		p := s.peer(first, second)
		one, two := p.claim(first, smallJob), p.claim(second, smallJob)
		if len(one.ids) != 1 || len(two.ids) != 1 {
			t.Fatalf("%+v, %+v", one, two)
		}
		gone := make(chan struct{})
		s.starts(func(e ep.StartStarter, _ *cedar.Conn, _ claim.Secret) {
			s.event(ep.JobEnded{Activation: e.Activation, Exit: ep.Exit{Evicted: true, Fault: &ep.MachineFault{Kind: ep.FaultExecute, Reason: "EXECUTE is read-only"}}})
			s.event(ep.StarterExited{Activation: e.Activation})
			close(gone)
		})
		conn, n, _ := p.activate(first.Public, one.ids[0], jobToRun)
		if n != 1 {
			t.Fatalf("the first activation is answered %d", n)
		}
		<-gone
		conn.Close()
		_, n, ad := p.activate(second.Public, two.ids[0], jobToRun)
		if got := refusal(n, ad); !strings.HasPrefix(got, "0, 1031 ") || !strings.Contains(got, "the machine takes no jobs: EXECUTE is read-only") {
			t.Errorf("the next activation: %s", got)
		}
		if got := p.aboutClaim(403, second.Public, two.ids[0]); got != "Start = false" {
			t.Errorf("then 403 is answered %s", got)
		}
		offer := s.offered("slot2")
		if got := s.peer(offer).claim(offer, smallJob); len(got.ids) != 0 {
			t.Errorf("a claim was given: %+v", got)
		}
		var public *classad.Ad
		id := s.view("slot2").ID
		if err := s.Do(t.Context(), func(turn engine.Turn) { public = turn.Engine.PublicAd(id) }); err != nil {
			t.Fatal(err)
		}
		if ad := public; ad.Eval("Requirements", nil).String() != "false" || ad.Eval("StartRefusedReason", nil).String() != `"EXECUTE is read-only"` {
			t.Errorf("the pool is shown %s", ad.Text(classad.Old))
		}
	})
}

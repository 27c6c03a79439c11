// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// handle has a command handled that admin@example was allowed, and returns the
// other end and the handler's error.
func (s *station) handle(number int, from string, put func(*cedar.Conn)) (*cedar.Conn, <-chan error) {
	s.t.Helper()
	client, server := cedartest.Pipe()
	there, here := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{Timeout: 20 * time.Second})
	for _, c := range []*cedar.Conn{there, here} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			s.t.Fatal(err)
		}
		c.SetPeerVersion("25.14.0")
	}
	commands := s.pool.Commands()
	i := slices.IndexFunc(commands, func(c listen.Command) bool { return c.Number == number })
	if i < 0 {
		s.t.Fatalf("there is no command %d", number)
	}
	addr, _ := netip.ParseAddrPort(from)
	asker := s.asker
	if asker.User == "" {
		asker.User = "admin@example"
	}
	call := &listen.Call{
		Conn: here, Command: commands[i], Addr: addr, Log: slog.New(slog.NewTextHandler(s.log, nil)),
		Request: &security.Request{Command: number, Peer: asker},
	}
	if put != nil {
		put(there)
		if err := there.EndMessage(); err != nil {
			s.t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		err := commands[i].Handle(context.Background(), call)
		_ = here.Close()
		done <- err
	}()
	s.t.Cleanup(func() { _ = there.Close() })
	return there, done
}

func (s *station) askAd(number int, query string) *classad.Ad {
	s.t.Helper()
	conn, done := s.handle(number, "", func(c *cedar.Conn) { c.PutAd(adOf(s.t, query), cedar.AdOptions{}) })
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		s.t.Fatalf("%v, %v", err, <-done)
	}
	if err := conn.EndOfMessage(); err != nil {
		s.t.Error(err)
	}
	if err := <-done; err != nil {
		s.t.Error(err)
	}
	return ad
}

// line is an ad on one line, without what it owes to versions.
func line(ad *classad.Ad) string {
	var all []string
	for name, e := range ad.All() {
		if name != "CondorVersion" && name != "CondorPlatform" && name != "MyType" && name != "TargetType" {
			all = append(all, name+" = "+e.Text(classad.Old))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// Drains as condor_drain asks for them and takes them back.
func TestDrainCommands(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		for _, tt := range []struct {
			number      int
			query, want string
			slot        string
		}{
			{513, "RequestID = \"77\"", `ErrorCode = 10002; ErrorString = "ep.CancelDrain 77: not found: no matching draining request id 77"; Result = false`, "Unclaimed/Idle"},
			{513, "", `Result = true`, "Unclaimed/Idle"},
			{512, "HowFast = 10\nResumeOnCompletion = 9", `ErrorCode = 0; ErrorString = "admin.DRAIN_JOBS ResumeOnCompletion: invalid: want 0 stay drained, 1 resume, 2 exit, 3 restart, 4 reconfigure"; Result = false`, "Unclaimed/Idle"},
			{512, "CheckExpr = Cpus > 100", `ErrorCode = 10003; ErrorString = "ep.Drain: denied: draining check expression is false on slot1@ep.wirev.test: Cpus > 100"; Result = false`, "Unclaimed/Idle"},
			{512, "HowFast = 0\nDrainReason = \"new disks\"", `RequestID = "1"; Result = true`, "Drained/Idle"},
			{512, "", "10001", "Drained/Idle"},
			{513, "RequestID = \"1\"", `Result = true`, "Unclaimed/Idle"},
			{512, "HowFast = 20\nStartExpr = true", `RequestID = "2"; Result = true`, "Drained/Idle"},
			{513, "", `Result = true`, "Unclaimed/Idle"},
		} {
			got := line(s.askAd(tt.number, tt.query))
			if got != tt.want && (tt.want != "10001" || !strings.Contains(got, "ErrorCode = 10001") || !strings.Contains(got, "new disks")) {
				t.Errorf("%d %q: %s, want %s", tt.number, tt.query, got, tt.want)
			}
			pass(6 * time.Second)
			if got := s.slots()[0]; got != "slot1 "+tt.slot {
				t.Errorf("after %d %q: %s, want %s", tt.number, tt.query, got, tt.slot)
			}
		}
	})
}

// Vacating in the owner's name, of one slot and of all.
func TestVacateCommands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		number int
		name   string // "" for all
		want   string
		fails  bool
	}{
		{447, "", "slot1 Unclaimed/Idle slot2 Unclaimed/Idle", false},
		{474, "", "slot1 Unclaimed/Idle slot2 Unclaimed/Idle", false},
		{465, "slot2@ep.wirev.test", "slot1 Claimed/Idle slot2 Unclaimed/Idle", false},
		{475, "SLOT1", "slot1 Unclaimed/Idle slot2 Claimed/Idle", false},
		{465, "slot9", "slot1 Claimed/Idle slot2 Claimed/Idle", true},
		{475, strings.Repeat("x", 1<<16), "slot1 Claimed/Idle slot2 Claimed/Idle", true},
	} {
		t.Run(itoa(tt.number)+" "+tt.name[:min(len(tt.name), 9)], func(t *testing.T) {
			bubble(t, twoStatic, func(t *testing.T, s *station) {
				one, two := s.offered("slot1"), s.offered("slot2")
				p := s.peer(one, two)
				if a, b := p.claim(one, smallJob), p.claim(two, smallJob); a.code != 1 || b.code != 1 {
					t.Fatal(a.code, b.code)
				}
				put := func(c *cedar.Conn) { c.PutString(tt.name) }
				if tt.name == "" {
					put = nil
				}
				_, done := s.handle(tt.number, "", put)
				if err := <-done; (err != nil) != tt.fails {
					t.Errorf("err = %v", err)
				}
				synctest.Wait()
				if got := strings.Join(s.slots(), " "); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				for _, e := range effectsOf[ep.ClaimEnded](s) {
					if e.Code != 1010 || e.ByClient {
						t.Errorf("%+v", e)
					}
				}
			})
		})
	}
}

// Commands in ads: what condor_update_machine_ad adds is there, secrets are
// not, and what nobody knows is named in the refusal.
func TestCommandsInAds(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		if got := line(s.askAd(1200, "Command = \"CA_UPDATE_MACHINE_AD\"\nRack = 7\nClaimId = \"<1.2.3.4:5>#1#1#secret\"")); got != `Result = "Success"` {
			t.Error(got)
		}
		if got := line(s.askAd(1200, "Command = \"CA_UPDATE_MACHINE_AD\"\nRow = 3")); got != `Result = "Success"` {
			t.Error(got)
		}
		if err := s.Do(t.Context(), func(turn engine.Turn) {
			ad := turn.Engine.PublicAd(s.mustID(turn, "slot2"))
			rack, _ := ad.EvalInt("Rack", nil)
			row, _ := ad.EvalInt("Row", nil)
			if _, ok := ad.Lookup("ClaimId"); ok || rack != 7 || row != 3 {
				t.Errorf("Rack = %d, Row = %d, ClaimId %t", rack, row, ok)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			"Command = \"CA_FLY\"":            `ErrorString = "Unknown command (CA_FLY) in ClassAd"; Result = "InvalidRequest"`,
			"":                                `ErrorString = "Unknown command () in ClassAd"; Result = "InvalidRequest"`,
			"Command = 7":                     `ErrorString = "Unknown command () in ClassAd"; Result = "InvalidRequest"`,
			"Command = \"CA_LOCATE_STARTER\"": `ErrorString = "CA_LOCATE_STARTER needs ClaimId, GlobalJobId and ScheddIpAddr"; Result = "InvalidRequest"`,
			"Command = \"CA_UPDATE_MACHINE_AD\"\nLong = \"" + strings.Repeat("x", 2<<20) + "\"": `ErrorString = "the attributes are too long"; Result = "InvalidRequest"`,
			"Command = \"CA_UPDATE_MACHINE_AD\"\n" + manyAttributes(1001):                       `ErrorString = "too many attributes"; Result = "InvalidRequest"`,
			"Command = \"CA_UPDATE_MACHINE_AD\"\n" + manyAttributes(999):                        `ErrorString = "too many attributes"; Result = "Failure"`,
		} {
			ad := s.askAd(1000, query)
			if got := line(ad); got != want {
				t.Errorf("%.40q: %s, want %s", query, got, want)
			}
			if v, _ := ad.EvalString("CondorVersion", nil); !strings.HasPrefix(v, "$CondorVersion: ") {
				t.Errorf("CondorVersion = %q", v)
			}
		}
	})
}

// What condor_update_machine_ad adds is bounded in all, not in each message alone.
func TestMachineAdIsNotFilled(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		added := 0
		for i := range 5 {
			got := line(s.askAd(1200, "Command = \"CA_UPDATE_MACHINE_AD\"\nLong"+itoa(i)+" = \""+strings.Repeat("x", 400<<10)+"\""))
			switch got {
			case `Result = "Success"`:
				added++
			case `ErrorString = "the attributes are too long"; Result = "Failure"`:
			default:
				t.Error(got)
			}
		}
		if added != 2 {
			t.Errorf("%d attributes of 400 KiB were added, want 2", added)
		}
	})
}

// Whoever holds a claim id has WRITE for what becomes of the claim, not to add to
// the ads by which the policy of every slot decides.
func TestClaimHolderAddsNothing(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		s.asker = security.Peer{User: security.SubmitSide, Method: security.MethodMatch}
		for _, number := range []int{1000, 1200} {
			if got := line(s.askAd(number, "Command = \"CA_UPDATE_MACHINE_AD\"\nLoadAvg = 99.0")); !strings.Contains(got, `Result = "NotAuthorized"`) {
				t.Errorf("%d: %s", number, got)
			}
		}
		if err := s.Do(t.Context(), func(turn engine.Turn) {
			if v, _ := turn.Engine.PublicAd(s.mustID(turn, "slot1")).EvalReal("LoadAvg", nil); v == 99 {
				t.Error("the holder of a claim id has changed LoadAvg")
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("A" + itoa(i) + " = 1\n")
	}
	return b.String()
}

func (s *station) mustID(turn engine.Turn, name string) (id slot.ID) {
	for v := range turn.Engine.Views() {
		if v.Name == name {
			return v.ID
		}
	}
	s.t.Fatalf("no %s", name)
	return id
}

// What is not done here is refused in the form that peers understand.
func TestRefusals(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		g := s.peer(id).claim(id, smallJob)
		coalesce := func(list string) (first, second *classad.Ad, err error) {
			conn, done := s.handle(522, "", func(c *cedar.Conn) {
				c.PutAd(adOf(t, list), cedar.AdOptions{})
				c.PutAd(adOf(t, smallJob+"\nRequestCpus = 100"), cedar.AdOptions{})
			})
			if first, err = conn.Ad(cedar.AdOptions{}); err == nil {
				second, err = conn.Ad(cedar.AdOptions{})
			}
			if err == nil {
				err = conn.EndOfMessage()
			}
			return first, second, errors.Join(err, <-done)
		}
		for list, want := range map[string]string{
			`ClaimIdList = ` + quoted(g.ids[0].Wire()):                          `ErrorString = "Unable to coalesce any slots"; Result = "Failure"`,
			`ClaimIdList = ` + quoted(g.ids[0].Wire()+", <1.2.3.4:5>#1#1#none"): `ErrorString = "can't find slot with given claim ID"; Result = "InvalidRequest"`,
			`ClaimIdList = ` + quoted(s.offered("slot1").Wire()):                `ErrorString = "can't find slot with given claim ID"; Result = "InvalidRequest"`,
		} {
			first, second, err := coalesce(list)
			if err != nil {
				t.Fatal(err)
			}
			if line(first) != want || second.Len() != 0 {
				t.Errorf("%s, %d attributes of a slot, want %s", line(first), second.Len(), want)
			}
		}
		if _, _, err := coalesce("Nothing = 1"); err == nil {
			t.Error("a command without claims was answered")
		}
		if got := line(s.askAd(562, "")); got != `ErrorString = "ScheddName not specified"; Result = false` {
			t.Error(got)
		}
		conn, done := s.handle(501, "", func(c *cedar.Conn) { c.PutSecret(claim.Secret(id.Wire())) })
		if n, err := conn.Int(); err != nil || n != 0 || conn.EndOfMessage() != nil {
			t.Errorf("%d, %v", n, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := strings.Join(s.slots(), " "); got != "slot1 Unclaimed/Idle slot1_1 Claimed/Idle" {
			t.Error(got)
		}
		if strings.Contains(s.log.String(), keyOf(id)) {
			t.Error("the log has a secret")
		}
	})
}

func quoted(s string) string {
	return string(classad.Literal(classad.String(s)).AppendText(nil, classad.Old))
}

// Only this machine says that somebody is at its keyboard.
func TestKeyboardEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		touched := 0
		s := newStation(t, stationOptions{text: twoStatic, change: func(c *pool.Config) { c.Touched = func() { touched++ } }})
		for from, want := range map[string]int{"127.0.0.1:5": 1, "[::1]:5": 1, "10.1.2.3:5": 0, "": 0} {
			before := touched
			_, done := s.handle(427, from, nil)
			err := <-done
			if touched-before != want || (err == nil) != (want == 1) {
				t.Errorf("from %q: touched %d times, %v", from, touched-before, err)
			}
		}
	})
}

// The history, as condor_history -startd reads it.
func TestHistoryQuery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		messages    int // that come
		want        []string
		off         bool
	}{
		{"all", "", 1, []string{`ClusterId = 2; Owner = "bob"`, `ClusterId = 1; Owner = "alice"`, "AdCount = 3; MalformedAds = 1; NumJobMatches = 2; Owner = 0"}, false},
		{"streamed", "StreamResults = true", 4, []string{"Owner = 1; StreamResults = true", `ClusterId = 2; Owner = "bob"`, `ClusterId = 1; Owner = "alice"`, "AdCount = 3; MalformedAds = 1; NumJobMatches = 2; Owner = 0"}, false},
		{"projected", "Projection = \"ClusterId\"\nNumJobMatches = 1", 1, []string{"ClusterId = 2", "AdCount = 2; MalformedAds = 1; NumJobMatches = 1; Owner = 0"}, false},
		{"costly", `Requirements = regexp("(.*a){500}b", "` + strings.Repeat("a", 20_000) + `")`, 1,
			[]string{`ErrorCode = 4; ErrorString = "the constraint takes more than 10000000 steps: ask with a simpler one, or for fewer jobs"; Owner = 0`}, false},
		{"since", "Since = ClusterId == 1\nScanLimit = 7", 1, []string{"AdCount = 1; MalformedAds = 1; NumJobMatches = 0; Owner = 0"}, false},
		{"forwards", "HistoryReadForwards = true", 1, []string{`ErrorCode = 4; ErrorString = "this startd reads its history from the newest job on: ask without -forwards"; Owner = 0`}, false},
		{"off", "", 1, []string{`ErrorCode = 10; ErrorString = "Remote history has been disabled on this startd"; Owner = 0`}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStation(t, stationOptions{text: twoStatic, change: func(c *pool.Config) {
					if tt.off {
						return
					}
					c.History = func(_ context.Context, q collector.OldJobs, found func(*classad.Ad) bool) (int64, error) {
						n := 0
						if q.Constraint != nil {
							_ = q.Constraint.Eval(&classad.Env{My: classad.NewAd(), Budget: q.Budget, MaxSteps: 1 << 30})
							return 0, errors.New("out of steps")
						}
						if q.Since != nil && q.Since.String() == "ClusterId == 1" && q.Scan == 7 {
							return 1, nil
						}
						for _, text := range []string{"ClusterId = 2\nOwner = \"bob\"\nClaimId = \"s\"", "ClusterId = 1\nOwner = \"alice\""} {
							if n++; q.Limit > 0 && n > q.Limit || !found(adOf(t, text)) {
								break
							}
						}
						return 1, nil
					}
				}})
				conn, done := s.handle(429, "", func(c *cedar.Conn) { c.PutAd(adOf(t, tt.query), cedar.AdOptions{}) })
				var got []string
				messages := 0
				for {
					ad, err := conn.Ad(cedar.AdOptions{})
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, line(ad))
					if !conn.More() {
						messages++
						if err := conn.EndOfMessage(); err != nil {
							t.Fatal(err)
						}
					}
				}
				if !slices.Equal(got, tt.want) || messages != tt.messages {
					t.Errorf("%d messages %q\nwant %d %q", messages, got, tt.messages, tt.want)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

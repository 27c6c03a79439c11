// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
)

const vectors = "../cedar/testdata/vectors/"

// recordedIDs returns the claim ids of a recording by their numbers.
func recordedIDs(v *cedartest.Vector) map[int]claim.ID {
	ids := make(map[int]claim.ID)
	for _, c := range v.Connections {
		for _, m := range c.Messages {
			for _, it := range m.Items {
				if it.Secret == nil {
					continue
				}
				if id, err := claim.ParseID(*it.Secret); err == nil {
					n, _ := strconv.Atoi(id.Public[strings.LastIndexByte(id.Public, '#')+1:])
					ids[n] = id
				}
			}
		}
	}
	return ids
}

// recordedStation is an EP whose claim ids are those of the recording, in the
// configuration of the recorded one.
func recordedStation(t testing.TB, v *cedartest.Vector, text string) *station {
	t.Helper()
	ids := recordedIDs(v)
	start, err := strconv.ParseInt(strings.Split(ids[1].Public, "#")[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	secrets := make(map[int]claim.Secret)
	for n, id := range ids {
		secrets[n] = id.Secret
	}
	s := newStation(t, stationOptions{text: text, address: v.Secrets.EPSinful, start: start, secrets: secrets})
	s.idle()
	if s.offered("slot1") != ids[1] {
		t.Fatal("the first id is not the recorded one")
	}
	return s
}

const recordedStatic = `
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = false
NUM_SLOTS_TYPE_1 = 1
`

const recordedPart = `
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
MODIFY_REQUEST_EXPR_REQUESTMEMORY = TARGET.RequestMemory
MODIFY_REQUEST_EXPR_REQUESTDISK = TARGET.RequestDisk
`

// renamed are the ids of a recording that have another number here: the
// recorded EP gave dynamic slots none of their own to be preempted by.
type renamed map[claim.ID]claim.ID

// here turns recorded ids into ours.
func (r renamed) here(b []byte) []byte {
	var pairs []string
	for recorded, ours := range r {
		pairs = append(pairs, recorded.Wire(), ours.Wire(), recorded.Public+`"`, ours.Public+`"`)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(b)))
}

// recorded turns our ids into the recorded ones.
func (r renamed) recorded(b []byte) []byte {
	var pairs []string
	for recorded, ours := range r {
		pairs = append(pairs, ours.Wire(), recorded.Wire())
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(b)))
}

// learn notes what a recorded id is called here, from a message that has both.
func (r renamed) learn(t testing.TB, m *cedartest.Message, got []byte) {
	c := cedartest.Reader(t, got, true)
	for _, want := range m.Items {
		switch {
		case want.Int != nil:
			_, _ = c.Int()
		case want.Ad != nil:
			_, o := want.RawAd()
			_, _ = c.Ad(o)
		case want.Secret != nil:
			text, _ := c.Secret()
			ours, err := claim.ParseID(text.Reveal())
			theirs, err2 := claim.ParseID(*want.Secret)
			if err != nil || err2 != nil {
				t.Errorf("no claim id: %v, %v", err, err2)
			}
			if _, known := r[theirs]; !known && len(ours.Wire()) == len(theirs.Wire()) {
				r[theirs] = ours
			}
		}
	}
}

// play plays a recorded schedd, shadow or tool against our command server.
func (s *station) play(c *cedartest.Connection, names renamed, check func(*cedartest.Message, []byte) error) {
	s.t.Helper()
	client, server := cedartest.Pipe()
	s.server.ServeConn(s.conns, server)
	p := &cedartest.Player{
		Conn: c, Role: cedartest.Client,
		Edit: func(m *cedartest.Message) []byte { return names.here(m.Plaintext) },
		Key: func() []byte {
			for recorded, ours := range names {
				if recorded.Public == c.Session.SID {
					secret := ours.Secret.Reveal()
					return security.DeriveKey([]byte(secret[strings.IndexByte(secret, ']')+1:]))
				}
			}
			return c.Session.Key
		},
		Check: func(m *cedartest.Message, got []byte) error {
			if m.Note == "resume reply" {
				if !bytes.Contains(got, []byte("AUTHORIZED")) {
					return fmt.Errorf("the session is not resumed: %q", got)
				}
				return nil
			}
			return check(m, got)
		},
	}
	if err := p.Play(client); err != nil {
		s.t.Errorf("%s: %v", c, err)
	}
	_ = client.Close()
}

// checkPayload demands what was recorded, except of a handshake.
func checkPayload(m *cedartest.Message, got []byte) error {
	if !m.Encrypted {
		return nil
	}
	return cedartest.Diff(m.Plaintext, got)
}

// told are attributes of slots that the recorded EP told and schedds and
// negotiators go by.
var toldOfSlots = []string{
	"Name", "Machine", "MyAddress", "StartdIpAddr", "State", "Activity", "Cpus", "Memory", "Disk", "SlotID", "SlotType", "SlotTypeID", "DynamicSlot", "DSlotID",
	"PartitionableSlot", "RemoteOwner", "RemoteUser", "OpSys", "Arch", "LastSlotName", "NumDynamicSlots", "DaemonStartTime", "MyType",
}

// sameShape holds a message against a recorded one item by item: numbers,
// texts and secrets to the letter, ads of slots by what others go by.
func sameShape(t testing.TB, m *cedartest.Message, got []byte) error {
	c := cedartest.Reader(t, got, true)
	for i, want := range m.Items {
		if want.Ad == nil {
			if err := checkItem(c, want); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			continue
		}
		raw, o := want.RawAd()
		ad, err := c.Ad(o)
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		recorded := adOf(t, strings.Join(raw.Lines, "\n"))
		for _, name := range toldOfSlots {
			e, ok := recorded.Lookup(name)
			if !ok {
				continue
			}
			have, ok := ad.Lookup(name)
			switch {
			case !ok:
				return fmt.Errorf("item %d: the ad has no %s", i, name)
			case name == "Disk" || name == "Memory" || name == "SlotTypeID" && e.String() != "1":
				continue // the machines differ
			case !strings.EqualFold(have.String(), e.String()):
				return fmt.Errorf("item %d: %s = %s, recorded %s", i, name, have, e)
			}
		}
		for name := range ad.All() {
			if strings.Contains(strings.ToLower(name), "claimid") && !strings.EqualFold(name, "PublicClaimId") && !strings.EqualFold(name, "PublicClaimIds") {
				return fmt.Errorf("item %d: the ad tells %s", i, name)
			}
		}
	}
	return c.EndOfMessage()
}

func checkItem(c *cedar.Conn, want cedartest.Item) error {
	var got, recorded string
	var err error
	switch {
	case want.Int != nil:
		var n int64
		n, err = c.Int()
		got, recorded = fmt.Sprint(n), fmt.Sprint(*want.Int)
	case want.Secret != nil:
		var text cedar.Secret
		text, err = c.Secret()
		got, recorded = text.Reveal(), *want.Secret
	case want.Str != nil:
		got, err = c.String()
		recorded = *want.Str
	default:
		return errors.New("bytes were recorded")
	}
	if err == nil && got != recorded {
		err = fmt.Errorf("%q, recorded %q", got, recorded)
	}
	return err
}

// refusedActivation says what became of ACTIVATE_CLAIM: we refuse with an ad,
// whatever the recorded EP did.
func refusedActivation(t testing.TB, got []byte, code int64) error {
	c := cedartest.Reader(t, got, true)
	n, err := c.Int()
	if err != nil || n != 0 {
		return fmt.Errorf("answer %d, %v", n, err)
	}
	ad, err := c.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	if have, _ := ad.EvalInt("VacateReasonCode", nil); have != code {
		return fmt.Errorf("code %d, want %d", have, code)
	}
	if why, ok := ad.EvalString("VacateReason", nil); !ok || why == "" {
		return errors.New("no reason")
	}
	return c.EndOfMessage()
}

// cut ends a recorded connection at the answer to ACTIVATE_CLAIM or to a
// command in an ad: what follows is a job that runs.
func cut(c *cedartest.Connection) *cedartest.Connection {
	short := *c
	for i, m := range c.Messages {
		if strings.HasPrefix(m.Note, "activation") || strings.HasPrefix(m.Note, "CA reply") {
			short.Messages = append(c.Messages[:i+1:i+1], &cedartest.Message{Event: cedartest.ServerClosed})
		}
	}
	return &short
}

// Every recorded claim, with our engine and command server in place of the
// recorded EP: what the schedd, the shadow and the EP say to one another, in
// the recorded order. The recorded starter speaks on the connection that the
// activation handed to it.
func TestReplayClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		refuse     bool                                                   // the first request
		unfit      error                                                  // why the job is not admitted
		form       func(all []cedartest.Item, id string) []cedartest.Item // of our answer to the request, if it is not the recorded one
	}{
		// The recorded EP did not tell of the slot, although it was asked to.
		{name: "ep-claim-activation-refused", text: recordedStatic, unfit: errors.New("refused on purpose"), form: func(all []cedartest.Item, id string) []cedartest.Item {
			return append([]cedartest.Item{{Int: number(7)}, {Secret: &id}, {Ad: &[]string{`Name = "slot1@ep.wirev.test"`, `State = "Claimed"`}, Types: []string{"", ""}}}, all...)
		}},
		{name: "ep-claim-hold", text: recordedStatic},
		{name: "ep-claim-job-complete", text: recordedStatic},
		{name: "ep-claim-minimal-info", text: recordedStatic},
		{name: "ep-claim-refused", text: recordedStatic, refuse: true},
		// A static slot leaves nothing; the recorded EP told of the slot itself
		// once more, as a real one does.
		{name: "ep-claim-leftovers-form", text: recordedStatic, form: func(all []cedartest.Item, _ string) []cedartest.Item {
			return append(all[:3:3], cedartest.Item{Int: number(1)})
		}},
		{name: "ep-pslot-leftovers", text: recordedPart},
		{name: "ep-reconnect-new-shadow", text: recordedStatic},
		{name: "ep-reconnect-same-shadow", text: recordedStatic},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := cedartest.Load(t, vectors+tt.name+".json")
				s := recordedStation(t, v, tt.text)
				s.admit.Store(&tt.unfit)
				spoke := 0
				talks := make(map[int]*cedartest.Connection) // of the starters, by the number of the claim
				s.starts(func(e ep.StartStarter, conn *cedar.Conn, id claim.Secret) {
					s.event(ep.StarterReached{Activation: e.Activation, Address: v.Secrets.EPSinful})
					if text := id.Reveal(); text != e.Claim.Wire() || e.Job == nil {
						t.Errorf("the starter is given the claim %d of %d bytes", len(text), len(e.Claim.Wire()))
					}
					if _, ok := e.Job.Lookup("_condor_send_activation_failure_ad"); ok {
						t.Error("the job has what was said to us alone")
					}
					done, err := recordedStarter(talks[0], conn)
					if err != nil {
						t.Error(err)
					}
					spoke++
					if done {
						s.over(e.Activation)
					}
				})
				if tt.refuse {
					s.Step(t, ep.DrainRequested{Reason: "the recorded one refused, too"})
				}
				played, names := 0, renamed{}
				for _, c := range v.Connections {
					if c.OurRole == cedartest.Client && !strings.HasPrefix(c.Note, "ALIVE") || reconnects(c) {
						continue // the starter's
					}
					if hasNote(c, "activation: try again") {
						continue // see TestTryAgain
					}
					if strings.HasPrefix(c.Note, "command 413") {
						for _, e := range effectsOf[ep.StartStarter](s) {
							s.over(e.Activation) // of a starter that was found again
						}
					}
					played++
					switch {
					case c.OurRole == cedartest.Client:
						asked := s.answer(c)
						time.Sleep(41 * time.Second) // a third of the lease, in the time of the test's bubble
						within(t, asked)
					case strings.HasPrefix(c.Note, "command 444"):
						talks[0] = c
						s.play(c, names, func(m *cedartest.Message, got []byte) error {
							switch {
							case tt.unfit != nil:
								return refusedActivation(t, got, 1027)
							case len(names) > 0 && strings.HasPrefix(m.Note, "register"):
								return nil
							}
							return cedartest.Diff(m.Plaintext, got)
						})
					case strings.HasPrefix(c.Note, "command 1200"):
						s.play(cut(c), names, func(_ *cedartest.Message, got []byte) error { return located(t, got, v.Secrets.EPSinful) })
					case strings.HasPrefix(c.Note, "command 442"):
						s.play(c, names, func(m *cedartest.Message, got []byte) error {
							if tt.form != nil {
								other := *m
								other.Items = tt.form(m.Items, v.Secrets.Claims[0].ClaimID)
								m = &other
							}
							names.learn(t, m, got)
							return sameShape(t, m, names.recorded(got))
						})
						if tt.refuse {
							s.Step(t, ep.DrainCancelled{})
							s.idle()
						}
					default:
						s.play(c, names, func(m *cedartest.Message, got []byte) error { return sameShape(t, m, got) })
					}
					synctest.Wait()
				}
				if want := tt.unfit == nil; want != (spoke > 0) {
					t.Errorf("%d starters spoke", spoke)
				}
				released := slices.ContainsFunc(v.Connections, func(c *cedartest.Connection) bool { return strings.HasPrefix(c.Note, "command 443") })
				if got := s.slots(); released && strings.Contains(strings.Join(got, " "), "Claimed") || strings.Contains(strings.Join(got, " "), "Preempting") {
					t.Errorf("at the end there are %v", got)
				}
				if played < 4 {
					t.Errorf("only %d connections were played", played)
				}
				noSecrets(t, s, v)
			})
		})
	}
}

func number(n int64) *int64 { return &n }

// within waits for what should not take an hour of the bubble's time.
func within(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Hour):
		t.Fatal("it did not happen")
	}
}

func hasNote(c *cedartest.Connection, note string) bool {
	return slices.ContainsFunc(c.Messages, func(m *cedartest.Message) bool { return strings.HasPrefix(m.Note, note) })
}

// reconnects reports whether a connection goes to the starter's own socket.
func reconnects(c *cedartest.Connection) bool {
	return slices.ContainsFunc(c.Messages, func(m *cedartest.Message) bool {
		return m.Note == "CA_CMD ad" && bytes.Contains(m.Plaintext, []byte("CA_RECONNECT_JOB"))
	})
}

// located says that the starter was found at an address.
func located(t testing.TB, got []byte, address string) error {
	c := cedartest.Reader(t, got, true)
	ad, err := c.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	if r, _ := ad.EvalString("Result", nil); r != "Success" {
		return fmt.Errorf("Result is %q: %v", r, ad)
	}
	if at, _ := ad.EvalString("StarterIpAddr", nil); at != address {
		return fmt.Errorf("the starter is at %q", at)
	}
	for _, name := range []string{"GlobalJobId", "RemoteUser", "CondorVersion", "CondorPlatform"} {
		if text, _ := ad.EvalString(name, nil); text == "" {
			return fmt.Errorf("no %s in %v", name, ad)
		}
	}
	return c.EndOfMessage()
}

// noSecrets holds the log against all secrets there are.
func noSecrets(t testing.TB, s *station, v *cedartest.Vector) {
	t.Helper()
	log := s.log.String()
	if log == "" {
		t.Error("nothing was logged")
	}
	for _, c := range v.Secrets.Claims {
		if strings.Contains(log, c.KeyText) {
			t.Errorf("the log has the secret of %s", c.SessionID)
		}
	}
}

// The EP's own conversations with a recorded schedd: it asks whether the claim
// is still wanted, gives it back when its owner wants the slot, and drops the
// claim that the schedd does not know any more, without another word. The
// shadow that goes on trying is answered under the session that outlives the
// claim.
func TestReplayRelease(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, vectors+"ep-claim-release-by-ep.json")
	ofNote := func(note string) *cedartest.Connection {
		for _, c := range v.Connections {
			if strings.HasPrefix(c.Note, note) {
				return c
			}
		}
		t.Fatalf("no connection %q", note)
		return nil
	}
	claimed := func(t *testing.T) *station {
		s := recordedStation(t, v, recordedStatic)
		s.play(v.Connections[0], nil, func(m *cedartest.Message, got []byte) error { return sameShape(t, m, got) })
		if got := s.slots(); got[0] != "slot1 Claimed/Idle" {
			t.Fatal(got)
		}
		return s
	}
	t.Run("released by the EP", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := claimed(t)
			for range 2 {
				alive := s.answer(ofNote("ALIVE (441) from EP"))
				time.Sleep(40 * time.Second) // a third of 6 intervals of 20 s
				within(t, alive)
			}
			released := s.answer(ofNote("RELEASE_CLAIM (443)"))
			s.Step(t, ep.VacateRequested{Manner: ep.Fast})
			within(t, released)
			synctest.Wait()
			// What the shadow says still, which has not heard of it.
			for _, c := range v.Connections {
				switch {
				case strings.HasPrefix(c.Note, "command 444"):
					s.play(cut(c), nil, func(_ *cedartest.Message, got []byte) error { return refusedActivation(t, got, 1034) })
				case strings.HasPrefix(c.Note, "command 403"):
					s.play(c, nil, func(_ *cedartest.Message, got []byte) error {
						r := cedartest.Reader(t, got, true)
						ad, err := r.Ad(cedar.AdOptions{})
						if err != nil {
							return err
						}
						if on, ok := ad.EvalBool("Start", nil); !ok || on || ad.Len() != 1 {
							return fmt.Errorf("Start is %v, %v", on, ok)
						}
						return nil
					})
				}
			}
			ended := effectsOf[ep.ClaimEnded](s)
			if len(ended) != 1 || ended[0].ByClient || ended[0].Code != 1010 {
				t.Errorf("%+v", ended)
			}
			if len(s.dialed) != 3 || s.dialed[0].String() != "<127.0.0.1:22868?addrs=127.0.0.1-22868&alias=vm>" {
				t.Errorf("connected to %v", s.dialed)
			}
			noSecrets(t, s, v)
			// The session is gone 600 seconds after the claim.
			if _, ok := s.sessions.Get(v.Secrets.Claims[0].SessionID); !ok {
				t.Error("no session after the end of the claim")
			}
			time.Sleep(security.ClaimLinger + time.Second)
			if _, ok := s.sessions.Get(v.Secrets.Claims[0].SessionID); ok {
				t.Error("the session is still there")
			}
		})
	})
	t.Run("not known any more", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := claimed(t)
			asked := s.answer(ofNote("ALIVE (441) for a claim"))
			time.Sleep(40 * time.Second)
			within(t, asked)
			synctest.Wait()
			ended := effectsOf[ep.ClaimEnded](s)
			if len(ended) != 1 || !ended[0].ByClient {
				t.Errorf("%+v", ended)
			}
			if len(s.dialed) != 1 {
				t.Errorf("connected %d times", len(s.dialed))
			}
		})
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := claimed(t)
			began := time.Now()
			for s.view("slot1").Claimed {
				time.Sleep(time.Second)
			}
			// 6 intervals of 20 seconds, and then no message to the schedd.
			if took := time.Since(began); took < 119*time.Second || took > 122*time.Second {
				t.Errorf("the lease was over after %v", took)
			}
			synctest.Wait()
			// After 40 s, and then every 5 s, as HTCondor's startd; perhaps once more as the lease ends.
			if n := len(s.dialed); n != 16 && n != 17 {
				t.Errorf("connected %d times for ALIVE", n)
			}
			if log := s.log.String(); strings.Contains(log, "was not told that its claim has ended") {
				t.Errorf("RELEASE_CLAIM was sent:\n%s", log)
			}
		})
	})
}

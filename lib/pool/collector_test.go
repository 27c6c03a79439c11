// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
	"github.com/execpoint/execpoint/lib/slot"
)

const ourAddress = "<127.0.0.1:9620?addrs=127.0.0.1-9620&noUDP>"

const twoSlots = `
COLLECTOR_HOST = cm:9618
SLOT_TYPE_1 = 50%
SLOT_TYPE_1_PARTITIONABLE = false
NUM_SLOTS_TYPE_1 = 2
`

const onePart = "COLLECTOR_HOST = cm:9618\n"

// rig is a pool's side around a real engine.
type rig struct {
	*pooltest.EP
	t        *testing.T
	pool     *pool.Pool
	sessions *security.Sessions
	log      *logs
	cancel   context.CancelFunc
	ran      chan struct{}
	began    time.Time
	replies  chan ep.Reply
}

// logs is what was logged, for more than one goroutine.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, text string, open directory.Opener, change func(*pool.Config)) *rig {
	t.Helper()
	return newRigOf(t, pooltest.Options{Text: text}, open, change)
}

func newRigOf(t *testing.T, o pooltest.Options, open directory.Opener, change func(*pool.Config)) *rig {
	t.Helper()
	at, err := cedar.ParseSinful(ourAddress)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: &logs{}, ran: make(chan struct{}), began: time.Now(), replies: make(chan ep.Reply, 16)}
	system := clock.System()
	o.Address, o.Clock = ourAddress, system
	o.Effect = func(_ engine.Turn, eff ep.Effect) {
		if reply, ok := eff.(ep.Reply); ok {
			r.replies <- reply
		}
	}
	r.EP = pooltest.New(t, o)
	r.sessions = security.NewSessions(system, 0)
	cfg := pool.Config{
		Owner: r.EP, Open: open, Sessions: r.sessions, Address: func() cedar.Sinful { return at }, Start: r.Start,
		Clock: system, Rand: func() float64 { return 0.5 },
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	r.pool = pool.New(cfg, r.Settings(t))
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	r.Begin(ctx, t, r.pool)
	go func() { defer close(r.ran); r.pool.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-r.ran })
	return r
}

// claimPart claims one processor of the slot and returns the claim.
func (r *rig) claim(s slot.ID, request string) ep.Reply {
	r.t.Helper()
	var id claim.ID
	if err := r.Do(r.t.Context(), func(t engine.Turn) { v, _ := t.Engine.SlotView(s); id = v.NextClaim }); err != nil {
		r.t.Fatal(err)
	}
	return r.claimBy(id, request)
}

// claimBy claims by an id that a slot offers; request are further lines of the
// job.
func (r *rig) claimBy(id claim.ID, request string) ep.Reply {
	r.t.Helper()
	job, err := classad.ParseAd("JobUniverse = 5\nRequirements = true\nRequestCpus = 1\nRequestMemory = 128\nRequestDisk = 1024\n"+request, classad.Old)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Step(r.t, ep.ClaimRequested{Ref: ep.Ref{By: ep.OwnQueue, N: 1}, Capability: id, Job: job, Client: claim.Client{User: "alice@example", Owner: "alice@example"}})
	reply := <-r.replies
	if reply.Err != nil {
		r.t.Fatal(reply.Err)
	}
	return reply
}

func text(t *testing.T, ad *classad.Ad, name string) string {
	t.Helper()
	e, ok := ad.Lookup(name)
	if !ok {
		return ""
	}
	if s, ok := ad.EvalString(name, nil); ok {
		return s
	}
	return e.Text(classad.Old)
}

// row: S4-044, S4-045, S4-046, S1-019
func TestAdsAsTheyAreSent(t *testing.T) {
	slots := []string{"Machine/slot1@host.example", "Machine/slot2@host.example"}
	withDaemon := append(slices.Clone(slots), "StartD/host.example")
	for _, tt := range []struct {
		name, knob, version string
		want                []string
	}{
		{"true", "True", "25.14.0", withDaemon},
		{"true, old collector", "True", "10.0.9", withDaemon},
		{"false", "False", "25.14.0", slots},
		{"auto, new collector", "Auto", "23.2.0", withDaemon},
		{"auto, old collector", "Auto", "23.1.9", slots},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cm := pooltest.NewCollector(tt.version)
				newRig(t, twoSlots+"ENABLE_STARTD_DAEMON_AD = "+tt.knob+"\n", cm, nil)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if got := cm.Names(); !slices.Equal(got, tt.want) {
					t.Fatalf("the collector has %q, want %q", got, tt.want)
				}
				if bad := cm.Bad(); bad != nil {
					t.Error(bad)
				}
				for _, name := range slots {
					m, _ := cm.Ad(name)
					_, synth := m.Public.Lookup("HasStartDaemonAd")
					if want := tt.knob != "False"; synth != want {
						t.Errorf("HasStartDaemonAd is there: %v, want %v", synth, want)
					}
					checkSlotAd(t, m, strings.TrimPrefix(name, "Machine/"))
					if _, old := m.Private.Lookup("Capability"); old != (tt.knob == "False") {
						t.Errorf("Capability in the private ad: %v", old)
					}
				}
				if m, ok := cm.Ad("StartD/host.example"); ok {
					if m.Private != nil {
						t.Error("a private ad follows that of the daemon")
					}
					if got := text(t, m.Public, "MyAddress"); got != ourAddress {
						t.Errorf("MyAddress of the daemon is %s", got)
					}
				}
				if got := cm.Opened(); len(got) != 1 || got[0] != 0 {
					t.Errorf("connections were opened for commands %v, want one for 0", got)
				}
			})
		})
	}
}

func checkSlotAd(t *testing.T, m pooltest.Message, name string) {
	t.Helper()
	want := map[string]string{
		"Name": name, "MyAddress": ourAddress, "StartdIpAddr": ourAddress, "MyType": "Machine", "Machine": "host.example",
		"AddressV1": `{[ p="primary"; a="127.0.0.1"; port=9620; n="Internet"; noUDP=true; ]}`,
	}
	for attr, value := range want {
		got := text(t, m.Public, attr)
		if attr == "AddressV1" {
			if !strings.HasPrefix(got, "{") || !strings.Contains(got, "9620") {
				t.Errorf("AddressV1 = %s", got)
			}
			continue
		}
		if got != value {
			t.Errorf("%s: %s = %q, want %q", name, attr, got, value)
		}
	}
	for _, attr := range []string{"State", "Activity", "EnteredCurrentState", "EnteredCurrentActivity", "Requirements", "Rank", "CurrentRank", "Cpus", "Memory", "Disk",
		"SlotWeight", "OpSys", "Arch", "TotalDisk", "TotalCpus", "TotalMemory", "MachineResources", "SlotType", "SlotID", "SlotTypeID", "MyCurrentTime", "TotalSlots",
		"LoadAvg", "CondorLoadAvg", "KeyboardIdle", "CondorVersion", "CondorPlatform", "DaemonStartTime", "DaemonLastReconfigTime", "UpdateSequenceNumber"} {
		if _, ok := m.Public.Lookup(attr); !ok {
			t.Errorf("%s: the ad has no %s", name, attr)
		}
	}
	for attr := range m.Public.All() {
		if classad.IsPrivate(attr) {
			t.Errorf("%s: the public ad has %s", name, attr)
		}
	}
	for _, attr := range []string{"Name", "MyAddress", "StartdIpAddr", "MyType"} {
		if a, b := text(t, m.Private, attr), text(t, m.Public, attr); a != b {
			t.Errorf("%s: %s is %q in the private ad and %q in the public one", name, attr, a, b)
		}
	}
	id, err := security.ParseCapabilityID(text(t, m.Private, "ClaimId"))
	if err != nil || !id.HasInfo || id.Info.ShortVersion == "" || !strings.HasPrefix(id.Session, ourAddress+"#") {
		t.Errorf("%s: claim id %v with info %+v, %v", name, id, id.Info, err)
	}
}

// The session of an id is there before a collector can know the id, lasts as
// long as the claim and is not gone with it at once.
func TestSessionsOfClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, onePart, cm, nil)
		if got := len(r.sessions.IDs()); got != 1 {
			t.Fatalf("%d sessions at the start, want that of the slot's id", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		m, _ := cm.Ad("Machine/slot1@host.example")
		offered, err := claim.ParseID(text(t, m.Private, "ClaimId"))
		if err != nil {
			t.Fatal(err)
		}
		reply := r.claim(slot.ID{N: 1}, "")
		if reply.Granted.Claim != offered {
			t.Fatalf("claimed by %v, offered was %v", reply.Granted.Claim, offered)
		}
		time.Sleep(2 * security.ClaimLinger)
		if _, ok := r.sessions.Get(offered.Public); !ok {
			t.Fatal("the session of the claim is gone while the claim lasts")
		}
		m, _ = cm.Ad("Machine/slot1@host.example")
		next, err := claim.ParseID(text(t, m.Private, "ClaimId"))
		if err != nil || next == offered {
			t.Fatalf("the slot still offers %v, %v", next, err)
		}
		if _, ok := r.sessions.Get(next.Public); !ok {
			t.Error("the next id has no session")
		}
		children := text(t, m.Private, "ChildClaimIds")
		d, _ := cm.Ad("Machine/slot1_1@host.example")
		if id := text(t, d.Private, "ClaimId"); id == "" || !strings.Contains(children, strings.SplitN(id, "#", 4)[2]) || text(t, m.Private, "NumDynamicSlots") != "1" {
			t.Errorf("ChildClaimIds = %d characters for a child with id %.60q", len(children), id)
		}
		r.Step(t, ep.ReleaseRequested{Ref: ep.Ref{By: ep.OwnQueue, N: 2}, Claim: offered})
		<-r.replies
		if _, ok := r.sessions.Get(offered.Public); !ok {
			t.Error("the session is gone at once with the claim: late messages find nothing")
		}
		time.Sleep(security.ClaimLinger + time.Second)
		if _, ok := r.sessions.Get(offered.Public); ok {
			t.Error("the session of a claim that is long gone is still there")
		}
	})
}

// row: S4-024
func TestUpdateOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, twoSlots+"UPDATE_OFFSET = 7\nUPDATE_INTERVAL = 300\nENABLE_STARTD_DAEMON_AD = False\n", cm, nil)
		time.Sleep(320 * time.Second)
		synctest.Wait()
		var at []time.Duration
		for _, m := range cm.Messages() {
			at = append(at, m.At.Sub(r.began))
		}
		want := []time.Duration{7 * time.Second, 7 * time.Second, 307 * time.Second, 307 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("updates after %v, want %v", at, want)
		}
	})
}

// row: S4-025
func TestUpdateOffsetByChance(t *testing.T) {
	firsts := make(map[time.Duration]bool)
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			cm := pooltest.NewCollector("25.14.0")
			r := newRigOf(t, pooltest.Options{Config: config.Options{Seed: seed}, Text: twoSlots +
				"UPDATE_OFFSET = 1000\nSCHEDD.UPDATE_OFFSET = 2000\nstartd.UPDATE_OFFSET = $RANDOM_INTEGER(0,300)\n"}, cm, nil)
			time.Sleep(400 * time.Second)
			synctest.Wait()
			if len(cm.Messages()) == 0 {
				t.Fatal("no update within 400 s")
			}
			first := cm.Messages()[0].At.Sub(r.began)
			if first < 0 || first > 300*time.Second {
				t.Errorf("the first update came after %v, want 0 to 300 s", first)
			}
			firsts[first] = true
		})
	}
	if len(firsts) < 4 {
		t.Errorf("eight EPs sent their first updates at only %d different times", len(firsts))
	}
}

// row: S4-023
func TestUpdatesOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, onePart+"ENABLE_STARTD_DAEMON_AD = False\n", cm, nil)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		before := len(cm.Messages())
		reply := r.claim(slot.ID{N: 1}, "")
		changed := time.Now()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var got []string
		for _, m := range cm.Messages()[before:] {
			if d := m.At.Sub(changed); d != time.Second {
				t.Errorf("%s was sent %v after the change, want a second", text(t, m.Public, "Name"), d)
			}
			got = append(got, text(t, m.Public, "Name")+" "+text(t, m.Public, "State")+" "+text(t, m.Public, "Cpus"))
		}
		if want := []string{"slot1@host.example Unclaimed 3", "slot1_1@host.example Claimed 1"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
		before = len(cm.Messages())
		r.Step(t, ep.ReleaseRequested{Ref: ep.Ref{By: ep.OwnQueue, N: 2}, Claim: reply.Granted.Claim})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got = nil
		for _, m := range cm.Messages()[before:] {
			got = append(got, text(t, m.Public, "MyType")+" "+text(t, m.Public, "Name")+" "+text(t, m.Public, "Cpus"))
		}
		if want := []string{"Query slot1_1@host.example ", "Machine slot1@host.example 4"}; !slices.Equal(got, want) {
			t.Errorf("after the end of the d-slot %q was sent, want %q", got, want)
		}
		if got := cm.Opened(); len(got) != 1 {
			t.Errorf("%d connections were made, want one that is kept", len(got))
		}
		if seq := text(t, cm.Messages()[before+1].Public, "UpdateSequenceNumber"); seq != "2" {
			t.Errorf("the third update of slot1 has number %s, want 2", seq)
		}
	})
}

func TestCollectorThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, twoSlots, cm, nil)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		want := cm.Names()
		cm.Refuse(errs.E("connect", errs.Transient, "cm", errors.New("connection refused")))
		cm.Restart()
		lost := time.Now()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := cm.Names(); len(got) != 0 {
			t.Fatalf("it has %q while it is down", got)
		}
		var after []time.Duration
		for _, at := range cm.Tried()[1:] {
			after = append(after, at.Sub(lost))
		}
		// 1 s, then twice as long each time; the spread of 0.5 is the middle.
		if want := []time.Duration{1e9, 3e9, 7e9, 15e9, 31e9}; !slices.Equal(after, want) {
			t.Errorf("tried after %v, want %v", after, want)
		}
		cm.Refuse(nil)
		time.Sleep(33 * time.Second)
		synctest.Wait()
		if got := cm.Names(); !slices.Equal(got, want) {
			t.Errorf("after it came back it has %q, want %q", got, want)
		}
		if n := strings.Count(r.log.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings, want one that it was lost and one that it cannot be reached:\n%s", n, r.log)
		}
		// The pause is never longer than UPDATE_INTERVAL.
		cm.Refuse(errors.New("no"))
		cm.Restart()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		tried := cm.Tried()
		if d := tried[len(tried)-1].Sub(tried[len(tried)-2]); d != 300*time.Second {
			t.Errorf("the pause grew to %v, want UPDATE_INTERVAL", d)
		}
		if st := r.pool.Collectors()[0]; st.Connected || st.Err == nil || st.Pending > 3 {
			t.Errorf("status %+v", st)
		}
	})
}

// A collector that takes connections and never reads holds nobody up.
func TestSilentCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, silent := pooltest.NewCollector("25.14.0"), pooltest.NewCollector("25.14.0")
		silent.Deafen()
		r := newRig(t, strings.Replace(twoSlots, "cm:9618", "cm:1, cm:2, cm:3", 1), pooltest.Collectors{1: silent, 2: good}, nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := good.Names(); len(got) != 3 {
			t.Fatalf("three seconds after the start the good collector has %q", got)
		}
		began := time.Now()
		r.claim(slot.ID{N: 1}, "")
		if d := time.Since(began); d != 0 {
			t.Errorf("the engine took %v", d)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if m, _ := good.Ad("Machine/slot1@host.example"); text(t, m.Public, "State") != "Claimed" {
			t.Errorf("the good collector was told %s", text(t, m.Public, "State"))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, st := range r.pool.Collectors() {
			if st.Pending > 3 {
				t.Errorf("%s: %d messages wait for two slots and a daemon", st.Collector, st.Pending)
			}
		}
		if st := r.pool.Collectors()[0]; st.Failures == 0 || st.Updates != 0 {
			t.Errorf("silent collector: %+v", st)
		}
	})
}

func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm, down := pooltest.NewCollector("25.14.0"), pooltest.NewCollector("25.14.0")
		down.Refuse(errors.New("down"))
		r := newRig(t, strings.Replace(twoSlots, "cm:9618", "cm:1, cm:2", 1), pooltest.Collectors{1: cm, 2: down}, nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := r.pool.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := cm.Names(); len(got) != 0 {
			t.Errorf("after the end the collector still has %q", got)
		}
		sent := len(cm.Messages())
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(cm.Messages()); got != sent {
			t.Errorf("%d more messages came after the end", got-sent)
		}
		last := cm.Messages()[sent-1]
		if got := text(t, last.Public, "Requirements"); last.Command != 13 || !strings.HasPrefix(got, `TARGET.Name == "`) {
			t.Errorf("the last message is command %d with Requirements = %s", last.Command, got)
		}
	})
}

func TestCollectorsReconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := pooltest.NewCollector("25.14.0"), pooltest.NewCollector("25.14.0"), pooltest.NewCollector("25.14.0")
		r := newRig(t, strings.Replace(twoSlots, "cm:9618", "cm:1, cm:2", 1), pooltest.Collectors{1: a, 2: b, 3: c}, nil)
		time.Sleep(3 * time.Second)
		s := r.Settings(t)
		at, err := directory.ParseCollector("cm:3", 9618)
		if err != nil {
			t.Fatal(err)
		}
		s.Collector.Collectors = []directory.Collector{s.Collector.Collectors[1], {Text: "cm:3", At: at}}
		r.pool.Reconfigure(s)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(a.Names()) != 0 || len(b.Names()) != 3 || len(c.Names()) != 3 {
			t.Errorf("the collectors have %q, %q and %q", a.Names(), b.Names(), c.Names())
		}
		if n := len(b.Opened()); n != 1 {
			t.Errorf("%d connections to the collector that stays, want one", n)
		}
	})
}

// lateFarewell is a collector that takes long to be told that ads are gone.
type lateFarewell struct{ *pooltest.Collector }

func (c lateFarewell) Command(ctx context.Context, to cedar.Sinful, number int, o security.Options) (*cedar.Conn, *security.Session, error) {
	if number == command.InvalidateStartdAds {
		pass(10 * time.Second)
	}
	return c.Collector.Command(ctx, to, number, o)
}

// A collector that is taken out of COLLECTOR_HOST and put in again keeps our ads: what
// it is told about the first does not come after what it is told about the second.
func TestCollectorOutAndIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, twoSlots, lateFarewell{cm}, nil)
		time.Sleep(3 * time.Second)
		with := r.Settings(t)
		without := with
		without.Collector.Collectors = nil
		cm.Restart() // so that a connection has to be made for the farewell
		synctest.Wait()
		r.pool.Reconfigure(without)
		synctest.Wait()
		r.pool.Reconfigure(with)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := cm.Names(); len(got) != 3 {
			t.Errorf("the collector has %q", got)
		}
		r.pool.Reconfigure(without)
		synctest.Wait()
		r.pool.Reconfigure(with)
		synctest.Wait()
		began := time.Now()
		if err := r.pool.Withdraw(t.Context()); err != nil || time.Since(began) > 11*time.Second {
			t.Errorf("the end took %v: %v", time.Since(began), err)
		}
		if got := cm.Names(); len(got) != 0 {
			t.Errorf("after the end the collector has %q", got)
		}
	})
}

// No claim id and no capability is in a log, and none in a public ad.
func TestSecretsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, onePart+`STARTD_ATTRS = ClaimId, Note
ClaimId = "leak"
Note = "seen"
`, cm, func(c *pool.Config) { c.AdminCommands = func() []int { return []int{60004, 60005} } })
		time.Sleep(time.Second)
		r.claim(slot.ID{N: 1}, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		cm.Restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(cm.Names()) != 3 {
			t.Fatalf("the collector has %q", cm.Names())
		}
		for _, m := range cm.Messages() {
			if _, ok := m.Public.Lookup("ClaimId"); ok {
				t.Error("a public ad has a ClaimId")
			}
			if m.Command != 0 {
				continue
			}
			if text(t, m.Public, "Note") != "seen" {
				t.Error("the ad lacks what STARTD_ATTRS names besides")
			}
			id, err := security.ParseCapabilityID(text(t, m.Public, "_condor_PrivRemoteAdminCapability"))
			if err != nil || !slices.Equal(id.Info.ValidCommands, []int{60004, 60005}) || !strings.HasPrefix(id.Session, "admin_"+ourAddress+"#") {
				t.Fatalf("capability %v %+v: %v\n%s", id, id.Info, err, r.log)
			}
			if s, ok := r.sessions.Get(id.Session); !ok || s.Peer.User != security.CollectorSide {
				t.Errorf("the session of the capability: %v %+v", ok, s)
			}
			for attr, e := range m.Public.All() {
				if !classad.IsPrivate(attr) && strings.Contains(e.Text(classad.Old), "ShortVersion") {
					t.Errorf("%s = %s", attr, e.Text(classad.Old))
				}
			}
			if m.Private != nil {
				wire := text(t, m.Private, "ClaimId")
				if secret := wire[strings.LastIndexByte(wire, ']')+1:]; len(secret) != 64 || strings.Contains(r.log.String(), secret) {
					t.Error("the log has a secret, or there is none")
				}
			}
		}
	})
}

func TestDirectAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		newRig(t, onePart+"STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap.example\n", cm, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		m, ok := cm.Ad("Machine/slot1@host.example")
		if got := text(t, m.Public, "Start"); !ok || got != "Directly attached to schedd ap.example" {
			t.Errorf("Start = %q", got)
		}
	})
}

// slow is an owner of the engine whose turns are far apart.
type slow struct{ engine.Owner }

func (o slow) Do(ctx context.Context, f func(engine.Turn)) error {
	pass(time.Second)
	return o.Owner.Do(ctx, f)
}

// The daemon is ready when a collector was sent all ads, also where they are so many
// that they are made in several turns.
func TestUpdatedAfterTheLastAd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pooltest.NewCollector("25.14.0")
		var ready []time.Duration
		began := time.Now()
		newRigOf(t, pooltest.Options{Cpus: 130, Text: onePart + "SLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_SLOTS_TYPE_1 = 130\n"}, c, func(cfg *pool.Config) {
			cfg.Owner = slow{cfg.Owner}
			cfg.Updated = func() { ready = append(ready, time.Since(began)) }
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		// 64 slots in a turn, the rest and the daemon in the third.
		if n := len(c.Messages()); n != 131 || len(ready) != 1 || ready[0] != 3*time.Second {
			t.Errorf("of %d ads the last was sent after 3 s; the daemon was ready after %v", n, ready)
		}
	})
}

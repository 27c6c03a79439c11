// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
	"github.com/execpoint/execpoint/lib/slot"
)

const mixed = `
SLOT_TYPE_1 = cpus=2
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = cpus=1
SLOT_TYPE_2_PARTITIONABLE = false
NUM_SLOTS_TYPE_2 = 2
`

// call has a command handled as the server would, and returns the other end.
func (r *rig) call(t *testing.T, number int) (*cedar.Conn, <-chan error) {
	t.Helper()
	client, server := net.Pipe()
	there, here := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{})
	there.SetPeerVersion("25.14.0")
	here.SetPeerVersion("25.14.0")
	commands := r.pool.Commands()
	i := slices.IndexFunc(commands, func(c listen.Command) bool { return c.Number == number })
	if i < 0 {
		t.Fatalf("there is no command %d", number)
	}
	done := make(chan error, 1)
	go func() {
		err := commands[i].Handle(context.Background(), &listen.Call{Conn: here, Command: commands[i], Log: slog.New(slog.DiscardHandler)})
		_ = here.Close()
		done <- err
	}()
	t.Cleanup(func() { _ = there.Close() })
	return there, done
}

// ask sends a query and returns the ads of the answer.
func (r *rig) ask(t *testing.T, number int, query string) []*classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(query, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	conn, done := r.call(t, number)
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	var ads []*classad.Ad
	for {
		more, err := conn.Int()
		if err != nil {
			t.Fatal(err)
		}
		if more == 0 {
			break
		}
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ads = append(ads, ad)
	}
	if err := conn.EndOfMessage(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	return ads
}

func namesOf(ads []*classad.Ad) string {
	var all []string
	for _, ad := range ads {
		name, _ := ad.EvalString("Name", nil)
		all = append(all, strings.TrimSuffix(name, "@host.example"))
	}
	return strings.Join(all, " ")
}

func TestQueries(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command int
		query   string
		want    string
	}{
		{"slots", 5, `TargetType = "Machine"`, "slot1 slot1_1 slot2 slot3"},
		{"slots, no type", 5, ``, "slot1 slot1_1 slot2 slot3"},
		{"many, slots", 53, `TargetType = "Machine"`, "slot1 slot1_1 slot2 slot3"},
		{"many, the daemon", 53, `TargetType = "StartD"`, "host.example"},
		{"many, no type", 53, ``, "host.example"},
		{"many, both", 53, `TargetType = "Machine,StartD"`, "host.example slot1 slot1_1 slot2 slot3"},
		{"many, others", 53, `TargetType = "Scheduler"`, ""},
		{"constraint", 5, `Requirements = TARGET.DynamicSlot =?= true`, "slot1_1"},
		{"constraint without scope", 5, `Requirements = State == "Claimed"`, "slot1_1"},
		{"constraint, nothing fits", 5, `Requirements = Cpus > 99`, ""},
		{"constraint that is no condition", 5, `Requirements = "yes"`, ""},
		{"limit", 5, `LimitResults = 2`, "slot1 slot1_1"},
		{"limit 0", 5, `LimitResults = 0`, ""},
		{"limit over daemon and slots", 53, "TargetType = \"StartD Machine\"\nLimitResults = 2", "host.example slot1"},
		{"limit after the constraint", 5, "Requirements = SlotType == \"Static\"\nLimitResults = 1", "slot2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
				r.claim(slot.ID{N: 1}, "")
				ads := r.ask(t, tt.command, tt.query+"\nMyType = \"Query\"\n")
				if got := namesOf(ads); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
				for _, ad := range ads {
					for name, e := range ad.All() {
						if classad.IsPrivate(name) || strings.Contains(e.Text(classad.Old), "ShortVersion") {
							t.Errorf("%s leaves", name)
						}
					}
					if text(t, ad, "MyAddress") != ourAddress || text(t, ad, "LastHeardFrom") == "" {
						t.Errorf("MyAddress = %s, LastHeardFrom = %s", text(t, ad, "MyAddress"), text(t, ad, "LastHeardFrom"))
					}
				}
			})
		})
	}
}

// A snapshot has what programs of the owner's have said, in their words, whatever
// the constraint on slots; and no secret of theirs.
func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		r.Step(t, ep.Published{Source: "GOODCRON", Attrs: adOf(t, "GoodCron = 123\nClaimId = \"<1.2.3.4:5>#1#2#secret\"\n_condor_privToken = \"x\"\n")})
		r.Step(t, ep.Published{Source: "OTHER", Slot: slot.ID{N: 2}, Attrs: adOf(t, "Name = \"mine\"\nMyType = \"Machine\"\nOther = GoodCron + 1\n")})
		const none = "Requirements = JobId =!= undefined\n"
		for _, tt := range []struct {
			command     int
			query, want string
		}{
			{5, none + "Snapshot = 1", "GOODCRON OTHER slot2"},
			{5, none + "Snapshot = true\nLimitResults = 0", "GOODCRON OTHER slot2"},
			{5, none + "Snapshot = false", ""},
			{5, none + "Snapshot = \"yes\"", ""},
			{5, none, ""},
			{5, "Requirements = SlotID == 3\nSnapshot = true", "slot3 GOODCRON OTHER slot2"},
			{53, "TargetType = \"Machine.Extra\"\nSnapshot = true", "GOODCRON OTHER slot2"},
			{53, "TargetType = \"Machine.Extra\"", ""},
			{53, "TargetType = \"Machine\"\nSnapshot = true\n" + none, ""},
		} {
			ads := r.ask(t, tt.command, tt.query+"\nMyType = \"Query\"\n")
			if got := namesOf(ads); got != tt.want {
				t.Errorf("%d %q: %q, want %q", tt.command, tt.query, got, tt.want)
			}
			for _, ad := range ads {
				if name, _ := ad.EvalString("Name", nil); name == "GOODCRON" && ad.Len() != 3 {
					t.Errorf("%d %q: the ad is\n%s", tt.command, tt.query, ad.Text(classad.Old))
				}
			}
		}
	})
}

// What an expression refers to comes along with it.
func TestProjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		ads := r.ask(t, 5, `Projection = "Name,Requirements  Cpus nothing"`+"\nLimitResults = 1\nMyType = \"Query\"\n")
		if len(ads) != 1 {
			t.Fatalf("%d ads", len(ads))
		}
		for _, name := range []string{"Name", "Requirements", "Cpus", "Start", "WithinResourceLimits"} {
			if _, ok := ads[0].Lookup(name); !ok {
				t.Errorf("%s is missing", name)
			}
		}
		if _, ok := ads[0].Lookup("OpSys"); ok {
			t.Error("OpSys was not asked for")
		}
		if ads := r.ask(t, 5, "Projection = \"ClaimId,Capability\"\nMyType = \"Query\"\n"); len(ads) != 3 || ads[0].Len() != 0 {
			t.Errorf("asked for secrets: %v", ads)
		}
	})
}

// Many slots are told in several turns of the engine, none left out, none
// twice.
func TestQueryOfManySlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "NUM_CPUS = 200\nMEMORY = 200000\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_SLOTS_TYPE_1 = 200\n", pooltest.NewCollector("25.14.0"), nil)
		seen := make(map[string]bool)
		for _, ad := range r.ask(t, 5, "Projection = \"Name\"\nMyType = \"Query\"\n") {
			seen[text(t, ad, "Name")] = true
		}
		if len(seen) != 200 {
			t.Errorf("%d slots were told, want 200", len(seen))
		}
	})
}

// A constraint that costs too much ends the answer: one that lacks ads must not
// pass for a whole one.
func TestCostlyQuery(t *testing.T) {
	for _, constraint := range []string{
		`regexp("(.*a){500}b", "` + strings.Repeat("a", 20_000) + `")`,
		`regexp("(.{1,30}){1,30}!", strcat(Name, Activity, State, Machine, OpSys))`,
		`size(split("` + strings.Repeat("a ", 200_000) + `")) < 0`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "NUM_CPUS = 200\nMEMORY = 200000\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_SLOTS_TYPE_1 = 200\n", pooltest.NewCollector("25.14.0"), nil)
			for _, number := range []int{5, 53} {
				conn, done := r.call(t, number)
				ad, err := classad.ParseAd("MyType = \"Query\"\nTargetType = \"Machine\"\nRequirements = "+constraint, classad.Old)
				if err != nil {
					t.Fatal(err)
				}
				conn.PutAd(ad, cedar.AdOptions{})
				if err := conn.EndMessage(); err != nil {
					t.Fatal(err)
				}
				if n, err := conn.Int(); err == nil {
					t.Errorf("command %d with %.40s: answer begins with %d", number, constraint, n)
				}
				if err := <-done; !errs.Is(err, errs.Exhausted) {
					t.Errorf("command %d with %.40s: %v", number, constraint, err)
				}
			}
		})
	}
}

// A projection of more names than an ad has costs no more than the ad.
func TestLongProjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		var names strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&names, "name Name NoSuch%d ", i)
		}
		ads := r.ask(t, 5, "Projection = \""+names.String()+"state\"\nMyType = \"Query\"\n")
		if len(ads) != 3 || ads[0].Len() != 2 || text(t, ads[0], "Name") == "" || text(t, ads[0], "State") == "" {
			t.Errorf("%v", ads)
		}
	})
}

func TestGiveState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		state := func() string {
			conn, done := r.call(t, 448)
			s, err := conn.String()
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			return s
		}
		if got := state(); got != "Unclaimed" {
			t.Errorf("state is %s", got)
		}
		r.claim(slot.ID{N: 1}, "")
		if got := state(); got != "Claimed" {
			t.Errorf("with a claim the state is %s", got)
		}
		conn, done := r.call(t, 470)
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := ad.EvalInt("TotalSlots", nil); n != 4 {
			t.Errorf("totals %s", ad.Text(classad.Old))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Who sends half a query, or more than a query can be, gets nothing.
func TestBadQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		conn, done := r.call(t, 5)
		conn.PutInt(1000)
		conn.PutString(`A = 1`)
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("an ad that lacks lines was answered")
		}
		_, done = r.call(t, 5)
		began := time.Now()
		if err := <-done; err == nil || time.Since(began) != 15*time.Second {
			t.Errorf("silence was ended by %v after %v, want 15 s", err, time.Since(began))
		}
		conn, done = r.call(t, 5)
		conn.PutInt(1)
		conn.PutString(`A = "` + strings.Repeat("x", 2<<20) + `"`)
		conn.PutString("")
		conn.PutString("")
		go func() { _ = conn.EndMessage() }() // it is cut short
		if err := <-done; err == nil {
			t.Error("a query of 2 MiB was answered")
		}
	})
}

// Those who ask and never read hold nobody up, and are let go.
func TestSilentReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), nil)
		var gone []<-chan error
		for range 40 {
			conn, done := r.call(t, 5)
			conn.PutAd(classad.NewAd(), cedar.AdOptions{})
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			gone = append(gone, done)
		}
		synctest.Wait()
		began := time.Now()
		if got := namesOf(r.ask(t, 5, `MyType = "Query"`)); got != "slot1 slot2 slot3" || time.Since(began) != 0 {
			t.Errorf("the 41st was answered %q after %v", got, time.Since(began))
		}
		for _, done := range gone {
			if err := <-done; err == nil {
				t.Error("an answer that nobody read was sent")
			}
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("they were let go after %v, want a minute", d)
		}
	})
}

// Nobody who has hung up keeps a place among those whose answers are made.
func TestQueriesOfThoseWhoHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := make(chan struct{}, 8)
		s := newStation(t, stationOptions{text: twoStatic, change: func(c *pool.Config) {
			c.History = func(ctx context.Context, _ collector.OldJobs, _ func(*classad.Ad) bool) (int64, error) {
				reached <- struct{}{}
				<-ctx.Done() // a search that finds nothing
				return 0, context.Cause(ctx)
			}
		}})
		var conns []*cedar.Conn
		var ends []<-chan error
		ask := func(command int) {
			conn, done := s.handle(command, "", func(c *cedar.Conn) { c.PutAd(classad.NewAd(), cedar.AdOptions{}) })
			conns, ends = append(conns, conn), append(ends, done)
		}
		for range 8 { // as many as are made at the same time
			ask(429)
			<-reached
		}
		ask(429)
		ask(5) // these two wait for a place
		synctest.Wait()
		began := time.Now()
		for i := range slices.Backward(conns) { // those that wait first
			_ = conns[i].Close()
			if err := <-ends[i]; err == nil || !strings.Contains(err.Error(), "hung up") {
				t.Errorf("query %d ended with %v", i, err)
			}
		}
		conn, done := s.handle(5, "", func(c *cedar.Conn) { c.PutAd(classad.NewAd(), cedar.AdOptions{}) })
		if more, err := conn.Int(); err != nil || more != 1 {
			t.Errorf("the next query is answered %d, %v", more, err)
		}
		conn.DiscardMessage()
		if err := <-done; err != nil || time.Since(began) != 0 {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
	})
}

// Peers that ask for the history and never read do not keep others from their answers.
func TestSilentReadersOfTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mixed, pooltest.NewCollector("25.14.0"), func(c *pool.Config) {
			c.History = func(_ context.Context, _ collector.OldJobs, found func(*classad.Ad) bool) (int64, error) {
				job := classad.NewAd()
				job.SetString("Iwd", strings.Repeat("/long", 100))
				for found(job) {
				}
				return 0, nil
			}
		})
		var gone []<-chan error
		for n := range 40 {
			conn, done := r.call(t, command.GetHistory)
			ad := classad.NewAd()
			ad.SetBool("StreamResults", n%2 == 0)
			conn.PutAd(ad, cedar.AdOptions{})
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			gone = append(gone, done)
		}
		synctest.Wait()
		began := time.Now()
		if got := namesOf(r.ask(t, 5, `MyType = "Query"`)); got != "slot1 slot2 slot3" || time.Since(began) != 0 {
			t.Errorf("a query of ads was answered %q after %v", got, time.Since(began))
		}
		for _, done := range gone {
			if err := <-done; err == nil {
				t.Error("a history that nobody read was sent")
			}
		}
	})
}

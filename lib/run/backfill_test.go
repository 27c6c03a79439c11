// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

const boinc = `NUM_SLOTS = 2
ENABLE_BACKFILL = true
BACKFILL_SYSTEM = BOINC
BOINC_Executable = /usr/bin/boinc
BOINC_InitialDir = /var/lib/boinc
BOINC_Universe = vanilla
BOINC_Arguments = --no_gui_rpc
START_BACKFILL = Backfill =!= false
EVICT_BACKFILL = Evict =?= true
KILLING_TIMEOUT = 30
RunBenchmarks = false
STARTD_SHOULD_WRITE_CLAIM_ID_FILE = false
`

// script is a starter that says what a test wants.
type script struct {
	plan    *protocol.Plan
	reports chan protocol.Told
	exited  chan struct{}
	orders  []protocol.Order
	kills   chan struct{}
	status  host.ExitStatus
}

func (s *script) Proc() host.ProcID              { return host.ProcID{PID: 4710, Start: 1} }
func (s *script) Reports() <-chan protocol.Told  { return s.reports }
func (s *script) Heard(uint64)                   {}
func (s *script) Exited() <-chan struct{}        { return s.exited }
func (s *script) Exit() (host.ExitStatus, error) { return s.status, nil }
func (s *script) Send(o protocol.Order) error {
	s.orders = append(s.orders, o)
	return nil
}

func (s *script) Kill() error {
	s.kills <- struct{}{}
	return nil
}

// says is one report.
func (s *script) says(r protocol.Report) { s.reports <- protocol.Told{What: r} }

// runs says that the client does.
func (s *script) runs() {
	s.says(protocol.Running{Proc: host.ProcID{PID: 4711, Start: 1}})
}

// ends is the end of the client and its starter.
func (s *script) ends(rec protocol.ExitRecord) {
	s.says(protocol.Ended{Record: rec})
	s.goes(host.ExitStatus{Exited: true})
}

func (s *script) goes(status host.ExitStatus) {
	s.status = status
	close(s.reports)
	close(s.exited)
}

// fields is a laboratory with clients that a test plays.
type fields struct {
	*laboratory
	clients []*script
	refuse  error // no starter is to be had
}

func newFields(t *testing.T, text string, change ...func(*Options)) *fields {
	t.Helper()
	f := &fields{laboratory: newLaboratory(t, boinc+text, nil, change...)}
	f.back.launch = func(_ context.Context, p *protocol.Plan) (Starter, error) {
		if f.refuse != nil {
			return nil, f.refuse
		}
		s := &script{plan: p, reports: make(chan protocol.Told, 4), exited: make(chan struct{}), kills: make(chan struct{}, 4)}
		// The list belongs to the owner.
		f.mail.post(func(now clock.Instant) { f.clients = append(f.clients, s) })
		return s, nil
	}
	return f
}

// client waits for the n-th client's starter.
func (f *fields) client(n int) *script {
	f.t.Helper()
	f.until(func() bool { return len(f.clients) >= n && (f.back.client == nil || f.back.client.handle != nil) })
	return f.clients[n-1]
}

// up lets the first client come up.
func (f *fields) up() *script {
	f.t.Helper()
	f.pass(time.Minute)
	s := f.client(1)
	s.runs()
	f.until(func() bool { return f.pair(1) == policy.BackfillBusy })
	return s
}

func (f *fields) publish(name string, value bool) {
	ad := f.eng.SlotAd(slot.ID{N: 1}).Clone()
	ad.SetBool(name, value)
	f.step(f.clock.Now(), ep.Published{Source: "test", Attrs: ad})
}

func root(known ...string) func(*Options) {
	return func(o *Options) {
		o.Host.Account = func(name string) (*host.Identity, error) {
			if !slices.Contains(known, name) {
				return nil, errs.E("account.Lookup", errs.NotFound, name, errors.New("there is no such user"))
			}
			return &host.Identity{Name: name, UID: 102, GID: 105}, nil
		}
	}
}

// TestBackfillClient follows one client for two slots.
func TestBackfillClient(t *testing.T) {
	t.Parallel()
	f := newFields(t, "BOINC_Owner = boinc\nBOINC_Output = /var/log/boinc.out\n", root("boinc"), func(o *Options) { o.Execute = "/execute" })
	s := f.up()
	if f.pair(2) != policy.BackfillBusy || len(f.clients) != 1 {
		t.Errorf("slot2 is %v, %d clients", f.pair(2), len(f.clients))
	}
	p := *s.plan
	ofJobs := f.starterOf(slot.ID{N: 1}).settings
	if got := p.Settings.Update; got != 10*time.Second || ofJobs.Update == got {
		t.Errorf("it tells what it uses every %v", got)
	}
	if !strings.Contains(p.MachineAd, `Name = "slot1@host.example"`) || p.Settings.Nice.String() != ofJobs.Nice.String() {
		t.Errorf("the machine is\n%s", p.MachineAd)
	}
	p.MachineAd, p.Settings = "", nil
	lines := strings.SplitAfter(p.JobAd, "\n")
	slices.Sort(lines)
	p.JobAd = strings.Join(lines, "")
	if diff := cmp.Diff(protocol.Plan{
		Activation: "backfill#1", SlotName: "backfill", SlotFullName: "backfill@host.example", Execute: "/execute", Cpus: 1,
		Orphan: protocol.OrphanDie, Submit: protocol.SubmitSide{Local: true}, RunAs: &host.Identity{Name: "boinc", UID: 102, GID: 105},
		JobAd: "Args = \"--no_gui_rpc\"\nClusterId = 1\nCmd = \"/usr/bin/boinc\"\nIwd = \"/var/lib/boinc\"\nJobUniverse = 5\nMyType = \"Job\"\n" +
			"Out = \"/var/log/boinc.out\"\nOwner = \"boinc\"\nProcId = 0\nShouldTransferFiles = \"NO\"\n",
	}, p); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}

	s.says(protocol.Usage{Usage: host.Usage{UserCPU: time.Minute}})
	f.publish("Evict", true)
	f.pass(5 * time.Second)
	if diff := cmp.Diff([]protocol.Order{protocol.SoftKill{
		Leave: protocol.Leave{Manner: protocol.MannerVacate, Asked: "startd", Reason: "the machine is wanted for something else"}, Deadline: 30 * time.Second,
	}}, s.orders); diff != "" || f.pair(1) != policy.BackfillKilling {
		t.Errorf("slot1 is %v; orders (-want +got):\n%s", f.pair(1), diff)
	}
	f.publish("Backfill", false)
	s.ends(protocol.ExitRecord{Status: host.ExitStatus{Exited: true}, Evicted: true, Problems: []string{"something odd"}})
	f.until(func() bool { return f.back.client == nil })
	f.pass(time.Second)
	for n := 1; n <= 2; n++ {
		if got := f.pair(n); got != policy.OwnerIdle && got != policy.UnclaimedIdle {
			t.Errorf("slot%d is %v", n, got)
		}
	}
	for _, want := range []string{"backfill client runs", "pid=4711 user=boinc", "something odd", `status="exited with status 0"`} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, f.log)
		}
	}
}

// TestNoBackfill looks for the line that says why there is none.
func TestNoBackfill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, log string }{
		// row: S0-192
		{"not enabled", "ENABLE_BACKFILL = false\nBOINC_Universe = java\nBOINC_Owner =\n", ""},
		// row: S0-193, S4-085
		{"another system", "BACKFILL_SYSTEM = SETI\n", `knob BACKFILL_SYSTEM: unknown backfill system; there is no backfill (value \"SETI\", want BOINC)`},
		{"no system", "BACKFILL_SYSTEM =\n", "knob BACKFILL_SYSTEM: backfill is enabled without a system"},
		// row: S0-198
		{"no executable", "BOINC_Executable =\n", "knob BOINC_Executable: not set, and needed; there is no backfill"},
		{"no directory", "BOINC_InitialDir =\n", "knob BOINC_InitialDir: not set, and needed; there is no backfill"},
		{"no universe", "BOINC_Universe =\n", "knob BOINC_Universe: not set, and needed; there is no backfill"},
		{"no owner", "BOINC_Owner =\n", "knob BOINC_Owner: not set, and needed where the Execution Point runs as root; there is no backfill"},
		{"unknown owner", "BOINC_Owner = nosuch\n", `test.conf:16:1: knob BOINC_Owner: account.Lookup nosuch: not found: there is no such user; there is no backfill (value \"nosuch\"`},
		{"owner of another system", "BOINC_Owner = domain\\boinc\n", "there is no such user; there is no backfill"},
		// row: S0-199
		{"another universe", "BOINC_Universe = java\n", `knob BOINC_Universe: the client can run in no such universe; there is no backfill (value \"java\", want vanilla)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFields(t, "BOINC_Owner = boinc\n"+tt.text, root("boinc"))
			f.pass(time.Minute)
			f.pass(time.Hour)
			if f.pair(1) != policy.UnclaimedIdle || f.back.client != nil {
				t.Errorf("slot1 is %v", f.pair(1))
			}
			if log := f.log.String(); !strings.Contains(log, tt.log) || tt.log == "" && strings.Contains(log, "BOINC") {
				t.Errorf("%s", log)
			}
		})
	}
}

// TestOwnerWithoutRights runs the client as who runs the EP.
func TestOwnerWithoutRights(t *testing.T) {
	t.Parallel()
	f := newFields(t, "BOINC_Owner = boinc\n")
	s := f.up()
	defer s.goes(host.ExitStatus{Signal: 9})
	if s.plan.RunAs != nil {
		t.Errorf("it runs as %+v", s.plan.RunAs)
	}
	if !strings.Contains(f.log.String(), "knob BOINC_Owner: not used") {
		t.Errorf("%s", f.log)
	}
}

// TestClientCannotRun tells each reason once, and tries again.
func TestClientCannotRun(t *testing.T) {
	t.Parallel()
	var told []string
	f := newFields(t, "", func(o *Options) { o.Problem = func(err error) { told = append(told, err.Error()) } })
	f.refuse = errors.New("no starter today")
	f.pass(time.Minute)
	f.until(func() bool { return f.back.count == 1 && f.back.client == nil })
	f.pass(time.Second)
	f.until(func() bool { return f.back.count == 2 && f.back.client == nil })
	f.refuse = nil
	f.pass(time.Minute)
	s := f.client(1)
	s.ends(protocol.ExitRecord{Held: &protocol.Hold{Code: 6, Reason: "no such program"}})
	f.until(func() bool { return f.back.client == nil })
	if f.pair(1) != policy.BackfillIdle {
		t.Errorf("slot1 is %v", f.pair(1))
	}
	f.pass(time.Minute)
	s = f.client(2)
	s.goes(host.ExitStatus{Signal: 11})
	f.until(func() bool { return f.back.client == nil })
	if diff := cmp.Diff([]string{
		"the backfill client does not run: no starter today", "the backfill client does not run: no such program",
		"the backfill client does not run: its starter died on signal 11",
	}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEndOfClient ends the EP in several ways while a client runs.
func TestEndOfClient(t *testing.T) {
	t.Parallel()
	ops := func(s *script) string {
		var out []string
		for _, o := range s.orders {
			within := time.Duration(0)
			if soft, ok := o.(protocol.SoftKill); ok {
				within = soft.Deadline
			}
			out = append(out, fmt.Sprint(o.Kind(), " ", within))
		}
		return strings.Join(out, ", ")
	}
	well := protocol.ExitRecord{Status: host.ExitStatus{Exited: true}, Evicted: true}
	for _, tt := range []struct {
		name string
		play func(f *fields, s *script)
		want string // orders
	}{
		{"interrupted", func(f *fields, s *script) {
			f.interrupt(f.clock.Now(), ep.Graceful)
			if f.over() {
				f.t.Error("the client is not waited for")
			}
			s.ends(well)
		}, "softkill 30s"},
		{"interrupted twice", func(f *fields, s *script) {
			f.interrupt(f.clock.Now(), ep.Graceful)
			f.interrupt(f.clock.Now(), ep.Graceful)
			s.ends(well)
		}, "softkill 30s, hardkill 0s"},
		{"the last job is done", func(f *fields, s *script) {
			f.tendBackfill(f.clock.Now())
			f.tendBackfill(f.clock.Now())
			if f.over() {
				f.t.Error("the client is not waited for")
			}
			s.ends(well)
		}, "softkill 30s"},
		{"its starter hangs", func(f *fields, s *script) {
			f.tendBackfill(f.clock.Now())
			if d := f.backfillDue(f.clock.Now()); d != 40*time.Second {
				f.t.Errorf("due in %v", d)
			}
			f.clock.Advance(40*time.Second - 1)
			f.tendBackfill(f.clock.Now())
			f.clock.Advance(1)
			select {
			case <-s.kills:
				f.t.Error("it is killed too soon")
			default:
			}
			f.tendBackfill(f.clock.Now())
			<-s.kills
			s.goes(host.ExitStatus{Signal: 9})
		}, "softkill 30s"},
		{"the next one is told before it runs", func(f *fields, s *script) {
			f.stopBackfill(f.clock.Now(), f.clock.Now().Add(time.Second))
			s.ends(well)
			f.until(func() bool { return f.back.client == nil })
			f.pass(time.Minute)
			f.interrupt(f.clock.Now(), ep.Graceful)
			s2 := f.client(2)
			if got := ops(s2); got != "softkill 30s" {
				f.t.Errorf("the second client is told %s", got)
			}
			s2.ends(well)
		}, "softkill 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFields(t, "")
			s := f.up()
			tt.play(f, s)
			f.until(f.over)
			if got := ops(s); got != tt.want {
				t.Errorf("told %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("the node is closed", func(t *testing.T) {
		t.Parallel()
		f := newFields(t, "")
		s := f.up()
		closed := make(chan struct{})
		go func() {
			f.node.close()
			close(closed)
		}()
		<-s.kills
		select {
		case <-closed:
			t.Error("it did not wait for the starter")
		default:
		}
		s.goes(host.ExitStatus{Signal: 9})
		<-closed
		f.node = nil
	})
}

// TestReloadOfBackfill switches backfill off and on by the configuration.
func TestReloadOfBackfill(t *testing.T) {
	t.Parallel()
	f := newFields(t, "BOINC_Owner = boinc\n", root("boinc", "other"))
	s := f.up()
	load := func(text string) {
		t.Helper()
		snap, err := config.Parse("test.conf", "UPDATE_INTERVAL = 60\nIS_OWNER = KOwner =?= True\n"+boinc+text,
			config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(f.o.Inventory)})
		if err != nil {
			t.Fatal(err)
		}
		settings, err := f.startersOf(snap)
		if err != nil {
			t.Fatal(err)
		}
		f.loaded(f.clock.Now(), snap, settings, nil)
	}
	load("BOINC_Owner = nosuch\n")
	if f.pair(1) != policy.BackfillKilling || len(s.orders) != 1 || !strings.Contains(f.log.String(), "there is no such user; there is no backfill") {
		t.Errorf("slot1 is %v\n%s", f.pair(1), f.log)
	}
	s.ends(protocol.ExitRecord{Status: host.ExitStatus{Exited: true}, Evicted: true})
	f.until(func() bool { return f.back.client == nil })
	f.pass(time.Hour)
	if f.pair(1) != policy.UnclaimedIdle {
		t.Errorf("slot1 is %v", f.pair(1))
	}
	load("BOINC_Owner = other\n")
	f.pass(time.Minute)
	s = f.client(2)
	s.runs()
	f.until(func() bool { return f.pair(1) == policy.BackfillBusy })
	if s.plan.RunAs.Name != "other" {
		t.Errorf("it runs as %+v", s.plan.RunAs)
	}
	load("BOINC_Owner = other\nENABLE_BACKFILL = false\n")
	if f.pair(1) != policy.BackfillKilling {
		t.Errorf("slot1 is %v", f.pair(1))
	}
	s.ends(protocol.ExitRecord{Status: host.ExitStatus{Exited: true}, Evicted: true})
	f.until(func() bool { return f.back.client == nil })
}

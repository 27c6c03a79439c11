// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// turn lets time pass and does all that the owner does about it.
func (l *laboratory) turn(d time.Duration) {
	now := l.clock.Advance(d)
	l.step(now, ep.Tick{})
	l.runCron(now)
	l.settle(now)
}

// await does what comes from beside the owner until cond holds.
func (l *laboratory) await(cond func() bool) {
	l.turn(0)
	for !cond() {
		f := <-l.mail.inbox
		f(l.clock.Now())
		l.turn(0)
	}
}

// resting reports whether no program of the cron runs.
func (l *laboratory) resting() bool { return len(l.cron.runs) == 0 && !l.cron.moved }

// counts is a program that prints how often it has been started.
func counts(n *atomic.Int64, format string) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		fmt.Fprintf(p.Spec().Stdout, format, n.Add(1))
		return host.ExitStatus{Exited: true}
	}
}

// row: S0-225, S0-238, S0-242
func TestCronOfARun(t *testing.T) {
	t.Parallel()
	var periodic, once, again, conditional, restricted atomic.Int64
	l := newLaboratory(t, `
NUM_SLOTS = 2
SLOT_TYPE_0_PARTITIONABLE = false
STARTD_CRON_JOBLIST = P O W C R
STARTD_CRON_P_EXECUTABLE = /p
STARTD_CRON_P_PERIOD = 10s
STARTD_CRON_O_EXECUTABLE = /o
STARTD_CRON_O_MODE = OneShot
STARTD_CRON_W_EXECUTABLE = /w
STARTD_CRON_W_MODE = WaitForExit
STARTD_CRON_W_PERIOD = 15s
STARTD_CRON_C_EXECUTABLE = /c
STARTD_CRON_C_PERIOD = 60s
STARTD_CRON_C_CONDITION = Again >= 2
STARTD_CRON_R_EXECUTABLE = /r
STARTD_CRON_R_MODE = OneShot
STARTD_CRON_R_SLOTS = 2
`, map[string]hosttest.Program{
		"/p": counts(&periodic, "P = %d\n-\n"), "/o": counts(&once, "O = %d\n-\n"),
		"/w": counts(&again, "Again = %[1]d\nKOwner = %[1]d > 2\n-\n"),
		"/c": counts(&conditional, "C = %d\n-\n"), "/r": counts(&restricted, "R = %d\nOnly = SlotID\n-\n"),
	})
	names := []string{"P", "O", "Again", "C", "R", "Only"}
	for i, want := range []struct{ one, two string }{
		{"1 1 1 - - -", "1 1 1 - 1 2"},
		{"2 1 2 1 - -", "2 1 2 1 1 2"},
		{"3 1 2 1 - -", "3 1 2 1 1 2"},
		{"4 1 3 1 - -", "4 1 3 1 1 2"},
		{"5 1 4 1 - -", "5 1 4 1 1 2"},
	} {
		l.await(l.resting)
		l.turn(5 * time.Second) // CONDITION is looked at every POLLING_INTERVAL
		l.await(l.resting)
		if one, two := l.attrs(1, names...), l.attrs(2, names...); one != want.one || two != want.two {
			t.Errorf("after %d s: slot1 %s, slot2 %s; want %s and %s", 10*i+5, one, two, want.one, want.two)
		}
		l.turn(5 * time.Second)
	}
	if l.pair(1) != policy.UnclaimedIdle {
		t.Fatalf("slot1 is %v", l.pair(1))
	}
	l.turn(time.Minute) // the policy sees what W printed
	if l.pair(1) != policy.OwnerIdle {
		t.Errorf("KOwner is true, but slot1 is %v", l.pair(1))
	}
}

// A run that ends leaves no program behind, even one that does not want to go.
func TestCronEndsWithTheRun(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, `
STARTD_CRON_JOBLIST = S
STARTD_CRON_S_EXECUTABLE = /s
STARTD_CRON_S_MODE = WaitForExit
STARTD_CRON_S_PERIOD = 1
`, map[string]hosttest.Program{"/s": func(p *hosttest.Process) host.ExitStatus {
		fmt.Fprint(p.Spec().Stdout, "S = 1\n-\n")
		for p.Sleep(time.Hour) != hosttest.SIGKILL {
		}
		return host.ExitStatus{Signal: hosttest.SIGKILL}
	}})
	l.await(func() bool { return l.attrs(1, "S") == "1" })
	l.node.close()
	l.node = nil
	for _, f := range l.machine.Families() {
		if !f.Alone() || !f.Closed() {
			t.Error("something of a family is left")
		}
	}
}

// row: S0-010, S0-040, S0-237
func TestReload(t *testing.T) {
	t.Parallel()
	var kept, gone, fresh, rerun atomic.Int64
	const before = `
STARTD_CRON_JOBLIST = K G R
STARTD_CRON_K_EXECUTABLE = /k
STARTD_CRON_K_PERIOD = 1h
STARTD_CRON_G_EXECUTABLE = /g
STARTD_CRON_G_PERIOD = 1h
STARTD_CRON_R_EXECUTABLE = /r
STARTD_CRON_R_MODE = OneShot
STARTD_CRON_R_RECONFIG_RERUN = true
`
	const after = `
STARTD_CRON_JOBLIST = K R F
STARTD_CRON_K_EXECUTABLE = /k
STARTD_CRON_K_PERIOD = 1h
STARTD_CRON_R_EXECUTABLE = /r
STARTD_CRON_R_MODE = OneShot
STARTD_CRON_R_RECONFIG_RERUN = true
STARTD_CRON_F_EXECUTABLE = /f
STARTD_CRON_F_PERIOD = 1h
POLLING_INTERVAL = 3
START = False
NUM_SLOTS = 7
MACHINE_RESOURCE_Cogs = 16
`
	l := newLaboratory(t, before, map[string]hosttest.Program{
		"/k": counts(&kept, "K = %d\n-\n"), "/g": counts(&gone, "G = %d\n-\n"),
		"/r": counts(&rerun, "R = %d\n-\n"), "/f": counts(&fresh, "F = %d\n-\n"),
	})
	var told []string
	l.o.Problem = func(err error) { told = append(told, err.Error()) }
	text, fails := "", error(nil)
	l.o.Load = func(context.Context) (*config.Snapshot, error) {
		if fails != nil {
			return nil, fails
		}
		return config.Parse("next.conf", "UPDATE_INTERVAL = 60\nIS_OWNER = KOwner =?= True\n"+text, config.Options{Subsystem: "STARTD"})
	}
	l.await(func() bool { return l.resting() && l.attrs(1, "K", "G", "R") == "1 1 1" })
	was, inv := l.o.Config, l.o.Inventory
	reconfigured := 0
	l.o.Reconfigured = func(*config.Snapshot) { reconfigured++ }

	for _, bad := range []struct {
		text string
		err  error
		want string
	}{
		{"", errs.E("config.Load", errs.NotFound, "/etc/c", errors.New("no such file")), "no such file"},
		{after + "START = (\n", nil, "next.conf:16"},
		{after + "MODIFY_REQUEST_EXPR_REQUESTCPUS = )\n", nil, "next.conf:16"},
		{after + "SLOT_TYPE_1_PARTITIONABLE = perhaps\nNUM_SLOTS_TYPE_1 = 1\n", nil, "SLOT_TYPE_1_PARTITIONABLE"},
		{after + "MAX_HISTORY_LOG = much\n", nil, `knob MAX_HISTORY_LOG: is not an integer (value "much", want a whole number)`},
		// What the engine alone reads, it alone refuses.
		{after + "CLAIM_PARTITIONABLE_LEFTOVERS = perhaps\n", nil, `next.conf:16:1: knob CLAIM_PARTITIONABLE_LEFTOVERS: is not a boolean (value "perhaps", want True or False)`},
		{after + "STARTD_RECOMPUTE_DISK = perhaps\n", nil, `next.conf:16:1: knob STARTD_RECOMPUTE_DISK: is not a boolean (value "perhaps", want True or False)`},
		{after + "MAX_PARTITIONABLE_SLOT_CLAIM_TIME = 10000000000\n", nil, "knob MAX_PARTITIONABLE_SLOT_CLAIM_TIME: is too long a time"},
	} {
		told, text, fails = nil, bad.text, bad.err
		l.reload()
		l.await(func() bool { return !l.reloads.under })
		if len(told) != 1 || !strings.Contains(told[0], bad.want) || !strings.Contains(told[0], "the old one stays") {
			t.Errorf("told %q, want %q", told, bad.want)
		}
		if l.wakes.poll != 5*time.Second || l.attrs(1, "Start", "F") != "true -" || l.o.Config != was || l.o.Inventory != inv {
			t.Errorf("%q: something was taken over", bad.text)
		}
	}

	if reconfigured > 0 {
		t.Errorf("the parts around were told %d times", reconfigured)
	}
	told, text, fails = nil, after, nil
	l.reload()
	l.reload() // a second wish meanwhile is not lost
	l.await(func() bool { return !l.reloads.under && l.resting() && l.attrs(1, "F") == "1" })
	if l.wakes.poll != 3*time.Second || l.attrs(1, "Start") != "false" {
		t.Errorf("polling every %v, Start %s", l.wakes.poll, l.attrs(1, "Start"))
	}
	if got := l.attrs(1, "K", "G", "F"); got != "1 - 1" || kept.Load() != 1 || fresh.Load() != 1 || rerun.Load() < 2 {
		t.Errorf("attributes %s, started %d %d %d", got, kept.Load(), fresh.Load(), rerun.Load())
	}
	if l.eng.SlotAd(slot.ID{N: 2}) != nil || l.attrs(1, "Cogs") != "-" {
		t.Error("slots or resources have changed without a restart")
	}
	if len(told) != 1 || !strings.Contains(told[0], "NUM_SLOTS") || !strings.Contains(told[0], "started again") {
		t.Errorf("told %q", told)
	}
}

// row: S2-035, S2-036, S4-056
func TestFactsInTheLog(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 50%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = 50%\n"+
		"RESERVED_DISK = 3\nSTARTD_PRINT_ADS_ON_SHUTDOWN = true\nSTARTD_PRINT_ADS_FILTER = static\n", nil)
	sample, _ := quiet{l.clock}.Sample(t.Context())
	sample.LoadAvg, sample.FreeSwapKiB, sample.FreeDiskKiB = 0.25, 77, 88
	l.log.Reset()
	l.sampled(l.clock.Now(), sample)
	if l.log.Len() > 0 {
		t.Errorf("said without being asked: %s", l.log)
	}
	l.o.Log = slog.New(observe.NewLogHandler(l.log, slog.LevelDebug))
	l.sampled(l.clock.Now(), sample)
	for _, want := range []string{
		") swap space free_kib=77\n", ") disk space free_kib=88 reserved_kib=3072\n", ") load average load=0.25\n", ") idle time keyboard_s=3600\n",
		") slot1: load SystemLoad=0.25 CondorLoad=0 OwnerLoad=0.25\n", ") slot1: state State=Unclaimed Activity=Idle\n", ") slot2: state ",
	} {
		if !strings.Contains(l.log.String(), want) {
			t.Errorf("no %s in\n%s", want, l.log)
		}
	}
	if lines := strings.Count(l.log.String(), "\n"); lines != 8 || strings.Count(l.log.String(), ") slot") != 4 {
		t.Errorf("%d lines: %s", lines, l.log)
	}

	for filter, kinds := range map[string][]slot.Kind{"static": {slot.Static}, "Partitionable": {slot.Partitionable}, "dynamic": nil, "": {slot.Static, slot.Partitionable}} {
		l.log.Reset()
		conf := "STARTD_PRINT_ADS_ON_SHUTDOWN = true\n"
		if filter != "" {
			conf += "STARTD_PRINT_ADS_FILTER = " + filter + "\n"
		}
		var err error
		if l.o.Config, err = config.Parse("ads.conf", conf, config.Options{Subsystem: "STARTD"}); err != nil {
			t.Fatal(err)
		}
		l.logAds()
		for _, k := range []slot.Kind{slot.Static, slot.Partitionable} {
			shown := strings.Contains(l.log.String(), fmt.Sprintf("SlotType = %q", k.String()))
			want := false
			for _, w := range kinds {
				want = want || w == k
			}
			if shown != want || !strings.Contains(l.log.String(), "BEGIN AD DUMP") {
				t.Errorf("filter %q: %v shown is %v\n%s", filter, k, shown, l.log)
			}
		}
	}
	l.log.Reset()
	l.o.Config, _ = config.Parse("ads.conf", "", config.Options{Subsystem: "STARTD"})
	if l.logAds(); l.log.Len() > 0 {
		t.Errorf("ads nobody wants: %s", l.log)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	var p pace
	held := 0
	for i := range 10 * maxAds { // ten ads a millisecond
		at := start.Add(time.Duration(i) * 100 * time.Microsecond)
		if d := p.hold(at); d > 0 {
			held++
			if want := start.Add(time.Second).Sub(at); d != want {
				t.Fatalf("ad %d waits %v, want %v", i, d, want)
			}
		}
	}
	if held != 9*maxAds+1 {
		t.Errorf("%d ads were held up", held)
	}
	if d := p.hold(start.Add(time.Second)); d != 0 {
		t.Errorf("held up in the next second: %v", d)
	}
}

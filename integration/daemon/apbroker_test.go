// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
)

// TestAccessPointBehindBroker has an access point that nobody can connect to:
// its schedd and shadows, or the shared port before them, are registered with a
// broker. The starters of both sides ask it for every connection that they
// open, and where the Execution Point is behind a broker too it relays.
func TestAccessPointBehindBroker(t *testing.T) {
	t.Parallel()
	for _, m := range []cell{
		{method: "FS", ap: apOwnPorts, quick: true},
		{method: "IDTOKENS", broker: true, ap: apOwnPorts, quick: true},
		{method: "FS", ap: apSharedPort, quick: true},
		{method: "IDTOKENS", shared: true, ap: apOwnPorts},
		{method: "PASSWORD", master: true, shared: true, broker: true, ap: apSharedPort},
	} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			if !m.quick {
				realpool.NeedLong(t)
			}
			if m.broker {
				realpool.Find(t).NeedVersion(t, relays, "a broker relays between two that nobody can connect to")
			}
			a := newArena(t, m)
			a.reached()
			a.behind()
			jobs := a.submit()
			a.visit(jobs)
			a.vacated(jobs)
			a.rejoin(jobs)
			a.finish(jobs)
			a.rehomed()
			a.asked()
			a.secured()
		})
	}
}

// TestAccessPointBehindTwoBrokers has the access point's broker be behind another
// one. Our starter has both relay, or finds the way without. The original's is
// not run: it asks the outer broker for the number that the inner one gave.
func TestAccessPointBehindTwoBrokers(t *testing.T) {
	t.Parallel()
	for _, m := range []cell{
		{method: "FS", ap: apTunnel},
		{method: "FS", ap: apTunnel, unrelayed: true},
	} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			realpool.Find(t).NeedVersion(t, cedar.Version{Major: 25, Minor: 14}, "a broker can be behind another one")
			a := newArena(t, m)
			a.behind()
			ours := a.sides[1]
			j := a.submitTo(ours)
			a.running(ours, j)
			if out, err := a.Run(t.Context(), "condor_tail", j.id); err != nil || out != "begun\n" {
				t.Errorf("condor_tail: %q, %v", out, err)
			}
			a.Write(filepath.Join(j.dir, "go"), "", 0o644)
			a.ended(ours, j)
			logs := map[string]string{}
			for name, path := range map[string]string{"outer": "log/CollectorLog", "inner": "inner/log/CollectorLog"} {
				b, err := os.ReadFile(filepath.Join(a.Dir, path))
				a.Must(err)
				logs[name] = string(b)
			}
			// The input and the output.
			asked := relaying.FindAllString(logs["outer"], -1)
			called := strings.Count(logs["outer"], "CCB: reverse-connecting to old client")
			if len(asked) < 2 || m.unrelayed != (called >= 2) || !m.unrelayed && called > 0 {
				t.Errorf("the outer broker relayed %d times, and called us for that %d times", len(asked), called)
			}
			if n := strings.Count(logs["inner"], "CCB: relaying inbound tunnel to next-hop ccbid"); n < 2 {
				t.Errorf("the inner broker was asked for a shadow %d times", n)
			}
		})
	}
}

// relays is the first version whose brokers relay.
var relays = cedar.Version{Major: 25, Minor: 13}

// behind looks at the address of the schedd.
func (a *arena) behind() {
	a.TB.Helper()
	at := strings.TrimSpace(a.Tool("condor_status", "-schedd", "-af", "MyAddress"))
	if !strings.Contains(at, "CCBID=") || strings.Contains(at, "sock=") != (a.ap == apSharedPort) {
		a.TB.Errorf("the schedd is reached at %s", at)
	}
}

// vacated has the owners of the machines want them back. The startds tell the
// schedd that the claims have ended, and the jobs begin again.
func (a *arena) vacated(jobs [2]submitted) {
	a.TB.Helper()
	for _, e := range a.sides {
		whom := []string{"slot1_1@" + e.Host()}
		if a.Version.AtLeast(23, 2, 0) && !a.Version.AtLeast(25, 0, 0) { // these tools do not find a slot
			whom = []string{"-addr", strings.Fields(a.Tool("condor_status", "-af", "MyAddress", "-constraint", fmt.Sprintf("Rig == %q", e.Name)))[0]}
		}
		a.Tool("condor_vacate", append([]string{"-fast"}, whom...)...)
	}
	a.Eventually("the schedd is told that both claims have ended", realpool.Patience, func(context.Context) error {
		b, err := os.ReadFile(filepath.Join(a.Dir, "log", "SchedLog"))
		a.Must(err)
		if n := bytes.Count(b, []byte("command 443 (RELEASE_CLAIM)")); n < 2 {
			return fmt.Errorf("it was told %d times", n)
		}
		return nil
	})
	for i, j := range jobs {
		a.Eventually("the job of "+a.sides[i].Name+" runs again", realpool.Patience, func(context.Context) error {
			events, err := os.ReadFile(filepath.Join(j.dir, "job.log"))
			if err == nil && bytes.Count(events, []byte("\n001 (")) < 2 {
				err = fmt.Errorf("the job's log:\n%s\nStartLog:\n%s", events, realpool.Last(a.sides[i].Log("StartLog"), 12))
			}
			return err
		})
	}
}

// rehomed has our tool, which has no command socket, find the schedd through the
// broker and lend it our machine, and our startd offer its slots in the same
// way.
func (a *arena) rehomed() {
	a.TB.Helper()
	tool := filepath.Join(a.Dir, "condor_ep")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/execpoint/execpoint/bin/condor_ep").CombinedOutput(); err != nil {
		a.TB.Fatalf("%v\n%s", err, out)
	}
	far := filepath.Join(a.Dir, "far_config")
	a.Write(far, "include : "+a.Config+"\nTOOL.PRIVATE_NETWORK_NAME = elsewhere\n", 0o644)
	name := strings.TrimSpace(a.Tool("condor_status", "-schedd", "-af", "Name"))
	ours := a.sides[1]
	cmd := a.Command(a.TB.Context(), tool, "rehome", ours.Host(), name)
	cmd.Env = append(cmd.Env, "CONDOR_CONFIG="+far)
	if out, err := cmd.CombinedOutput(); err != nil {
		a.TB.Fatalf("condor_ep rehome: %v\n%s", err, out)
	}
	a.Eventually("our slots are offered to the schedd", realpool.Patience, func(context.Context) error {
		if log := ours.Log("StartLog"); !strings.Contains(log, "slots were offered to the access point") {
			return errors.New(realpool.Last(log, 12))
		}
		return nil
	})
	b, err := os.ReadFile(filepath.Join(a.Dir, "log", "CollectorLog"))
	a.Must(err)
	if !regexp.MustCompile(`request id \d+ from TOOL on \S+ for target ccbid ` + a.schedds() + ` `).Match(b) {
		a.TB.Error("our tool asked the schedd past the broker")
	}
}

// schedds is what the schedd is known as at the broker.
func (a *arena) schedds() string {
	a.TB.Helper()
	at := a.Tool("condor_status", "-schedd", "-af", "MyAddress")
	m := regexp.MustCompile(`CCBID=\S+?#(\d+)&`).FindStringSubmatch(at)
	if m == nil {
		a.TB.Fatalf("the schedd is reached at %s", at)
	}
	return m[1]
}

// What a broker logs of those who are registered with it and of who wants them.
var (
	registration = regexp.MustCompile(`CCB: registered target daemon (\S+) <\S+> on \S+ with ccbid (\d+)`)
	request      = regexp.MustCompile(`CCB: received request id \d+ from (\S+ <\S+>) on \S+ for target ccbid (\d+)`)
	relaying     = regexp.MustCompile(`CCB: started streaming \(proxy\) session for target ccbid (\d+)`)
)

// asked looks at who was asked for at the broker, and by whom. All are on one
// machine: without this a connection past the broker would not be noticed.
func (a *arena) asked() {
	a.TB.Helper()
	b, err := os.ReadFile(filepath.Join(a.Dir, "log", "CollectorLog"))
	a.Must(err)
	log := string(b)
	whose := make(map[string]string)     // who is registered as what
	wanted := make(map[string]int)       // how often
	by := make(map[string]bool)          // who asked for somebody to connect to him
	relayed := make(map[string]struct{}) // who was asked for by somebody to whom nobody can connect
	for _, m := range registration.FindAllStringSubmatch(log, -1) {
		whose[m[2]] = m[1]
	}
	for _, m := range request.FindAllStringSubmatch(log, -1) {
		wanted[m[2]]++
		if who, _, _ := strings.Cut(m[1], " "); who == "STARTER" || who == "STARTD" {
			by[m[1]] = true
		}
	}
	for _, m := range relaying.FindAllStringSubmatch(log, -1) {
		wanted[m[1]]++
		relayed[m[1]] = struct{}{}
	}
	// Each side has a starter before and one after its owner wanted the machine,
	// each with a shadow, and another shadow since the schedd came back.
	shadows := 0
	for id, what := range whose {
		if what != "SHADOW" {
			continue
		}
		shadows++
		if wanted[id] == 0 {
			a.TB.Errorf("files went past the broker to the shadow with ccbid %s", id)
		}
		if _, ok := relayed[id]; ok != a.broker {
			a.TB.Errorf("connections to the shadow with ccbid %s are relayed: %v", id, ok)
		}
	}
	if want := map[apBroker]int{apOwnPorts: 6}[a.ap]; shadows != want {
		a.TB.Errorf("%d shadows are registered, want %d", shadows, want)
	}
	if a.ap == apSharedPort {
		id := a.schedds()
		if _, ok := relayed[id]; ok != a.broker || wanted[id] < 6 || whose[id] != "SHARED_PORT" { // the input of four jobs, the output of two
			a.TB.Errorf("the %s of the access point was asked for %d times, relayed: %v", whose[id], wanted[id], ok)
		}
	}
	if a.broker {
		return
	}
	asked := slices.Sorted(maps.Keys(by))
	for _, e := range a.sides {
		at, _, _ := strings.Cut(strings.TrimSpace(a.Tool("condor_status", "-af", "MyAddress", "-constraint", fmt.Sprintf("Rig == %q", e.Name))), "?")
		if !slices.ContainsFunc(asked, func(who string) bool { return strings.HasPrefix(who, "STARTD "+at+"?") }) {
			a.TB.Errorf("the startd of %s at %s told the schedd of its claim past the broker, which %q asked", e.Name, at, asked)
		}
	}
	starters := 0
	for _, who := range asked {
		if strings.HasPrefix(who, "STARTER ") {
			starters++
		}
	}
	if starters < 4 {
		a.TB.Errorf("%d starters asked the broker, want 4: %q", starters, asked)
	}
}

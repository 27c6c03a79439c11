// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/admin"
	"github.com/execpoint/execpoint/lib/pool/claims"
)

// removal is a daemon whose EP moves by command.
type removal struct {
	*station
	ap *submitter

	mu     sync.Mutex
	did    []string      // in order
	refuse error         // of Persist
	slow   time.Duration // until Persist is done
	fails  error         // of Reboot
}

func (r *removal) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, s)
}

func (r *removal) done() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	did := strings.Join(r.did, "; ")
	r.did = nil
	return did
}

// inBubble runs f with a daemon that takes its own settings over as soon as it
// is told to.
func inBubble(t *testing.T, text string, f func(t *testing.T, r *removal)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &removal{ap: &submitter{t: t, result: 1, name: "new@example", address: "<127.0.0.1:9700>"}}
		kept := ""
		m := &admin.Mover{
			Persist: func(name, lines string) error {
				r.note("persist " + name + " " + strings.TrimSpace(strings.ReplaceAll(lines, "\n", " ")))
				if lines == "" { // taking back always succeeds
					kept = ""
					return nil
				}
				pass(r.slow)
				if r.refuse == nil {
					kept = lines
				}
				return r.refuse
			},
			Reconfigure: func() {
				r.note("reconfigure")
				settings := r.Settings(t)
				for line := range strings.Lines(kept) {
					if _, value, ok := strings.Cut(line, "SCHEDD_NAME = "); ok {
						settings.Claims.Attach = claims.Attach{Schedd: strings.TrimSpace(value), Interval: time.Minute}
						settings.Admin.Schedd = settings.Claims.Attach.Schedd
					}
				}
				r.pool.Reconfigure(settings)
			},
			Reboot: func(_ context.Context, command string) error {
				empty := r.slots()
				r.note("reboot by " + command + " of " + strings.Join(empty, ", "))
				return r.fails
			},
		}
		r.station = newStation(t, stationOptions{text: inBits + text, open: r.ap, change: func(c *pool.Config) { c.Mover = m }})
		r.idle()
		f(t, r)
		synctest.Wait() // an offer that is under way comes to its end
	})
}

// offers is how often slots were offered.
func (r *removal) offers() int {
	r.ap.mu.Lock()
	defer r.ap.mu.Unlock()
	return len(r.ap.offers)
}

// codes are why claims have ended.
func (r *removal) codes() []int {
	r.station.mu.Lock()
	defer r.station.mu.Unlock()
	var all []int
	for _, eff := range r.effects {
		if e, ok := eff.(ep.ClaimEnded); ok {
			all = append(all, e.Code)
		}
	}
	return all
}

// row: S4-151
func TestRehome(t *testing.T) {
	inBubble(t, "", func(t *testing.T, r *removal) {
		id := r.offered("slot1")
		if g := r.peer(id).claim(id, smallJob); g.code != 1 {
			t.Fatal(g.code)
		}
		for query, want := range map[string]string{
			"":                                  `ErrorString = "ScheddName not specified"; Result = false`,
			`ScheddName = ""`:                   `ErrorString = "ScheddName not specified"; Result = false`,
			`ScheddName = "a\\ "`:               `ErrorString = "ScheddName is not the name of a schedd"; Result = false`,
			`ScheddName = "a\\"`:                `ErrorString = "ScheddName is not the name of a schedd"; Result = false`,
			`ScheddName = "$(SECRET)"`:          `ErrorString = "ScheddName is not the name of a schedd"; Result = false`,
			"ScheddName = \"a\"\nReboot = true": `ErrorString = "Reboot on rehome not permitted by STARTD_REHOME_ALLOW_REBOOT"; Result = false`,
		} {
			if got := line(r.askAd(562, query)); got != want {
				t.Errorf("%q: %s, want %s", query, got, want)
			}
		}
		r.refuse = errors.New("the disk is full")
		if got := line(r.askAd(562, `ScheddName = "new@example"`)); got != `ErrorString = "Failed to set persistent config"; Result = false` {
			t.Error(got)
		}
		r.done()
		if got := r.codes(); len(got) != 0 {
			t.Errorf("claims have ended: %v", got)
		}
		r.refuse = nil
		if got := line(r.askAd(562, "ScheddName = \" <127.0.0.1:9700> \"\nScheddPool = \"cm.example:9618 \"\nRehomeTimeout = 100")); got != "Result = true" {
			t.Error(got)
		}
		if got, want := r.done(), "persist rehome STARTD_DIRECT_ATTACH_SCHEDD_NAME = <127.0.0.1:9700> STARTD_DIRECT_ATTACH_SCHEDD_POOL = cm.example:9618; reconfigure"; got != want {
			t.Errorf("did %q, want %q", got, want)
		}
		if got := r.codes(); !slices.Equal(got, []int{1037}) {
			t.Errorf("claims ended with %v", got)
		}
		pass(2 * time.Minute)
		if r.offers() == 0 {
			t.Error("the new home was offered nothing")
		}
		if got := r.done(); got != "" { // it has taken them in time
			t.Errorf("did %q", got)
		}
		if got := line(r.askAd(562, `ScheddName = "<127.0.0.1:9700>"`)); got != `ErrorString = "Already attached to this schedd"; Result = false` {
			t.Error(got)
		}
		id = r.offered("slot1")
		if g := r.peer(id).claim(id, smallJob); g.code != 1 {
			t.Fatal(g.code)
		}
		if got := line(r.askAd(562, "ScheddName = \"any\"\nCancel = true")); got != "Result = true" {
			t.Error(got)
		}
		if got := r.done(); got != "persist rehome; reconfigure" && got != "persist rehome ; reconfigure" {
			t.Errorf("did %q", got)
		}
		if got := r.codes(); len(got) != 1 {
			t.Errorf("cancelling ended a claim: %v", got)
		}
	})
}

// Who does not take the slots in time is left again.
func TestRehomeInVain(t *testing.T) {
	inBubble(t, "", func(t *testing.T, r *removal) {
		r.ap.result = 0
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9700>\"\nRehomeTimeout = 100")); got != "Result = true" {
			t.Fatal(got)
		}
		r.done()
		pass(99 * time.Second)
		if got := r.done(); got != "" {
			t.Errorf("did %q before the time", got)
		}
		pass(2 * time.Second)
		if got := r.done(); !strings.HasPrefix(got, "persist rehome") || !strings.HasSuffix(got, "reconfigure") || strings.Contains(got, "ATTACH") {
			t.Errorf("did %q", got)
		}
		offers := r.offers()
		pass(time.Hour)
		if r.offers() != offers {
			t.Error("slots are offered on")
		}
	})
}

// Going back does not undo a move that is ordered at that moment.
func TestRehomeAtTheLastMoment(t *testing.T) {
	inBubble(t, "", func(t *testing.T, r *removal) {
		r.ap.result = 0
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9700>\"\nRehomeTimeout = 100")); got != "Result = true" {
			t.Fatal(got)
		}
		r.done()
		pass(90 * time.Second)
		r.slow = 15500 * time.Millisecond
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9701>\"")); got != "Result = true" {
			t.Fatal(got)
		}
		pass(time.Hour)
		if got, want := r.done(), "persist rehome STARTD_DIRECT_ATTACH_SCHEDD_NAME = <127.0.0.1:9701>; reconfigure"; got != want {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// One that is refused at that moment puts it off and no more.
func TestRehomeRefusedAtTheLastMoment(t *testing.T) {
	inBubble(t, "", func(t *testing.T, r *removal) {
		r.ap.result = 0
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9700>\"\nRehomeTimeout = 100")); got != "Result = true" {
			t.Fatal(got)
		}
		r.done()
		pass(90 * time.Second)
		r.slow, r.refuse = 15500*time.Millisecond, errors.New("the disk is full")
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9701>\"")); !strings.Contains(got, "Result = false") {
			t.Fatal(got)
		}
		pass(time.Minute)
		if got := r.done(); !strings.HasSuffix(got, "; persist rehome; reconfigure") && !strings.HasSuffix(got, "; persist rehome ; reconfigure") {
			t.Errorf("did %q", got)
		}
	})
}

// A second move with a reboot finds the machine drained for the first.
func TestRebootAgain(t *testing.T) {
	inBubble(t, "STARTD_REHOME_ALLOW_REBOOT = true\n", func(t *testing.T, r *removal) {
		id := r.offered("slot1")
		g := r.peer(id).claim(id, smallJob)
		if g.code != 1 {
			t.Fatal(g.code)
		}
		r.startJob(g.ids[0], smallJob)
		for _, home := range []string{"one", "two"} {
			if got := line(r.askAd(562, "ScheddName = \""+home+"@example\"\nReboot = true")); got != "Result = true" {
				t.Fatal(got)
			}
			if got := strings.Join(r.slots(), ", "); !strings.Contains(got, "slot1 Drained") {
				t.Errorf("on the way to %s: %s", home, got)
			}
		}
		r.endJob()
		if did := r.done(); !strings.Contains(did, "reboot by /sbin/reboot of slot1 Drained/Idle") {
			t.Errorf("did %q", did)
		}
	})
}

// A reboot is refused before anything is evicted unless every slot allows it.
//
// row: S4-153
func TestRebootGuard(t *testing.T) {
	for _, tt := range []struct{ guard, want string }{
		{"", "refused"},
		{"STARTD_REHOME_ALLOW_REBOOT = false", "refused"},
		{"STARTD_REHOME_ALLOW_REBOOT = NoSuchAttribute", "refused"},
		{"STARTD_REHOME_ALLOW_REBOOT = SlotID == 1 && Cpus > 3", "refused"}, // not of slot1_1
		{"STARTD_REHOME_ALLOW_REBOOT = SlotID == 1", "done"},
	} {
		t.Run(tt.guard, func(t *testing.T) {
			inBubble(t, tt.guard+"\n", func(t *testing.T, r *removal) {
				id := r.offered("slot1")
				if g := r.peer(id).claim(id, smallJob); g.code != 1 {
					t.Fatal(g.code)
				}
				got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9700>\"\nReboot = true"))
				did, codes := r.done(), r.codes()
				if tt.want == "refused" {
					if got != `ErrorString = "Reboot on rehome not permitted by STARTD_REHOME_ALLOW_REBOOT"; Result = false` || did != "" || len(codes) != 0 {
						t.Errorf("%s; did %q; ended %v", got, did, codes)
					}
					return
				}
				if got != "Result = true" || !slices.Equal(codes, []int{1037}) || !strings.Contains(did, "reboot by /sbin/reboot of slot1 Drained/Idle") {
					t.Errorf("%s; did %q; ended %v", got, did, codes)
				}
				if at := strings.Index(did, "persist"); at < 0 || at > strings.Index(did, "reboot by") {
					t.Errorf("did %q", did)
				}
			})
		})
	}
}

// A reboot that fails leaves the EP at work, in its new home.
func TestRebootFails(t *testing.T) {
	inBubble(t, "STARTD_REHOME_ALLOW_REBOOT = true\nSTARTD_REBOOT_COMMAND = /opt/reboot -now\n", func(t *testing.T, r *removal) {
		r.fails = errors.New("exit status 1")
		if got := line(r.askAd(562, "ScheddName = \"<127.0.0.1:9700>\"\nReboot = true")); got != "Result = true" {
			t.Fatal(got)
		}
		if did := r.done(); !strings.Contains(did, "reboot by /opt/reboot -now of slot1 Drained/Idle") {
			t.Errorf("did %q", did)
		}
		if !strings.Contains(r.log.String(), "exit status 1") {
			t.Error("the log does not tell of the failure")
		}
		pass(2 * time.Minute)
		if got := r.slots(); !slices.Equal(got, []string{"slot1 Unclaimed/Idle"}) {
			t.Errorf("the slots are %v", got)
		}
		if r.offers() == 0 {
			t.Error("the new home was offered nothing")
		}
	})
}

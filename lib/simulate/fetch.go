// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// fetcher plays the hooks with which the slots of a recorded machine fetched
// work by themselves. The hook's text in the record tells what it offers.
type fetcher struct {
	p     *replay
	n     int // calls so far, of all slots
	limit int // calls that offer a job; -1: those of a busy slot
	ad    string
	last  map[slot.ID]time.Duration // boot time of the last call
}

var (
	fetchLimit = regexp.MustCompile(`\[ \$N -gt ([0-9]+) \] && exit 0`)
	fetchAd    = regexp.MustCompile(`(?s)cat <<E\n(.*?)\nE\n`)
)

// The recorded hooks took no time, and their jobs began at once.
const (
	fetchEvery  = time.Second
	fetchBegins = 100 * time.Millisecond
	fetchDelay  = 300 * time.Second // FetchWorkDelay when nothing is said
)

// fetchWork lets the slots fetch work from now on, if a hook of the record does
// so.
func (p *replay) fetchWork() {
	body := ""
	for name, text := range p.r.Scripts {
		if strings.HasPrefix(name, "fetch") {
			body = text
		}
	}
	m := fetchAd.FindStringSubmatch(body)
	if m == nil {
		return
	}
	f := &fetcher{p: p, limit: -1, ad: m[1], last: map[slot.ID]time.Duration{}}
	if l := fetchLimit.FindStringSubmatch(body); l != nil {
		f.limit, _ = strconv.Atoi(l[1])
	}
	var again func()
	again = func() {
		f.look()
		p.w.after(fetchEvery, again)
	}
	p.w.after(fetchEvery, again)
}

// look calls the hook for every slot whose time has come: as the policy is
// looked at, once a second if there is a claim, else with each update.
func (f *fetcher) look() {
	w := f.p.w
	if w.life.over {
		return
	}
	views := slices.Collect(w.eng.Views())
	claimed := slices.ContainsFunc(views, func(v ep.SlotView) bool { return v.Pair.State == policy.Claimed })
	update, err := w.snap.Duration("UPDATE_INTERVAL")
	if !claimed && err == nil && update > 0 && w.elapsed()%update >= fetchEvery {
		return
	}
	for i := range views {
		v := &views[i]
		keyword := w.snap.String("SLOT" + strconv.Itoa(v.ID.N) + "_JOB_HOOK_KEYWORD")
		if keyword == "" {
			keyword = w.snap.String("STARTD_JOB_HOOK_KEYWORD")
		}
		if keyword == "" || w.snap.String(keyword+"_HOOK_FETCH_WORK") == "" || v.Pair.State != policy.Unclaimed && v.Pair.State != policy.Claimed {
			continue
		}
		if v.ID.Sub != 0 && v.Pair != policy.ClaimedIdle {
			continue // as recorded: a part is asked only when its work is done
		}
		last, called := f.last[v.ID]
		if called && w.now.Boot-last < f.delay(v.ID) {
			continue
		}
		f.last[v.ID] = w.now.Boot
		f.call(v)
	}
}

// delay is what FetchWorkDelay says for a slot at present.
func (f *fetcher) delay(id slot.ID) time.Duration {
	w := f.p.w
	e, err := w.snap.Expr("FetchWorkDelay")
	if err != nil || e == nil {
		return fetchDelay
	}
	sec, ok := e.Eval(&classad.Env{My: w.eng.SlotAd(id), Now: w.now.Wall}).AsNumber()
	if !ok {
		return fetchDelay
	}
	return time.Duration(sec * float64(time.Second))
}

// call is one run of the hook for a slot, and what the slot makes of its answer.
func (f *fetcher) call(v *ep.SlotView) {
	ap := f.p.w.ap
	f.n++
	offered := f.n <= f.limit || f.limit < 0 && v.Pair == policy.ClaimedBusy
	h := ap.held[v.Claim.Public]
	idle := v.Pair == policy.ClaimedIdle && h != nil && h.fetched && h.job == nil
	switch {
	case offered && idle:
		if q := f.job(); q != nil {
			ap.start(h, q)
		}
	case offered && v.Claimable():
		if q := f.job(); q != nil {
			ap.claim(q, v.ID)
		}
	case idle:
		f.p.w.step(ep.WorkEnded{Claim: v.Claim})
	}
}

// job is the job that the present call offers, nil if what the hook printed is
// no ad.
func (f *fetcher) job() *queued {
	p := f.p
	text := strings.NewReplacer("$N", strconv.Itoa(f.n), "${DIR}", spool, "${USER}", "alice", "${HOST}", p.w.inv.FullHostname).Replace(f.ad)
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		return nil
	}
	q := &queued{cluster: f.n, name: "fetched", ad: ad, fetched: true, state: matched}
	q.user, _ = ad.EvalString("User", nil)
	b := p.behaviour(&template{ad: ad})
	b.Begins, b.Silent = fetchBegins, true
	q.behaviour = b
	p.w.ap.all = append(p.w.ap.all, q)
	return q
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// maxTags is how many ads of one job CronAds hold.
const maxTags = 250

// The attributes that say which slots an ad is for. They reach no slot.
const (
	attrConstraint = "SlotMergeConstraint"
	attrSlotName   = "SlotName"
	attrPlainName  = "Name"
	attrSlotType   = "SlotTypeId"
	attrSlotID     = "SlotId"
)

var selectors = [...]string{attrConstraint, attrSlotName, attrPlainName, attrSlotType, attrSlotID}

// Slot is a slot as CronAds see it.
type Slot struct {
	ID     slot.ID
	Name   string // as advertised, with the host
	TypeID int
	Ad     *classad.Ad // what SlotMergeConstraint sees as TARGET; only read
}

// posted is one ad of the board.
type posted struct {
	job   string
	tag   string
	ad    *classad.Ad
	keyed bool // it says which slots it is for
	// gauges are its metrics. What was measured counts for the slots that the ad
	// is for: that have the resource, where it has a SlotMergeConstraint that says
	// so, all slots where it says nothing.
	gauges []gauge
}

// CronAds hold the last output of every job and lay it out over the slots. It
// is owned by one goroutine.
type CronAds struct {
	cron Cron
	ads  []posted // in order of first arrival

	shown  map[slot.ID]string // what was published, as text
	source string
}

// NewCronAds returns those of no job yet.
func NewCronAds(c Cron) *CronAds {
	return &CronAds{cron: c, shown: map[slot.ID]string{}, source: c.Family}
}

// Reconfigure takes a new list of jobs over. The ads of jobs that are no longer
// in it are gone with the next Publish.
func (b *CronAds) Reconfigure(c Cron) {
	b.cron = c
	b.ads = slices.DeleteFunc(b.ads, func(p posted) bool { return b.index(p.job) < 0 })
	for i := range b.ads {
		p := &b.ads[i]
		measured := b.job(p).Metrics
		p.gauges = slices.DeleteFunc(p.gauges, func(g gauge) bool { return !slices.Contains(measured, g.metric) })
	}
}

func (b *CronAds) index(job string) int {
	return slices.IndexFunc(b.cron.Jobs, func(j Job) bool { return strings.EqualFold(j.Name, job) })
}

// Put takes what a job printed at an instant in the place of what stood under
// the same tag, and tells whether an update is to be sent at once. The block is
// the board's from then on. The error says why it is left out.
func (b *CronAds) Put(job string, block Block, at time.Time) (update bool, err error) {
	i := b.index(job)
	if i < 0 {
		return false, errs.E("hook.Put", errs.NotFound, job, fmt.Errorf("the job is not configured any more"))
	}
	j := &b.cron.Jobs[i]
	p := posted{job: j.Name, tag: block.Tag, ad: block.Ad}
	for _, name := range selectors {
		_, has := p.ad.Lookup(name)
		p.keyed = p.keyed || has
	}
	at = at.UTC()
	k := slices.IndexFunc(b.ads, func(q posted) bool { return q.job == p.job && q.tag == p.tag })
	var before *classad.Ad
	if k >= 0 {
		before = b.ads[k].ad
		p.gauges = b.ads[k].gauges
	} else if b.tags(p.job) >= maxTags {
		return false, errs.E("hook.Put", errs.Exhausted, j.Name, fmt.Errorf("the job has printed more than %d different tags", maxTags))
	}
	stamp := j.Prefix + "LastUpdate"
	changed := before == nil || !sameBut(before, p.ad, stamp)
	p.ad.SetInt(stamp, at.Unix())
	p.measure(j, before, stamp)
	if k >= 0 {
		b.ads[k] = p
	} else {
		b.ads = append(b.ads, p)
	}
	switch block.Update {
	case UpdateNow:
		return true, nil
	case NoUpdate:
		return false, nil
	}
	return b.cron.AutoPublish == Always || b.cron.AutoPublish == IfChanged && changed, nil
}

func (b *CronAds) tags(job string) int {
	n := 0
	for _, p := range b.ads {
		if p.job == job {
			n++
		}
	}
	return n
}

// measure adds the figures of a new ad to those before.
func (p *posted) measure(j *Job, before *classad.Ad, stamp string) {
	if before != nil {
		since, _ := before.Lookup(stamp)
		for i := range p.gauges {
			p.gauges[i].turn(since)
		}
	}
	now, _ := p.ad.Lookup(stamp)
	for _, m := range j.Metrics {
		v, ok := p.ad.EvalReal(m.Attr(), nil)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		g := gaugeOf(p.gauges, m)
		seen := g != nil
		if !seen {
			p.gauges = append(p.gauges, gauge{metric: m})
			g = &p.gauges[len(p.gauges)-1]
		}
		g.take(v, now, seen)
	}
}

// JobBegins is told that a job begins in a slot: from then on what is measured
// of the resources of the slot counts for that job.
func (b *CronAds) JobBegins(s *Slot) {
	for i := range b.ads {
		p := &b.ads[i]
		if !b.reaches(p, s) {
			continue
		}
		for k := range p.gauges {
			p.gauges[k].begins(s.ID)
		}
	}
}

// ClaimEnds is told that the claim of a slot is over, so that nothing measured
// counts for a job that ran under it.
func (b *CronAds) ClaimEnds(id slot.ID) {
	for i := range b.ads {
		for k := range b.ads[i].gauges {
			if g := &b.ads[i].gauges[k]; g.job == id {
				g.ends()
			}
		}
	}
}

// reaches reports whether a slot gets an ad.
func (b *CronAds) reaches(p *posted, s *Slot) bool {
	j := b.job(p)
	return (len(j.Slots) == 0 || slices.Contains(j.Slots, s.ID.N)) && p.isFor(s)
}

func sameBut(a, b *classad.Ad, except string) bool {
	a, b = a.Clone(), b.Clone()
	a.Delete(except)
	b.Delete(except)
	return a.Equal(b)
}

// isFor reports whether the ad is for a slot: SlotMergeConstraint alone if
// there is one, else the first that can be read of SlotName or Name, a prefix
// of the slot's name, SlotTypeId and SlotId. An ad without any is for all.
func (p *posted) isFor(s *Slot) bool {
	if _, ok := p.ad.Lookup(attrConstraint); ok {
		yes, _ := p.ad.EvalBool(attrConstraint, &classad.Env{My: p.ad, Target: s.Ad})
		return yes
	}
	name, ok := p.ad.EvalString(attrSlotName, nil)
	if !ok {
		name, ok = p.ad.EvalString(attrPlainName, nil)
	}
	if ok && name != "" {
		return strings.HasPrefix(s.Name, name)
	}
	if n, ok := p.ad.EvalInt(attrSlotType, nil); ok {
		return n == int64(s.TypeID)
	}
	if n, ok := p.ad.EvalInt(attrSlotID, nil); ok {
		return n == int64(s.ID.N)
	}
	return true
}

// Publish returns what has to be told of the slots since the last call: first
// what is for all, then for each slot what is for it alone, in the order given.
// An ad that says which slots it is for, or whose job may reach only some,
// counts before one for all; else the later job of the list counts, and of one
// job the tag that came up later. The ads are the caller's.
func (b *CronAds) Publish(slots []Slot) []ep.Published {
	ordered := make([]*posted, len(b.ads))
	for i := range b.ads {
		ordered[i] = &b.ads[i]
	}
	slices.SortStableFunc(ordered, func(p, q *posted) int { return b.index(p.job) - b.index(q.job) })
	slices.SortStableFunc(ordered, func(p, q *posted) int { return rank(p.keyed) - rank(q.keyed) })

	ofAll := classad.NewAd()
	var ofSome []*posted
	for _, p := range ordered {
		if j := b.job(p); p.keyed || len(j.Slots) > 0 || len(p.gauges) > 0 {
			ofSome = append(ofSome, p)
		} else {
			merge(ofAll, p.ad, j)
		}
	}
	var out []ep.Published
	out = b.tell(out, slot.ID{}, ofAll)
	seen := map[slot.ID]bool{{}: true}
	for i := range slots {
		s := &slots[i]
		seen[s.ID] = true
		own := classad.NewAd()
		var measured figures
		for _, p := range ofSome {
			if !b.reaches(p, s) {
				continue
			}
			merge(own, p.ad, b.job(p))
			for k := range p.gauges {
				measured.add(&p.gauges[k])
			}
		}
		measured.show(own)
		out = b.tell(out, s.ID, own)
	}
	for id := range b.shown {
		if !seen[id] {
			delete(b.shown, id) // the slot is gone
		}
	}
	return out
}

// Selective reports whether an ad is for some slots only, so that other slots
// need another Publish.
func (b *CronAds) Selective() bool {
	return slices.ContainsFunc(b.ads, func(p posted) bool { return p.keyed || len(b.job(&p).Slots) > 0 || len(p.gauges) > 0 })
}

// Overlay lays over the ad of the daemon what is for it: the ads of jobs that
// may reach every slot, in order, unless they have a SlotMergeConstraint that is
// not true of it or a name that its name does not begin with. The daemon has
// neither a slot type nor a slot number, so it gets what is for one of those.
func (b *CronAds) Overlay(daemon *classad.Ad) {
	ordered := make([]*posted, len(b.ads))
	for i := range b.ads {
		ordered[i] = &b.ads[i]
	}
	slices.SortStableFunc(ordered, func(p, q *posted) int { return b.index(p.job) - b.index(q.job) })
	var measured figures
	for _, p := range ordered {
		j := b.job(p)
		if len(j.Slots) > 0 || !p.isForDaemon(daemon) {
			continue
		}
		merge(daemon, p.ad, j)
		for k := range p.gauges {
			measured.add(&p.gauges[k])
		}
	}
	measured.show(daemon)
}

func (p *posted) isForDaemon(daemon *classad.Ad) bool {
	if _, ok := p.ad.Lookup(attrConstraint); ok {
		return p.isFor(&Slot{Ad: daemon})
	}
	name, ok := p.ad.EvalString(attrSlotName, nil)
	if !ok {
		name, ok = p.ad.EvalString(attrPlainName, nil)
	}
	own, _ := daemon.EvalString("Name", nil)
	return !ok || strings.HasPrefix(own, name)
}

// tell adds what a slot gets unless it has just that already. A dynamic slot is
// also told that there is nothing for it, since until then it shows what its
// parent was told.
func (b *CronAds) tell(out []ep.Published, id slot.ID, ad *classad.Ad) []ep.Published {
	text := ad.TextAll(classad.Old)
	if was, told := b.shown[id]; was == text && (told || !id.IsDynamic()) {
		return out
	}
	if b.shown[id] = text; text == "" && !id.IsDynamic() {
		delete(b.shown, id)
	}
	return append(out, ep.Published{Source: b.source, Slot: id, Attrs: ad})
}

func (b *CronAds) job(p *posted) *Job { return &b.cron.Jobs[b.index(p.job)] }

func rank(keyed bool) int {
	if keyed {
		return 1
	}
	return 0
}

// merge copies what of a job's ad is for slots; metrics are added up elsewhere.
func merge(into, from *classad.Ad, j *Job) {
	for name, e := range from.All() {
		if _, metric := metricOf(j, name); !metric && !isSelector(name) {
			into.Set(name, e)
		}
	}
}

func isSelector(name string) bool {
	for _, s := range selectors {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

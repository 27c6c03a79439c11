// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// The names of what monitors measure of a resource R, as policies see it:
// Uptime<R>Seconds and Uptime<R>PeakUsage since the daemon began, with
// StartOfJob, FirstUpdate and LastUpdate before a name for what a job is to be
// charged with.
const (
	uptimePrefix  = "Uptime"
	startPrefix   = "StartOfJob"
	firstPrefix   = "FirstUpdate"
	lastPrefix    = "LastUpdate"
	secondsSuffix = "Seconds"
	peakSuffix    = "PeakUsage"
)

// resourceOf returns R of Uptime<R><suffix>.
func resourceOf(name, suffix string) (resource string, ok bool) {
	rest, uptime := cutFold(name, uptimePrefix)
	if !uptime || len(rest) < len(suffix) || !strings.EqualFold(rest[len(rest)-len(suffix):], suffix) {
		return "", false
	}
	return rest[:len(rest)-len(suffix)], true
}

func cutFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// metered turns what monitors have measured into what everybody is told, as
// HTCondor does it: the average of the resource since the daemon began
// (Device<R>AverageUsage), its peak (Device<R>PeakUsage), and what the job had of
// it (<R>AverageUsage; <R>Usage is a peak and there already). The figures that
// they are made of stay inside. Only Uptime<R>Seconds is told where
// ADVERTISE_CMR_UPTIME_SECONDS asks for it, and not while a job has an average.
func (a *Slot) metered(out *classad.Ad, now clock.Instant) {
	for name, e := range a.over.All() {
		if _, inside := cutFold(name, firstPrefix); inside {
			out.Delete(name)
			continue
		}
		if rest, inside := cutFold(name, lastPrefix); inside && rest != "" {
			out.Delete(name)
			continue
		}
		if of, started := cutFold(name, startPrefix); started {
			if resource, ok := resourceOf(of, secondsSuffix); ok {
				a.charged(out, resource, of)
			}
			continue
		}
		if resource, ok := resourceOf(name, peakSuffix); ok {
			out.Set("Device"+resource+peakSuffix, e)
			out.Delete(name)
			continue
		}
		resource, ok := resourceOf(name, secondsSuffix)
		if !ok {
			continue
		}
		if !a.m.set.uptimes {
			out.Delete(name)
		}
		if v, ok := a.over.EvalReal(name, nil); ok {
			if d := now.Sub(a.m.started).Seconds(); d > 0 {
				out.SetReal("Device"+resource+"AverageUsage", v/d)
			}
		}
	}
}

// charged shows the average of a job: what was used between its first and its
// last whole interval, over the time between. Before the first is over there is
// none.
func (a *Slot) charged(out *classad.Ad, resource, uptime string) {
	out.Delete(startPrefix + uptime)
	var figures [4]float64
	for i, name := range [...]string{uptime, startPrefix + uptime, lastPrefix + uptime, firstPrefix + uptime} {
		v, ok := a.over.EvalReal(name, nil)
		if !ok {
			return
		}
		figures[i] = v
	}
	if d := figures[2] - figures[3]; d > 0 {
		out.SetReal(resource+"AverageUsage", (figures[0]-figures[1])/d)
		out.Delete(uptime)
	}
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
)

// Metric is one figure that a job measures of a resource. The job prints how
// much came since its last output as Uptime<Resource>Seconds, or what is used
// at the moment as Uptime<Resource>PeakUsage.
type Metric struct {
	Resource string
	Peak     bool // PEAK: the largest counts; otherwise SUM: all are added
}

// Attr is the attribute in which the job prints the figure.
func (m Metric) Attr() string {
	if m.Peak {
		return "Uptime" + m.Resource + "PeakUsage"
	}
	return "Uptime" + m.Resource + "Seconds"
}

func (m Metric) combine(a, b float64) float64 {
	if m.Peak {
		return math.Max(a, b)
	}
	return a + b
}

func (r *reader) metrics(knob string, j *Job) {
	for _, word := range r.cfg.List(knob) {
		kind, resource, found := strings.Cut(word, ":")
		m := Metric{Resource: resource, Peak: strings.EqualFold(kind, "PEAK")}
		if !found || !attrName(resource) || !m.Peak && !strings.EqualFold(kind, "SUM") {
			r.problem(knob, word+" is no metric and is left out", "SUM:name or PEAK:name", config.Error)
			continue
		}
		j.Metrics = append(j.Metrics, m)
	}
}

// metricOf returns the metric that attr is of a job, if any.
func metricOf(j *Job, attr string) (Metric, bool) {
	for _, m := range j.Metrics {
		if strings.EqualFold(m.Attr(), attr) {
			return m, true
		}
	}
	return Metric{}, false
}

// gauge is one metric of one ad, as it was measured since the board began and
// since the job began to which what the ad is about was given. HTCondor's names
// for what is shown of it are Uptime<Resource>…, StartOfJobUptime<Resource>… and
// the like.
type gauge struct {
	metric Metric
	total  float64       // since the board began
	last   *classad.Expr // when it was printed last

	job   slot.ID // in which the last job began, zero after its claim
	reset bool    // no ad came since then

	// Of a sum: what it was when the job's first whole interval began, and when
	// that was: at the last ad before the job's first one.
	start float64
	first *classad.Expr // nil as long as there is no such interval

	peak   float64 // of a peak: the largest since the job began
	peaked bool    // there is one
}

// begins is told that a job begins: it is charged with nothing from before.
func (g *gauge) begins(in slot.ID) {
	g.job, g.reset, g.start, g.first, g.peaked = in, true, g.total, nil, false
}

// ends is told that the claim is over under which the job ran.
func (g *gauge) ends() { g.job, g.reset, g.first, g.peaked = slot.ID{}, false, nil, false }

// turn is told that another ad comes; since is when the one before it came.
// Only whole intervals count for a job, so the first one is that in which it
// began.
func (g *gauge) turn(since *classad.Expr) {
	if g.reset {
		g.reset, g.start, g.first = false, g.total, since
	}
}

// take adds what an ad says.
func (g *gauge) take(v float64, at *classad.Expr, seen bool) {
	if seen {
		g.total = g.metric.combine(g.total, v)
	} else {
		g.total = v
	}
	g.last = at
	if g.metric.Peak {
		if g.peaked {
			v = math.Max(g.peak, v)
		}
		g.peak, g.peaked = v, true
	}
}

// gaugeOf returns the gauge of a metric, nil if there is none.
func gaugeOf(all []gauge, m Metric) *gauge {
	for i := range all {
		if all[i].metric == m {
			return &all[i]
		}
	}
	return nil
}

// figures are the gauges of one slot by metric, each over all ads that are for
// the slot: amounts are added, of peaks the largest counts.
type figures []gauge

func (f *figures) add(g *gauge) {
	at := gaugeOf(*f, g.metric)
	if at == nil {
		*f = append(*f, *g)
		return
	}
	at.total, at.last = g.metric.combine(at.total, g.total), g.last
	switch {
	case g.job.IsZero():
	case at.job.IsZero():
		at.job, at.start, at.first = g.job, g.start, g.first
	default:
		at.start += g.start
		if g.first != nil {
			at.first = g.first
		}
	}
	if g.peaked {
		if at.peaked {
			at.peak = math.Max(at.peak, g.peak)
		} else {
			at.peak = g.peak
		}
		at.peaked = true
	}
}

// show writes the figures as policies see them; what of it collectors are told
// is the affair of package ad.
func (f figures) show(ad *classad.Ad) {
	for _, g := range f {
		attr := g.metric.Attr()
		ad.SetReal(attr, g.total)
		ad.Set("LastUpdate"+attr, g.last)
		switch {
		case g.metric.Peak && g.peaked:
			ad.SetReal(g.metric.Resource+"Usage", g.peak)
		case g.metric.Peak && !g.job.IsZero():
			// The job has no peak yet; that of the one before is not its own.
			ad.SetValue(g.metric.Resource+"Usage", classad.Undefined())
		case !g.metric.Peak:
			if !g.job.IsZero() {
				ad.SetReal("StartOfJob"+attr, g.start)
			}
			if g.first != nil {
				ad.Set("FirstUpdate"+attr, g.first)
			}
			ad.Set(attr+"AverageUsage", averageOf(attr))
		}
	}
}

// averageOf is the average of a figure over the life of a job, which is known
// where its first and last values are.
func averageOf(attr string) *classad.Expr {
	return classad.MustParseExpr("(" + attr + " - StartOfJob" + attr + ") / (LastUpdate" + attr + " - FirstUpdate" + attr + ")")
}

// UsageAttrs are the attributes by which a job's ad and log learn what the job
// used of the resources that are measured.
func (c *Cron) UsageAttrs() []string {
	var out []string
	for i := range c.Jobs {
		for _, m := range c.Jobs[i].Metrics {
			out = append(out, m.Resource+"Usage", m.Resource+"AverageUsage", "Recent"+m.Resource+"Usage")
		}
	}
	return out
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
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

// measured is what the ads of a job's instances amount to for one slot.
type measured struct {
	metric     Metric
	total      float64 // since the start
	lastUpdate *classad.Expr
}

// figures are the metrics of one slot, in order of their first ad.
type figures []measured

func (f *figures) add(m Metric, total float64, last *classad.Expr) {
	for i := range *f {
		if at := &(*f)[i]; at.metric == m {
			at.total, at.lastUpdate = m.combine(at.total, total), last
			return
		}
	}
	*f = append(*f, measured{m, total, last})
}

// show writes what a slot advertises of its metrics: seconds is how long the
// board has been measuring.
func (f figures) show(ad *classad.Ad, seconds float64) {
	for _, m := range f {
		resource, attr := m.metric.Resource, m.metric.Attr()
		if m.metric.Peak {
			ad.SetReal("Device"+resource+"PeakUsage", m.total)
			ad.SetReal(resource+"Usage", m.total)
			continue
		}
		if seconds > 0 {
			ad.SetReal("Device"+resource+"AverageUsage", m.total/seconds)
		}
		ad.Set(attr+"AverageUsage", averageOf(attr))
	}
}

// showRaw writes the figures themselves, as the daemon's own ad has them.
func (f figures) showRaw(ad *classad.Ad) {
	for _, m := range f {
		attr := m.metric.Attr()
		ad.SetReal(attr, m.total)
		ad.Set("LastUpdate"+attr, m.lastUpdate)
		if !m.metric.Peak {
			ad.Set(attr+"AverageUsage", averageOf(attr))
		}
	}
}

// averageOf is the average of a figure over the life of a job, which is known
// where its first and last values are.
func averageOf(attr string) *classad.Expr {
	return classad.MustParseExpr("(" + attr + " - StartOfJob" + attr + ") / (LastUpdate" + attr + " - FirstUpdate" + attr + ")")
}

// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// changing are attributes of a slot that have other values later, in lower
// case. A refusal that rests on one of them is not for ever.
var changing = []string{
	"activity", "clockday", "clockmin", "condorloadavg", "consoleidle", "cpubusy", "cpubusytime", "cpubusyvalue",
	"currentrank", "currenttime", "enteredcurrentactivity", "enteredcurrentstate", "keyboardidle", "loadavg",
	"mycurrenttime", "remoteowner", "remoteuser", "state", "totalcondorloadavg", "totalloadavg", "virtualmemory",
	"lastbenchmark", "mips", "kflops", "numdynamicslots", "jobstatus", "numjobstarts",
}

// Impossible is a job that no slot of this machine can ever run.
type Impossible struct {
	Job ID
	Why string
}

// Judge finds the jobs that can never run here, so that no user waits for them:
// those whose request fits says no slot can satisfy, and those that every slot
// refuses, or that refuse every slot, for a reason which no passing of time
// changes. offers must be the whole machine with nothing claimed. Judged jobs
// are not looked at in later negotiations; the others are unaffected.
func (a *AP) Judge(now clock.Instant, offers []Offer, fits func(job *classad.Ad) error) []Impossible {
	var out []Impossible
	known := make(map[int]string)
	for _, j := range a.jobs {
		why, ok := known[j.place.sig]
		if !ok {
			why = a.judge(now, j, offers, fits)
			known[j.place.sig] = why
		}
		if why == "" {
			continue
		}
		if j.status != Idle {
			j.wait.never = why // told when it is released
			continue
		}
		j.wait.impossible = why
		out = append(out, Impossible{Job: j.id, Why: why})
		a.reportImpossible(now, j)
	}
	a.idle = slices.DeleteFunc(a.idle, func(j *job) bool { return j.wait.impossible != "" })
	return out
}

func (a *AP) reportImpossible(now clock.Instant, j *job) {
	a.counts.Impossible++
	a.changed(Change{Job: j.id, At: now.Wall, Status: Idle, What: "impossible", Detail: j.wait.impossible})
}

func (a *AP) judge(now clock.Instant, j *job, offers []Offer, fits func(*classad.Ad) error) string {
	if err := fits(j.ad); err != nil {
		return plainText(err)
	}
	why := "there is no slot"
	for i, o := range offers {
		text, forever := a.refusedForever(now, j, o)
		if !forever {
			return ""
		}
		if i == 0 {
			why = text
		}
	}
	return why
}

// plainText is what an error says, without the operations it came through.
func plainText(err error) string {
	var e *errs.Error
	for errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// refusedForever reports whether job and slot can never match, and why.
func (a *AP) refusedForever(now clock.Instant, j *job, o Offer) (string, bool) {
	name, _ := o.Ad.EvalString("Name", nil)
	for _, side := range []struct {
		my, target *classad.Ad
		what       string
	}{
		{j.ad, o.Ad, "the job's Requirements are never true for " + name},
		{o.Ad, j.ad, "START of " + name + " never accepts this job"},
	} {
		var reads []string
		volatile := false
		env := *a.env(now)
		env.Target = side.target
		env.OnRead = func(r classad.Read) {
			ad := side.my
			if r.Scope == "TARGET" {
				ad = side.target
			}
			if slices.Contains(changing, strings.ToLower(r.Name)) || o.Open && r.Value.IsUndefined() {
				volatile = true
			}
			e, ok := ad.Lookup(r.Name)
			if ok && changes(e) {
				volatile = true
			}
			if !strings.EqualFold(r.Name, "Requirements") && len(reads) < 8 {
				reads = append(reads, fmt.Sprintf("%s is %s", r.Name, r.Value))
			}
		}
		e, ok := side.my.Lookup("Requirements")
		if !ok {
			return side.what + ": it has no Requirements", true
		}
		if v := side.my.Eval("Requirements", &env); v.IsTrue() || volatile || changes(e) {
			continue
		}
		text := side.what
		if start, ok := side.my.Lookup("Start"); ok && side.my == o.Ad {
			text += ": START = " + start.Text(classad.Old)
		} else {
			text += ": " + e.Text(classad.Old)
		}
		if len(reads) > 0 {
			text += " (" + strings.Join(reads, ", ") + ")"
		}
		return text, true
	}
	return "", false
}

// changes reports whether an expression has another value later without any
// attribute changing.
func changes(e *classad.Expr) bool {
	t := strings.ToLower(e.Text(classad.Old))
	return strings.Contains(t, "time(") || strings.Contains(t, "random(") || strings.Contains(t, "currenttime")
}

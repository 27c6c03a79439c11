// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/submit"
)

// Saving says what of a job's work outlives an eviction.
type Saving struct {
	OnEviction bool          // everything, if it leaves when it is told to
	Every      time.Duration // what was done up to its last checkpoint
}

// kind is a submit text as templates of its jobs.
type kind struct {
	name string
	jobs []*template
}

// template is one job of a submit text.
type template struct {
	ad   *classad.Ad
	sig  int
	user string
	keep time.Duration
}

// spool is the working directory of who submits in a simulation.
const spool = "/pool"

// varying are attributes in which jobs of one text may differ and still fit the
// same slots.
var varying = []string{"ProcId", "ClusterId", "QDate", "EnteredCurrentStatus", "GlobalJobId", "Args", "Arguments", "Out", "Err", "In"}

// newKind reads a submit text.
func newKind(name, text string, w *world) (*kind, error) {
	d, err := submit.Parse(name, strings.ReplaceAll(text, "${DIR}", spool), submit.Options{
		Cluster: 1, Now: w.now.Wall, Owner: "alice", Domain: "example", Host: w.inv.FullHostname, Cwd: spool,
		Config: func(knob string) string {
			if knob == "FILESYSTEM_DOMAIN" || knob == "UID_DOMAIN" {
				return w.snap.String(knob)
			}
			return defaults[knob]
		},
	})
	if err != nil {
		return nil, err
	}
	ads, err := d.Jobs()
	if err != nil {
		return nil, err
	}
	k := &kind{name: name}
	sigs := map[string]int{}
	for _, ad := range ads {
		plain := ad.Clone()
		for _, attr := range varying {
			if !w.eng.Mentions(attr) {
				plain.Delete(attr)
				if ad.Parent() != nil {
					plain.SetValue(attr, classad.Undefined())
				}
			}
		}
		key := plain.Text(classad.Old)
		if _, ok := sigs[key]; !ok {
			w.sigs++
			sigs[key] = w.sigs
		}
		t := &template{ad: ad, sig: sigs[key]}
		t.user, _ = ad.EvalString("User", nil)
		if group, ok := ad.EvalString("AccountingGroup", nil); ok {
			t.user = group
		}
		keep, _ := ad.EvalInt("KeepClaimIdle", nil)
		t.keep = time.Duration(min(max(keep, 0), 1<<31)) * time.Second
		k.jobs = append(k.jobs, t)
	}
	return k, nil
}

// defaults are the settings that submission reads, with HTCondor's values.
var defaults = map[string]string{
	"JOB_DEFAULT_REQUESTCPUS": "1", "JOB_DEFAULT_REQUESTMEMORY": "128", "JOB_DEFAULT_REQUESTDISK": "1024", "JOB_DEFAULT_LEASE_DURATION": "2400",
}

// job makes the n-th job of the text, in the given cluster.
func (k *kind) job(w *world, n, cluster int) *queued {
	t := k.jobs[n]
	ad := classad.NewAd()
	ad.SetParent(t.ad)
	ad.SetInt("ClusterId", int64(cluster))
	ad.SetInt("QDate", w.now.Wall.Unix())
	return &queued{cluster: cluster, proc: n, sig: t.sig, name: k.name, ad: ad, user: t.user, keepIdle: t.keep}
}

// actors are the starters that run, in the order of their activations.
func (w *world) actors() []*actor {
	out := make([]*actor, 0, len(w.starters))
	for _, a := range w.starters {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *actor) int { return strings.Compare(string(a.id), string(b.id)) })
	return out
}

// label names a job as people do.
func (q *queued) label() string { return fmt.Sprintf("%d.%d", q.cluster, q.proc) }

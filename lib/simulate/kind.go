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
	// itself says that jobs of this template do not always fit the same slots.
	itself bool
}

// spool is the working directory of who submits in a simulation.
const spool = "/pool"

// varying are attributes in which jobs of one text may differ and still fit the
// same slots.
var varying = []string{"ProcId", "ClusterId", "QDate", "EnteredCurrentStatus", "GlobalJobId", "Args", "Arguments", "Out", "Err", "In"}

// changing are attributes of a job that change while it is in the queue, or that
// differ between jobs of one text that were submitted at different times.
var changing = []string{
	"ClusterId", "QDate", "JobStatus", "EnteredCurrentStatus", "NumHolds", "NumJobStarts", "JobRunCount", "NumShadowStarts", "NumJobMatches", "NumJobCompletions",
	"JobStartDate", "JobCurrentStartDate", "JobCurrentStartExecutingDate", "ShadowBday", "ExitCode", "ExitBySignal", "HoldReasonCode", "LastHoldReasonCode",
	"TotalSuspensions", "LastSuspensionTime",
}

func changes(attr string) bool {
	return slices.ContainsFunc(changing, func(name string) bool { return strings.EqualFold(name, attr) })
}

// decides are the attributes of a job on which it depends what slots it fits.
var decides = []string{"Requirements", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"}

// itself reports whether it depends on the single job what slots it fits.
func itself(ad *classad.Ad) bool {
	for _, name := range decides {
		e, there := ad.Lookup(name)
		if !there {
			continue
		}
		refs, ok := e.Refs(ad)
		if !ok || slices.ContainsFunc(append(refs.Internal, refs.External...), changes) {
			return true
		}
	}
	return false
}

// newKind reads a submit text.
func newKind(name, text string, w *world) (*kind, error) {
	d, err := submit.Parse(name, strings.ReplaceAll(text, "${DIR}", spool), submit.Options{
		Cluster: 1, Now: w.now.Wall, Owner: "alice", Domain: "example", Host: w.inv.FullHostname, Cwd: spool,
		Config: w.snap.String,
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
		t := &template{ad: ad, sig: sigs[key], itself: itself(ad)}
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

// job makes the n-th job of the text, in the given cluster.
func (k *kind) job(w *world, n, cluster int) *queued {
	t := k.jobs[n]
	ad := classad.NewAd()
	ad.SetParent(t.ad)
	ad.SetInt("ClusterId", int64(cluster))
	ad.SetInt("QDate", w.now.Wall.Unix())
	sig := t.sig
	if t.itself {
		w.sigs++
		sig = w.sigs
	}
	return &queued{cluster: cluster, proc: n, sig: sig, name: k.name, ad: ad, user: t.user, keepIdle: t.keep}
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

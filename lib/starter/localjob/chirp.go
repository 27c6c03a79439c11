// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// ownAttributes begin so: those that a job may set whose files are not its user's.
// The access point moves its files with other rights than the job has, root's among
// them: a job that names its own Out or TransferInput for its next run would write
// and read with them.
const ownAttributes = "Chirp"

// openChirp lets the job use Chirp, where the access point hears it: for the files
// of its submit directory (WantIOProxy), its ad and its event log. As HTCondor
// does, it lets every job set attributes for the next update, unless the job or a
// knob says no. A job that asked for Chirp does not start without it.
func (j *Job) openChirp() (job.Brought, *protocol.Hold) {
	p, settings := j.place, j.Plan.Settings.Chirp
	allow := chirp.AllowFrom(p.Job.Ad, settings)
	if !j.Plan.Submit.Chirp || !allow.Any() {
		return job.Brought{}, nil
	}
	local := chirp.NewLocal(p.Job.Iwd, p.Job.Ad)
	local.As = j.AsUser
	if j.Submit != nil {
		local.Prefix = ownAttributes
	}
	local.System = j.Files
	local.System.Errno = j.Errno
	// These two are called by the goroutines of the proxy. A report is one write.
	local.Changed = func(name string, e *classad.Expr) {
		ad := classad.NewAd()
		ad.Set(name, e)
		j.Report(protocol.Attributes{Ad: ad.Text(classad.Old)})
	}
	local.Event = func(event *classad.Ad) {
		info, _ := event.EvalString("Info", nil)
		j.Report(protocol.Event{Text: info})
	}
	j.submit = local
	var err error
	j.chirp, err = p.OpenChirp(chirp.Config{Remote: local, Allow: allow, Settings: settings, Log: j.Log, Acknowledge: j.Acknowledge})
	switch {
	case err == nil:
		return job.Brought{Chirp: j.chirp.Config()}, nil
	case allow.IO || allow.Updates:
		return job.Brought{}, j.holds().Broken(fmt.Errorf("chirp, for which the job asks: %w", err))
	}
	return job.Brought{Problem: fmt.Errorf("the job cannot use chirp: %w", err)}, nil
}

// tellDelayed reports the attributes that the job set for the next update, if
// they are others than at the last one.
func (j *Job) tellDelayed() {
	ad := j.chirp.Delayed()
	if ad == nil {
		return
	}
	may := classad.NewAd()
	for name, e := range ad.All() {
		if j.submit.Settable(name) { // CHIRP_DELAYED_UPDATE_PREFIX lets more through
			may.Set(name, e)
		}
	}
	if text := may.Text(classad.Old); text != j.reported {
		j.reported = text
		j.Report(protocol.Attributes{Ad: text, Delayed: true})
	}
}

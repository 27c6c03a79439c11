// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"log/slog"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
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
func (h *localJob) openChirp(a *activation) *protocol.Hold {
	allow := chirp.AllowFrom(a.job.ad, a.plan.Settings.Chirp)
	if !a.plan.Submit.Chirp || !allow.Any() {
		return nil
	}
	h.submit = chirp.NewLocal(a.job.iwd, a.job.ad)
	h.submit.As = a.asUser
	if a.apart() {
		h.submit.Prefix = ownAttributes
	}
	h.submit.System = a.host.Files
	h.submit.System.Errno = a.host.Errno
	// These two are called by the goroutines of the proxy. A report is one write.
	h.submit.Changed = func(name string, e *classad.Expr) {
		ad := classad.NewAd()
		ad.Set(name, e)
		a.say(protocol.Attributes{Ad: ad.Text(classad.Old)})
	}
	h.submit.Event = func(event *classad.Ad) {
		info, _ := event.EvalString("Info", nil)
		a.say(protocol.Event{Text: info})
	}
	log := a.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var err error
	if h.chirp, err = a.openChirp(h.submit, allow, log); err != nil {
		if allow.IO || allow.Updates {
			return a.holds.broken(fmt.Errorf("chirp, for which the job asks: %w", err))
		}
		a.problem(fmt.Errorf("the job cannot use chirp: %w", err))
	}
	return nil
}

// tellDelayed reports the attributes that the job set for the next update, if
// they are others than at the last one.
func (h *localJob) tellDelayed(a *activation) {
	ad := h.chirp.delayed()
	if ad == nil {
		return
	}
	may := classad.NewAd()
	for name, e := range ad.All() {
		if h.submit.Settable(name) { // CHIRP_DELAYED_UPDATE_PREFIX lets more through
			may.Set(name, e)
		}
	}
	if text := may.Text(classad.Old); text != h.told {
		h.told = text
		a.say(protocol.Attributes{Ad: text, Delayed: true})
	}
}

func (h *localJob) closeChirp() {
	h.chirp.close()
	if h.submit != nil {
		h.submit.Shut()
	}
}

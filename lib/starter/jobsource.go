// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// jobSource is where the job comes from and who hears how it fares: the embedded
// access point, whose files are on this machine, or a shadow. Its methods are
// called by the activation's goroutine and do not wait: what takes time is done
// beside, and its end told to the life.
type jobSource interface {
	learn(a *activation)                              // the job's ad; ends in activation.learned
	read(a *activation, ad *classad.Ad) (*job, error) // what the ad says about running it here
	bring(a *activation)                              // its input; ends in life.prepared
	chirpConfig() string                              // path of the file by which the job reaches who hears it, "" for none
	credentials() string                              // path of the directory with the job's credentials, "" for none
	piped() [3]*os.File                               // standard files of the job that lead there; nil for others
	starting(a *activation)                           // the job is about to be executed
	executed(a *activation)                           // its program runs and has the standard files, or is none that can
	changed(a *activation)                            // it was suspended or goes on, or its usage was measured
	saving(a *activation) bool                        // it has ended only to have its state saved and to go on
	exited(a *activation)                             // its main process has ended
	scriptFailed(a *activation)                       // a program before or after it has, and it is to be held
	send(a *activation)                               // its output; ends in life.finished or life.unheard
	tell(a *activation)                               // how it went; ends in life.told or life.unheard
	hold(a *activation)                               // it has to be held, and leaves for that
	rejoined(a *activation)                           // who hears it is back
	lease() time.Duration                             // how long to wait for who hears it
	total(present host.Usage) host.Usage              // what all runs of the job used, the present one included
	close(ctx context.Context)                        // what is left to be told is told until ctx ends
}

// localJob is a job of the embedded access point.
type localJob struct {
	submit *chirp.Local // what the job reaches by Chirp; nil without
	chirp  *chirpSide
	told   string // the delayed attributes as they were told last
}

func (*localJob) learn(a *activation) {
	a.perform(a.learned(classad.ParseAd(a.plan.JobAd, classad.Old)))
}

func (*localJob) read(a *activation, ad *classad.Ad) (*job, error) {
	move := transfer.Wanted(ad) || a.apart() && transfer.IfNeeded(ad)
	return readJob(ad, a.plan.Submit.Iwd, a.box.Scratch(), move)
}

func (h *localJob) bring(a *activation) {
	if hold := h.openChirp(a); hold != nil {
		a.perform(a.life.prepared(hold))
		return
	}
	if !a.job.transfer {
		a.perform(a.life.prepared(nil)) // nothing to bring
		return
	}
	in, err := transfer.InputOf(a.job.ad, a.job.iwd)
	in.Submit = a.submitSide()
	a.say(protocol.TransferInStart{})
	if err == nil && len(in.Items) == 0 {
		a.say(protocol.TransferInDone{})
		a.perform(a.life.prepared(nil))
		return
	}
	a.beside(func(ctx context.Context) func() []duty {
		var got transfer.Result
		if err == nil {
			err = a.asUser(func() (err error) {
				got, err = in.CopyIn(ctx, a.box.Root())
				return err
			})
		}
		return func() []duty {
			a.record.BytesIn = got.Bytes
			a.say(protocol.TransferInDone{Files: got.Files, Bytes: got.Bytes})
			if err != nil {
				return a.life.prepared(a.holds.input(err))
			}
			return a.life.prepared(nil)
		}
	})
}

func (h *localJob) send(a *activation) {
	h.tellDelayed(a)
	some, whole := a.output()
	if !some {
		a.perform(a.life.finished(nil))
		return
	}
	out, err := a.job.outputs(a.box.Scratch(), whole)
	out.Progress, out.Submit, out.Guarded = a.flow.add, a.submitSide(), a.plan.Submit.Own
	a.say(protocol.TransferOutStart{})
	sending := func(ctx context.Context) func() []duty {
		var sent transfer.Result
		if err == nil {
			err = a.asUser(func() (err error) {
				sent, err = out.CopyOut(ctx, a.box.Root(), a.before)
				return err
			})
		}
		return func() []duty {
			a.record.BytesOut = sent.Bytes
			a.say(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Bytes})
			if err != nil {
				return a.life.finished(a.holds.output(err))
			}
			return a.life.finished(nil)
		}
	}
	if !a.disk.Cut && a.disk.KiB <= littleKiB {
		a.perform(sending(context.Background())())
		return
	}
	a.beside(sending)
}

func (h *localJob) chirpConfig() string { return h.chirp.config() }

// changed is an update: the access point is told what the job set for the next
// one. send tells the rest when the job has ended.
func (h *localJob) changed(a *activation) { h.tellDelayed(a) }

func (h *localJob) close(context.Context) { h.closeChirp() }

// Nobody hears the rest: the reports are all there is.

func (*localJob) piped() [3]*os.File       { return [3]*os.File{} }
func (*localJob) starting(*activation)     {}
func (*localJob) executed(*activation)     {}
func (*localJob) exited(*activation)       {}
func (*localJob) scriptFailed(*activation) {}
func (*localJob) tell(*activation)         {}
func (*localJob) hold(*activation)         {}
func (*localJob) rejoined(*activation)     {}
func (*localJob) lease() time.Duration     { return 0 }

func (*localJob) saving(*activation) bool { return false } // nobody keeps it

func (*localJob) total(u host.Usage) host.Usage { return u } // there is one run

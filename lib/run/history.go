// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// record is something on its way to a file.
type record struct {
	what  string // in words
	write func() error
}

// maxRecords bounds how many records may wait for a slow file system.
const maxRecords = 1024

// beginRecords begins to keep records in files beside the owner, in their
// order: a file system that hangs costs records, but no time.
func (n *node) beginRecords() {
	n.setRecords(n.o.Config)
	n.kept.records = make(chan record, maxRecords)
	n.kept.written = make(chan struct{})
	in, written := n.kept.records, n.kept.written
	go func() {
		defer close(written)
		failed := make(map[string]bool)
		for r := range in {
			err := r.write()
			if err != nil && !failed[r.what] {
				n.o.Log.Warn(r.what+" is lost", "err", err)
			}
			failed[r.what] = err != nil
		}
	}()
}

// recordsPatience is how long an end waits for records that are on their way.
const recordsPatience = 5 * time.Second

// endRecords waits for what is on its way, but not for a file system that hangs.
func (n *node) endRecords() {
	close(n.kept.records)
	select {
	case <-n.kept.written:
	case <-time.After(recordsPatience):
		n.o.Log.Warn("the last records of jobs may be lost: their file system does not answer", "waited", recordsPatience)
	}
}

// write puts a record on its way.
func (n *node) write(what string, write func() error) {
	select {
	case n.kept.records <- record{what, write}:
	default:
		n.o.Log.Warn(what + " is lost: too many wait to be written")
	}
}

// setRecords takes over where records go. Knobs that are wrong have been told
// when the configuration was read; what is right of them counts.
func (n *node) setRecords(s *config.Snapshot) { n.kept.to, _ = history.OptionsFrom(s) }

// keep writes down how an activation ended.
func (n *node) keep(now clock.Instant, e ep.ActivationEnded) {
	to := n.kept.to
	if to.Path == "" && to.PerJob == "" {
		return
	}
	var rec *protocol.ExitRecord
	var dir string
	var pid int
	var gone *host.ExitStatus
	if a, ok := n.starter.live[e.Activation]; ok {
		rec, dir, pid, gone = a.record, a.dir, a.job.PID, a.ended
	}
	ad := ended(e, rec, now)
	if dir != "" {
		ad.SetString("CondorScratchDir", dir)
	}
	if pid > 0 {
		ad.SetInt("JobPid", int64(pid))
	}
	if gone != nil && gone.Ended() {
		ad.SetInt("StarterExitStatus", int64(shadow.WaitStatus(gone.Code, gone.Signal)))
	}
	address := n.member.address
	if address == "" { // of no pool
		address = sinful(n.o.Inventory.FullHostname)
	}
	ad.SetString("StartdIpAddr", address)
	n.write("the history of a job", func() error { return errors.Join(addRecord(ad, rec, e.Rule), to.Append(ad, now.Wall)) })
}

// addRecord has the ad of a job that ended tell the whole of its exit record, beside
// the attributes of HTCondor's, in one of our own that stock tools show and else ignore.
func addRecord(ad *classad.Ad, rec *protocol.ExitRecord, rule ep.Rule) error {
	ad.Delete(protocol.AttrExitRecord) // that the job brought
	if rec == nil {
		return nil
	}
	kept := protocol.Kept{ExitRecord: *rec}
	if rec.Evicted && rule.Name != "" {
		kept.Rule = &protocol.Rule{Name: rule.Name, Text: rule.Text, Origin: rule.Origin}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	all, err := classad.ParseJSON(string(text))
	if err == nil {
		ad.SetValue(protocol.AttrExitRecord, classad.AdValue(all))
	}
	return err
}

// The values of JobStatus that a history of an EP has.
const (
	jobRemoved   = 3
	jobCompleted = 4
)

// ended is the ad of a job with what became of it here. rec is nil if its
// starter ended without a word.
func ended(e ep.ActivationEnded, rec *protocol.ExitRecord, now clock.Instant) *classad.Ad {
	ad := e.Job.Clone()
	ad.SetString("MyType", "Job")
	ad.SetString("TargetType", "Machine")
	ad.SetString("JobState", "Exited")
	ad.SetString("RemoteHost", e.FullName)
	ad.SetInt("RemoteSlotID", int64(e.Slot.N))
	ad.SetString("PublicClaimId", e.Claim)
	ad.SetInt("JobCurrentStartDate", e.Began.Wall.Unix())
	ad.SetInt("CompletionDate", now.Wall.Unix())
	ad.SetInt("RemoteWallClockTime", int64(e.Wall/time.Second))
	ad.SetInt("CpusProvisioned", int64(math.Ceil(e.Given.Cpus)))
	ad.SetInt("MemoryProvisioned", e.Given.MemoryMiB)
	ad.SetInt("DiskProvisioned", e.Given.DiskKiB)
	ad.SetBool("BadputCausedByDraining", e.Drained)
	ad.SetBool("BadputCausedByPreemption", e.Preempted)
	ad.SetInt("NumPids", 0)
	if e.Code != 0 || e.Reason != "" {
		ad.SetString("VacateReason", e.Reason)
		ad.SetInt("VacateReasonCode", int64(e.Code))
		ad.SetInt("VacateReasonSubCode", int64(e.Subcode))
	}
	status := int64(jobCompleted)
	if !e.Ran {
		status = jobRemoved // the starter was lost, and how the job ended with it
	}
	ad.SetInt("JobStatus", status)
	if rec == nil {
		return ad
	}
	ad.SetBool("ExitBySignal", rec.Status.Signal != 0)
	switch {
	case rec.Status.Exited:
		ad.SetInt("ExitCode", int64(rec.Status.Code))
	case rec.Status.Signal != 0:
		ad.SetInt("ExitSignal", int64(rec.Status.Signal))
		ad.SetString("ExitReason", rec.Status.String())
	}
	if h := rec.Held; h != nil {
		ad.SetString("HoldReason", h.Reason)
		ad.SetInt("HoldReasonCode", int64(h.Code))
		ad.SetInt("HoldReasonSubCode", int64(h.Subcode))
	}
	if !rec.Started.IsZero() {
		ad.SetReal("JobDuration", rec.Ended.Sub(rec.Started).Seconds())
	}
	u := rec.Usage
	ad.SetReal("RemoteUserCpu", u.UserCPU.Seconds())
	ad.SetReal("RemoteSysCpu", u.SysCPU.Seconds())
	ad.SetInt("ImageSize", u.ImageSizeKiB)
	ad.SetInt("ResidentSetSize", max(u.RSSKiB, u.PeakRSSKiB))
	ad.SetInt("DiskUsage", rec.DiskKiB)
	ad.SetInt("BytesRecvd", rec.BytesIn)
	ad.SetInt("BytesSent", rec.BytesOut)
	return ad
}

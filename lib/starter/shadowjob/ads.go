// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// memoryUsage is MemoryUsage unless MEMORY_USAGE_METRIC says another.
const memoryUsage = "((ResidentSetSize+1023)/1024)"

// resourceNames are the resources of a machine's ad.
func resourceNames(machine *classad.Ad) []string {
	list, ok := machine.EvalString("MachineResources", nil)
	if !ok {
		list = "Cpus Memory Disk"
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
}

// copyTo sets name in ad to what it is in from, with the attributes that it
// refers to.
func copyTo(ad, from *classad.Ad, name string) {
	e, ok := from.Lookup(name)
	if !ok {
		return
	}
	ad.Set(name, e)
	refs, _ := e.Refs(from)
	for _, ref := range refs.Internal {
		if e, ok := from.Lookup(ref); ok {
			ad.Set(ref, e)
		}
	}
}

// starterInfo is what a starter says of itself: register_starter_info without
// SlotAd, and the answer to a reconnect.
func starterInfo(s *protocol.ShadowSide, set *protocol.PoolSettings, slot, address, scratch string, machine, of *classad.Ad) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("UidDomain", set.UidDomain)
	ad.SetString("FileSystemDomain", set.FileSystemDomain)
	ad.SetString("Name", slot)
	ad.SetString("StarterIpAddr", address)
	if scratch != "" {
		ad.SetString("CondorScratchDir", scratch)
	}
	copyTo(ad, machine, "MachineResources")
	for _, name := range resourceNames(machine) {
		copyTo(ad, machine, name)
		copyTo(ad, machine, "Available"+name)
	}
	if of != nil {
		wanted, _ := of.EvalString("UserLogExecuteEventAttrs", nil) // beside what is there already
		for _, name := range strings.FieldsFunc(wanted, func(r rune) bool { return r == ' ' || r == ',' }) {
			if _, ok := ad.Lookup(name); !ok {
				copyTo(ad, machine, name)
			}
		}
	}
	ad.SetBool("HasReconnect", true)
	ad.SetString("CondorVersion", s.Version)
	ad.SetString("CondorPlatform", s.Platform)
	ad.SetString("MyAddress", address)
	return ad
}

// provisioned is what the job has been given: <Resource>Provisioned and
// Assigned<Resource>.
func provisioned(machine *classad.Ad) *classad.Ad {
	ad := classad.NewAd()
	names := resourceNames(machine)
	ad.SetString("ProvisionedResources", strings.Join(names, " "))
	for _, name := range names {
		v := machine.Eval(name, nil)
		if _, ok := v.AsNumber(); ok {
			ad.SetValue(name+"Provisioned", v)
		}
		if v, ok := machine.EvalString("Assigned"+name, nil); ok {
			ad.SetString("Assigned"+name, v)
		}
	}
	return ad
}

// condition is how a job is at one moment, for the shadow.
type condition struct {
	job.State
	word      string // Running, Suspended, Exited; "" of a job that never ran
	interval  time.Duration
	peakRSS   int64
	moved     bool // files are moved: the scratch directory is the job's
	address   string
	stdout    time.Time // when its standard files were written last
	stderr    time.Time
	spooled   string // SpooledOutputFiles
	isSpooled bool
	metric    string // MEMORY_USAGE_METRIC
	delayed   *classad.Ad
	nested    bool          // the shadow takes ChirpDelayedAttrs
	recent    blockIO       // during the last window
	counted   time.Duration // since when the job is measured
	window    time.Duration
}

// words are JobState.
var words = job.Words

// exit leaves out what an update at the job's exit does not tell.
func (c condition) exit() condition {
	c.stdout, c.stderr = time.Time{}, time.Time{}
	return c
}

// ad is an update of register_job_info, and of job_exit.
func (c condition) ad() *classad.Ad {
	ad := classad.NewAd()
	if c.interval > 0 {
		ad.SetInt("_condor_JOBINFO_MAXINTERVAL", int64(c.interval/time.Second))
	}
	if c.moved {
		ad.SetInt("DiskUsage", c.Disk.KiB)
		ad.SetInt("ScratchDirFileCount", int64(c.Disk.Files))
		if !c.stdout.IsZero() {
			ad.SetInt("StdoutMtime", c.stdout.Unix())
		}
		if !c.stderr.IsZero() {
			ad.SetInt("StderrMtime", c.stderr.Unix())
		}
	}
	ad.SetBool("ExecuteDirWasEncrypted", false)
	if c.isSpooled {
		ad.SetString("SpooledOutputFiles", c.spooled)
	}
	if c.address != "" {
		ad.SetString("StarterIpAddr", c.address)
	}
	if c.word != "" {
		c.process(ad)
	}
	for _, script := range c.Scripts {
		ad.Update(script)
	}
	if e := c.Evicted; e != nil && e.Reason != "" {
		ad.SetString("VacateReason", shadow.OneLine(e.Reason))
		ad.SetInt("VacateReasonCode", int64(e.Code))
		ad.SetInt("VacateReasonSubCode", int64(e.Subcode))
	}
	if c.delayed != nil && c.delayed.Len() > 0 {
		if c.nested {
			ad.SetValue("ChirpDelayedAttrs", classad.AdValue(c.delayed))
		} else {
			ad.Update(c.delayed)
		}
	}
	if c.Metered != nil {
		ad.Update(c.Metered)
	}
	return ad
}

// process says what is known of the job's processes.
func (c condition) process(ad *classad.Ad) {
	c.Publish(ad, c.word)
	ad.SetInt("ResidentSetSize", c.peakRSS)
	metric := c.metric
	if metric == "" {
		metric = memoryUsage
	}
	if ad.SetText("MemoryUsage", metric) != nil {
		_ = ad.SetText("MemoryUsage", memoryUsage) // a constant of ours
	}
	c.blocks(ad)
}

// waitStatus is the wait status that job_exit takes.
func waitStatus(s host.ExitStatus) int {
	if !s.Ended() {
		return shadow.NoStatus
	}
	return shadow.WaitStatus(s.Code, s.Signal)
}

// exitReason is why the job is over, for job_exit.
func exitReason(e job.End, how ending) shadow.ExitReason {
	switch {
	case how.missed:
		return shadow.MissedDeferralTime
	case e.Evicted != nil:
		return shadow.ShouldRequeue
	case !e.Ran:
		return shadow.NotStarted
	case e.Status.Core:
		return shadow.CoreDumped
	}
	return shadow.Exited
}
